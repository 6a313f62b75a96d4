"""Reading znodes in bulk: against one ``get`` for each, against the server's own limit, and beside another client.

The server's limit is what a raw socket gets that sends the same requests, one in flight, and drops the replies. Sizes
are the asked number of topics and a fifth of it; states are read at the larger one.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Connect

from benchmarks.harness import Benchmark, BenchmarkError, Comparison, Side, timed
from benchmarks.lone_zookeeper import connected, lay_cluster, lay_states, lone_server, spec_paths, state_paths
from topicops.edges.zookeeper_multi_read import MOST_A_BATCH, MultiRead, asking, read_batched
from topicops.edges.zookeeper_reader import ZooKeeperReader
from topicops.edges.zookeeper_session import ZooKeeperSession
from topicops.model.collector import collector_off

_LENGTH = struct.Struct("!i")
_HEADER = struct.Struct("!iii")
_OTHER_CLIENT_S = 2.0
_OTHER_CLIENT = """
import sys, time
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1])
client.start()
taken, end = [], time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    started = time.perf_counter()
    client.get("/cluster/id")
    taken.append(time.perf_counter() - started)
    time.sleep(0.001)
client.stop()
print(sorted(taken)[len(taken) * 99 // 100])
"""


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    small = max(1, topics // 5)
    with lone_server(heap_mb=3072) as (server, pid), connected(server) as client:
        for size in (small, topics):
            lay_cluster(client, f"/kafka-{size}", size)
        lay_states(client, f"/kafka-{topics}", topics)
        hosts, fewer = f"{server}/kafka-{topics}", f"{server}/kafka-{small}"
        with (
            connected(fewer) as loop,
            ZooKeeperSession(fewer, timeout_s=60) as few,
            ZooKeeperSession(hosts, timeout_s=60) as many,
            ZooKeeperReader(fewer, timeout_s=60) as reader,
            closing(RawReader(server)) as raw,
        ):
            specs, more_specs, states = spec_paths(small), spec_paths(topics), state_paths(topics)
            _require_all(many, states)
            yield {
                "get loop": timed(lambda: by_loop(loop, specs)),
                "spec read": timed(lambda: in_bulk(few, specs)),
                "whole snapshot": timed(reader.snapshot),
                "spec read, five times as many": timed(lambda: in_bulk(many, more_specs)),
                "raw socket, specs": timed(raw.reading(few.chroot, specs)),
                "raw socket, five times as many": timed(raw.reading(many.chroot, more_specs)),
                "state read": timed(lambda: in_bulk(many, states)),
                "raw socket, states": timed(raw.reading(many.chroot, states)),
                "server CPU of the get loop": cpu_seconds(pid, lambda: by_loop(loop, specs)),
                "server CPU of the spec read": cpu_seconds(pid, lambda: in_bulk(few, specs), times=5),
                "p99 of another client, idle": lambda: p99_of_another_client(fewer, lambda: None),
                "p99 of another client, meanwhile": lambda: p99_of_another_client(fewer, reader.snapshot),
            }


def comparisons(topics: int) -> Sequence[Comparison]:
    small = max(1, topics // 5)
    higher = (
        (f"get-loop-to-spec-read-{small}-topics", "get loop", "spec read", 40),
        (f"raw-socket-to-spec-read-{small}-topics", "raw socket, specs", "spec read", 0.4),
        (
            f"raw-socket-to-spec-read-{topics}-topics",
            "raw socket, five times as many",
            "spec read, five times as many",
            0.4,
        ),
        (f"raw-socket-to-state-read-{topics}-topics", "raw socket, states", "state read", 0.6),
        (
            f"server-cpu-loop-to-spec-read-{small}-topics",
            "server CPU of the get loop",
            "server CPU of the spec read",
            20,
        ),
        (f"get-loop-to-whole-snapshot-{small}-topics", "get loop", "whole snapshot", 10),
    )
    lower = (
        (f"spec-read-{topics}-to-{small}-topics", "spec read, five times as many", "spec read", 6),
        (
            f"p99-beside-snapshots-to-idle-{small}-topics",
            "p99 of another client, meanwhile",
            "p99 of another client, idle",
            3,
        ),
    )
    return tuple(
        Comparison(id=id_, numerator=one, denominator=other, goal=goal, better=better)
        for better, rows in (("higher", higher), ("lower", lower))
        for id_, one, other, goal in rows
    )


def by_loop(client: KazooClient, paths: Sequence[str]) -> None:
    for path in paths:
        client.get(path)


def in_bulk(session: ZooKeeperSession, paths: Sequence[str]) -> None:
    """As the reader does it."""
    with collector_off():
        read_batched(session, paths)


class RawReader:
    """A socket that speaks just enough of the protocol to ask; replies are dropped unread."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=1 << 20)
        greeting = bytes(Connect(0, 0, 30_000, 0, b"\x00" * 16, None).serialize())
        self._ask(greeting)

    def reading(self, chroot: str, paths: Sequence[str]) -> Callable[[], None]:
        """What asks for all paths, in requests that are made beforehand."""
        batches = [paths[start : start + MOST_A_BATCH] for start in range(0, len(paths), MOST_A_BATCH)]
        requests = [
            _HEADER.pack(0, xid, MultiRead.type)[4:] + MultiRead(asking(batch, chroot=chroot)).serialize()
            for xid, batch in enumerate(batches, 1)
        ]

        def read() -> None:
            for request in requests:
                self._ask(request)

        return read

    def close(self) -> None:
        self._socket.close()

    def _ask(self, request: bytes) -> None:
        self._socket.sendall(_LENGTH.pack(len(request)) + request)
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        self._file.read(length)


def cpu_seconds(pid: int, work: Callable[[], object], *, times: int = 1) -> Side:
    """A side that gives the CPU seconds of that process while the work is done once."""

    def measured() -> float:
        before = _cpu_seconds_of(pid)
        for _ in range(times):
            work()
        return max(_cpu_seconds_of(pid) - before, 0.01) / times

    return measured


def _cpu_seconds_of(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - a file of the kernel, read at once
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def p99_of_another_client(hosts: str, work: Callable[[], object]) -> float:
    """Seconds; of single reads by a process of its own, while ``work`` is done again and again."""
    command = [sys.executable, "-c", _OTHER_CLIENT, hosts, str(_OTHER_CLIENT_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        while other.poll() is None:
            work()
        said, _ = other.communicate()
    if other.returncode != 0:
        raise BenchmarkError("the other client failed")
    return float(said)


def _require_all(session: ZooKeeperSession, paths: Sequence[str]) -> None:
    missing = sum(znode is None for znode in read_batched(session, paths))
    if missing:
        raise BenchmarkError(f"{missing} of {len(paths)} znodes are not there")


BENCHMARK = Benchmark(name="reading", topics=5_000, rounds=5, comparisons=comparisons, sides=sides)
