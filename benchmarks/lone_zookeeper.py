"""A real ZooKeeper without brokers, and a Kafka cluster's znodes in it."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from topicops.features.shared.java import find_java, last_lines, pyspark_jars
from topicops.model.errors import LocalClusterError
from topicops_local import server_files
from topicops_local.processes import ProcessMark, free_port, spawn, stop
from topicops_local.readiness import zookeeper_answers

BROKERS = 6
PARTITIONS = 20
REPLICATION_FACTOR = 3
OVERRIDES: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": "604800000"}

SESSION_MS = 600_000
"""How long a client may keep silent: each side of a benchmark waits while the others run."""

_START_TIMEOUT_S = 30.0
_A_TRANSACTION = 400
_IN_FLIGHT = 8
_CONTROLLER = '{"version":2,"brokerid":1,"timestamp":"1700000000000","kraftControllerEpoch":-1}'


@contextmanager
def lone_zookeeper() -> Iterator[str]:
    """``host:port`` of a fresh server; it and its data are gone afterwards."""
    with lone_server(heap_mb=512) as (server, _):
        yield server


@contextmanager
def lone_server(*, heap_mb: int) -> Iterator[tuple[str, int]]:
    """Like ``lone_zookeeper``, with the server's pid."""
    with tempfile.TemporaryDirectory(prefix="topicops-bench-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        properties, log = folder / "zookeeper.properties", folder / "zookeeper.log"
        settings = server_files.zookeeper_properties(folder / "data", port)
        settings["maxSessionTimeout"] = str(SESSION_MS)
        properties.write_text(server_files.properties_text(settings), encoding="utf-8")
        process = spawn(_command(properties, heap_mb=heap_mb), log=log, folder=folder, environment=os.environ)
        try:
            _wait_until_it_answers(process, port, log)
            yield f"127.0.0.1:{port}", process.pid
        finally:
            stop([process], grace_s=2.0)


@contextmanager
def connected(hosts: str) -> Iterator[KazooClient]:
    client = KazooClient(hosts)
    client.start(timeout=_START_TIMEOUT_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def topic_names(topics: int) -> list[str]:
    return [f"bench.topic-{number:06}" for number in range(topics)]


def lay_cluster(client: KazooClient, chroot: str, topics: int) -> None:
    """A cluster at rest under ``chroot``, which must not stand yet; partition states are left out."""
    for path, data in _frame().items():
        client.create(chroot + path, data.encode(), makepath=True)
    znodes = (
        (chroot + path, data)
        for number, name in enumerate(topic_names(topics))
        for path, data in ((f"/brokers/topics/{name}", _topic(number)), (f"/config/topics/{name}", _config()))
    )
    _create_all(client, znodes)


def lay_states(client: KazooClient, chroot: str, topics: int) -> None:
    """The states of all partitions, below topics that stand: each is led by its first replica, and all are in sync."""
    znodes = (
        (f"{chroot}/brokers/topics/{name}{path}", data)
        for number, name in enumerate(topic_names(topics))
        for path, data in _states(number)
    )
    _create_all(client, znodes)


def spec_paths(topics: int) -> list[str]:
    """The two znodes of each topic."""
    return [f"{parent}/{name}" for name in topic_names(topics) for parent in ("/brokers/topics", "/config/topics")]


def state_paths(topics: int) -> list[str]:
    names = topic_names(topics)
    return [f"/brokers/topics/{name}/partitions/{p}/state" for name in names for p in range(PARTITIONS)]


def _create_all(client: KazooClient, znodes: Iterator[tuple[str, bytes]]) -> None:
    """All in this order, many in a transaction and some transactions on the way."""
    flying: deque[Any] = deque()
    while batch := list(islice(znodes, _A_TRANSACTION)):
        transaction = client.transaction()
        for path, data in batch:
            transaction.create(path, data)
        flying.append(transaction.commit_async())
        if len(flying) == _IN_FLIGHT:
            _require_done(flying.popleft())
    while flying:
        _require_done(flying.popleft())


def _require_done(transaction: Any) -> None:
    for answer in transaction.get(timeout=_START_TIMEOUT_S):
        if isinstance(answer, Exception):
            raise answer


def _command(properties: Path, *, heap_mb: int) -> list[str]:
    """As a server runs in earnest, with both compilers and G1; except that it does not force its log to the disk."""
    return [
        *(str(find_java()), f"-Xmx{heap_mb}m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
        *("-Djava.awt.headless=true", "-Dzookeeper.forceSync=no"),
        *("-cp", ":".join(map(str, sorted(pyspark_jars().glob("*.jar"))))),
        *("org.apache.zookeeper.server.ZooKeeperServerMain", str(properties)),
    ]


def _frame() -> dict[str, str]:
    return {
        "/cluster/id": json.dumps({"version": "1", "id": "Nw0Yx8fRTlqHJ0fV3k2k5A"}),
        **{f"/brokers/ids/{broker}": _broker(broker) for broker in range(1, BROKERS + 1)},
        "/brokers/topics": "",
        "/config/topics": "",
        "/admin/delete_topics": "",
        "/controller_epoch": "1",
        "/controller": _CONTROLLER,
    }


def _broker(broker: int) -> str:
    return json.dumps(
        {
            "version": 5,
            "host": "127.0.0.1",
            "port": 9092,
            "jmx_port": -1,
            "timestamp": "1700000000000",
            "endpoints": ["PLAINTEXT://127.0.0.1:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "rack": f"rack-{broker % REPLICATION_FACTOR}",
            "features": {},
        }
    )


def _states(number: int) -> Iterator[tuple[str, bytes]]:
    """The znodes below a topic's own, parents first."""
    yield "/partitions", b""
    for partition in range(PARTITIONS):
        replicas = _replicas(number, partition)
        state = {"controller_epoch": 1, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
        yield f"/partitions/{partition}", b""
        yield f"/partitions/{partition}/state", json.dumps(state, separators=(",", ":")).encode()


def _replicas(number: int, partition: int) -> list[int]:
    return [(number + partition + replica) % BROKERS + 1 for replica in range(REPLICATION_FACTOR)]


def _topic(number: int) -> bytes:
    rows = {str(partition): _replicas(number, partition) for partition in range(PARTITIONS)}
    znode = {
        "version": 3,
        "topic_id": f"{number:022}",
        "partitions": rows,
        "adding_replicas": {},
        "removing_replicas": {},
    }
    return json.dumps(znode, separators=(",", ":")).encode()


def _config() -> bytes:
    return json.dumps({"version": 1, "config": dict(OVERRIDES)}, separators=(",", ":")).encode()


def _wait_until_it_answers(process: ProcessMark, port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not zookeeper_answers(port):
        if not process.alive or time.monotonic() > deadline:
            raise LocalClusterError(f"ZooKeeper did not start:\n{last_lines(log)}")
        time.sleep(0.05)
