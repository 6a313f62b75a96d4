"""Reading znodes in bulk: against one ``get`` for each, against the server's own limit, and beside another client.

The server's limit is what a raw socket gets that sends the very same requests, one in flight, and drops the replies.
Sizes are the asked number of topics and a fifth of it.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Connect

from benchmarks.harness import Benchmark, BenchmarkError, Better, Comparison, Side, timed
from benchmarks.lone_zookeeper import (
    SESSION_MS,
    connected,
    lay_cluster,
    lay_states,
    lone_server,
    spec_paths,
    state_paths,
)
from topicops.edges.zookeeper.multi_read import MultiRead, read_batched
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.edges.zookeeper.session import ZooKeeperSession
from topicops.model.memory import gc_paused

_LENGTH = struct.Struct("!i")
_HEADER = struct.Struct("!ii")
_HEAP_MB = 4096
_TIMEOUT_S = 60.0
_TIMES = 5
_OTHER_CLIENT_S = 5.0
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
_ONE_SNAPSHOT = """
import sys
from topicops.edges.zookeeper.reader import ZooKeeperReader
with ZooKeeperReader(sys.argv[1], timeout_s=60) as reader:
    reader.snapshot(states=sys.argv[2] == "states")
with open("/proc/self/status") as file:
    print(*(line.split()[1] for line in file if line.startswith("VmHWM:")))
"""


@contextmanager
def sides(topics: int) -> Iterator[Mapping[str, Side]]:
    with lone_server(heap_mb=_HEAP_MB) as (server, pid), ExitStack() as open_till_end:
        with connected(server) as client:
            for size in _sizes(topics):
                lay_cluster(client, _chroot(size), size)
                lay_states(client, _chroot(size), size)
        found: dict[str, Side] = {}
        for size in _sizes(topics):
            found |= _sides_of(server, size, open_till_end)
        small, large = (f"{server}{_chroot(size)}" for size in _sizes(topics))
        specs = spec_paths(_sizes(topics)[0])
        loop = open_till_end.enter_context(connected(small))
        session = open_till_end.enter_context(ZooKeeperSession(small, timeout_s=_TIMEOUT_S))
        reader = open_till_end.enter_context(ZooKeeperReader(small, timeout_s=_TIMEOUT_S))
        yield found | {
            "server CPU, get loop": cpu_seconds(pid, lambda: by_loop(loop, specs)),
            "server CPU, spec read": cpu_seconds(pid, lambda: in_bulk(session, specs), times=_TIMES),
            "p99 of another client, idle": lambda: p99_of_another_client(small, lambda: time.sleep(0.01)),
            "p99 of another client, beside snapshots": lambda: p99_of_another_client(small, reader.snapshot),
            f"peak MiB of a snapshot with states, {topics}": lambda: peak_memory_mib(large, states=True),
        }


def _sizes(topics: int) -> tuple[int, int]:
    return max(1, topics // 5), topics


def _chroot(size: int) -> str:
    return f"/kafka-{size}"


def _sides_of(server: str, size: int, open_till_end: ExitStack) -> dict[str, Side]:
    """What is done with a cluster of that size, by a name that tells it."""
    hosts, specs = f"{server}{_chroot(size)}", spec_paths(size)
    both = [*specs, *state_paths(size)]
    loop = open_till_end.enter_context(connected(hosts))
    session = open_till_end.enter_context(ZooKeeperSession(hosts, timeout_s=_TIMEOUT_S))
    reader = open_till_end.enter_context(ZooKeeperReader(hosts, timeout_s=_TIMEOUT_S))
    raw = open_till_end.enter_context(closing(RawReader(server)))
    return {
        f"get loop, {size}": timed(lambda: by_loop(loop, specs)),
        f"spec read, {size}": some_times(lambda: in_bulk(session, specs)),
        f"raw socket, specs, {size}": some_times(raw.reading(requests_of(session, specs))),
        f"state read, {size}": timed(lambda: in_bulk(session, both)),
        f"raw socket, states, {size}": timed(raw.reading(requests_of(session, both))),
        f"snapshot, {size}": some_times(reader.snapshot),
        f"peak MiB of a snapshot, {size}": lambda: peak_memory_mib(hosts, states=False),
    }


def comparisons(topics: int) -> Sequence[Comparison]:
    small, large = _sizes(topics)
    server_cpu = ("server CPU, get loop", "server CPU, spec read")
    p99 = ("p99 of another client, beside snapshots", "p99 of another client, idle")
    return (
        *(found for size in (small, large) for found in _comparisons_of(size)),
        _goal(f"server-cpu-loop-to-spec-read-{small}-topics", server_cpu, 20, "higher"),
        # On the same machine; a snapshot does not yield its processor (docs/decisions/0011-no-yielding.md).
        _goal(f"p99-beside-snapshots-to-idle-{small}-topics", p99, 8, "lower"),
        *(_growth(what, small, large) for what in ("spec read", "state read", "snapshot", "peak MiB of a snapshot")),
    )


def _growth(what: str, small: int, large: int) -> Comparison:
    sides = (f"{what}, {large}", f"{what}, {small}")
    return _goal(f"{what.replace(' ', '-')}-{large}-to-{small}-topics", sides, 6, "lower")


def _comparisons_of(size: int) -> Iterator[Comparison]:
    loop, specs, states = f"get loop, {size}", f"spec read, {size}", f"state read, {size}"
    yield _goal(f"get-loop-to-spec-read-{size}-topics", (loop, specs), 40, "higher")
    yield _goal(f"get-loop-to-snapshot-{size}-topics", (loop, f"snapshot, {size}"), 10, "higher")
    yield _goal(f"raw-socket-to-spec-read-{size}-topics", (f"raw socket, specs, {size}", specs), 0.4, "higher")
    yield _goal(f"raw-socket-to-state-read-{size}-topics", (f"raw socket, states, {size}", states), 0.6, "higher")


def _goal(id_: str, sides: tuple[str, str], goal: float, better: Better) -> Comparison:
    return Comparison(id=id_, numerator=sides[0], denominator=sides[1], goal=goal, better=better)


def some_times(work: Callable[[], object]) -> Side:
    """A side that gives the seconds of one of a few calls: what is over in an instant would tell of that instant."""

    def few() -> None:
        for _ in range(_TIMES):
            work()

    seconds = timed(few)
    return lambda: seconds() / _TIMES


def by_loop(client: KazooClient, paths: Sequence[str]) -> None:
    for path in paths:
        client.get(path)


def in_bulk(session: ZooKeeperSession, paths: Sequence[str]) -> None:
    """As the reader does it."""
    with gc_paused():
        read_batched(session, paths)


def requests_of(session: ZooKeeperSession, paths: Sequence[str]) -> list[bytes]:
    """What is sent when the paths are read in bulk; all must be there."""
    sent = []

    class Noted(MultiRead):
        def serialize(self) -> bytes:
            sent.append(super().serialize())
            return sent[-1]

    missing = sum(znode is None for znode in read_batched(session, paths, request=Noted))
    if missing:
        raise BenchmarkError(f"{missing} of {len(paths)} znodes are not there")
    return sent


class RawReader:
    """A socket that speaks just enough of the protocol to ask; replies are dropped unread."""

    def __init__(self, server: str) -> None:
        host, port = server.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=1 << 20)
        self._ask(_framed(bytes(Connect(0, 0, SESSION_MS, 0, b"\x00" * 16, None).serialize())))

    def reading(self, requests: Sequence[bytes]) -> Callable[[], None]:
        """What sends all of them, each when the one before is answered."""
        framed = [_framed(_HEADER.pack(xid, MultiRead.type) + request) for xid, request in enumerate(requests, 1)]

        def read() -> None:
            for request in framed:
                self._ask(request)

        return read

    def close(self) -> None:
        self._socket.close()

    def _ask(self, framed: bytes) -> None:
        self._socket.sendall(framed)
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        self._file.read(length)


def _framed(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


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


def peak_memory_mib(hosts: str, *, states: bool) -> float:
    """What a process needs at most that takes one snapshot, libraries and all."""
    command = [sys.executable, "-c", _ONE_SNAPSHOT, hosts, "states" if states else "specs"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError("the process that takes a snapshot failed")
    return int(done.stdout) / 1024


BENCHMARK = Benchmark(name="reading", topics=50_000, rounds=5, comparisons=comparisons, sides=sides)
