"""What the local cluster consists of, and the file from which the next command learns it."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.model.errors import LocalClusterError, UsageError
from topicops.model.json_types import JsonError, json_errors
from topicops.model.release import KRAFT, NO_ZOOKEEPER
from topicops_local.jars import release_of, usual_version
from topicops_local.processes import ProcessMark, free_port, port_is_free

ZOOKEEPER = "zookeeper"
_STATE_FILE = "state.json"
_FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of the cluster's servers as ``state.json`` holds it."""

    role: str
    """``zookeeper`` or ``broker-<id>``: also the name of its folder and its log."""
    port: int
    process: ProcessMark | None = None
    """The last process that was started, alive or not."""
    broker: int | None = None
    rack: str | None = None
    controller_port: int | None = None
    """The port of a KRaft broker's controller; None in ZooKeeper mode."""
    kafka: str = field(default_factory=usual_version)
    """Version of Kafka that it runs; during a rolling upgrade each server has its own."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Settings of this broker alone; they replace those of all brokers, and an empty one removes it."""

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The content of ``state.json``, which makes the cluster known to the next command."""

    servers: tuple[Server, ...]
    """ZooKeeper first, where there is one, then the brokers by id."""
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = 192
    cluster_id: str | None = None
    format_version: int = 1

    @property
    def kraft(self) -> bool:
        """Whether the brokers are controllers too, without ZooKeeper."""
        return all(server.role != ZOOKEEPER for server in self.servers)

    @property
    def zookeeper(self) -> Server:
        """The ZooKeeper server. Raises ``UsageError`` under KRaft."""
        return self.server(ZOOKEEPER)

    @property
    def brokers(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.role != ZOOKEEPER)

    @property
    def processes(self) -> tuple[ProcessMark, ...]:
        return tuple(s.process for s in self.servers if s.process is not None)

    def server(self, role: str) -> Server:
        for server in self.servers:
            if server.role == role:
                return server
        raise UsageError(f"the local cluster has no {role}; it has {', '.join(s.role for s in self.servers)}")

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Kafka that the servers run, the oldest first: several during a rolled upgrade."""
        return tuple(sorted({server.kafka for server in self.servers}, key=_numbers))

    def with_process(self, role: str, process: ProcessMark) -> ClusterState:
        return self.with_server(replace(self.server(role), process=process))

    def with_server(self, server: Server) -> ClusterState:
        """Return the state in which the server of that role is this one."""
        return replace(self, servers=tuple(server if s.role == server.role else s for s in self.servers))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The options of ``up``; None leaves the choice to it."""

    brokers: int = 3
    zookeeper_port: int | None = None
    broker_ports: tuple[int, ...] | None = None
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = 192
    kraft: bool | None = None
    """Choice of KRaft; None means only where this version of Kafka has no other mode."""
    racks: tuple[str | None, ...] | None = None
    kafka: str | None = None
    """A version as ``version_of`` gives it; None means the one that wrote the data, else the usual one."""
    upgrade: bool = False
    """Whether the data may be those of an older version."""

    def __post_init__(self) -> None:
        if self.brokers < 1:
            raise UsageError(f"{self.brokers} brokers cannot be started; give 1 or more")
        if self.broker_ports is not None and len(self.broker_ports) != self.brokers:
            raise UsageError(f"{self.brokers} brokers need {self.brokers} ports; {len(self.broker_ports)} are given")
        if self.racks is not None and len(self.racks) != self.brokers:
            raise UsageError(f"{self.brokers} brokers need {self.brokers} racks; {len(self.racks)} are given")
        if self.kraft and self.zookeeper_port is not None:
            raise UsageError("a KRaft cluster has no ZooKeeper; leave out the ZooKeeper port or KRaft")
        if self.kafka is not None:
            _require_possible(self.kafka, kraft=self.kraft)

    def with_kraft(self, kafka: str) -> ClusterRequest:
        """Return the same request, where ``kraft`` says what it means for that version of Kafka."""
        has_other = release_of(kafka) < NO_ZOOKEEPER
        _require_possible(kafka, kraft=self.kraft)
        return replace(self, kraft=not has_other if self.kraft is None else self.kraft)


def _require_possible(kafka: str, *, kraft: bool | None) -> None:
    release = release_of(kafka)
    if kraft and release < KRAFT:
        raise UsageError(f"Kafka {kafka} needs ZooKeeper: KRaft is ready from Kafka {KRAFT} on; leave out KRaft")
    if kraft is False and release >= NO_ZOOKEEPER:
        raise UsageError(f"Kafka {kafka} has no ZooKeeper; ask for KRaft, or for a Kafka before {NO_ZOOKEEPER}")


def read_state(folder: Path) -> ClusterState | None:
    """Return the recorded state; None if there never was a cluster. Raises ``LocalClusterError`` when it is damaged."""
    file = folder / _STATE_FILE
    try:
        with json_errors():
            state = msgspec.json.decode(file.read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return None
    except (JsonError, OSError) as error:
        raise LocalClusterError(
            f"{file} cannot be read: {error}; end the Java processes that use {folder} by hand and delete the file"
        ) from error
    if state.format_version != _FORMAT_VERSION or not state.brokers:
        raise LocalClusterError(f"{file} was written by another version of topicops; stop the cluster with that one")
    return state


def write_state(folder: Path, state: ClusterState) -> None:
    """Replace the recorded state in one step."""
    write_atomically(folder / _STATE_FILE, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")


def planned_state(folder: Path, request: ClusterRequest, *, fresh: bool) -> ClusterState:
    """Return the cluster that ``up`` starts: the recorded one if any of it runs, else a new one on the old data.

    Raises:
        UsageError: A part of the recorded cluster runs, and the request differs from it.
    """
    recorded = read_state(folder)
    if recorded is not None and any(server.alive for server in recorded.servers):
        _refuse_differences(recorded, request, fresh=fresh)
        return recorded
    if fresh or recorded is None:
        request = request.with_kraft(request.kafka or usual_version())
    else:
        request = request.with_kraft(request.kafka or recorded.versions[-1])
        _refuse_other_data(folder, recorded, request)
        return _new_state(recorded, request)
    state = replace(_new_state(recorded, request, fresh=True), cluster_id=_new_cluster_id(request))
    if fresh:
        _remove_data(folder)
    return state


def _refuse_other_data(folder: Path, recorded: ClusterState, request: ClusterRequest) -> None:
    """Raise ``UsageError`` where the request's cluster cannot use the data of the recorded one."""
    ways_out = "add --fresh to delete them, or name another --home"
    if recorded.kraft != request.kraft:
        had, asked = ("KRaft", "ZooKeeper") if recorded.kraft else ("ZooKeeper", "KRaft")
        raise UsageError(
            f"the data in {folder} belong to a cluster with {had}; a cluster with {asked} cannot use them: {ways_out}"
        )
    newest = recorded.versions[-1]
    if request.kafka is None or release_of(request.kafka) == release_of(newest):
        return
    written = f"the data in {folder} were written by Kafka {newest}"
    if release_of(request.kafka) < release_of(newest):
        raise UsageError(f"{written}, which the older Kafka {request.kafka} may not understand: {ways_out}")
    if not request.upgrade:
        raise UsageError(f"{written}; add --upgrade to go on with Kafka {request.kafka} on them, or {ways_out}")


def _refuse_differences(recorded: ClusterState, request: ClusterRequest, *, fresh: bool) -> None:
    ports = tuple(server.port for server in recorded.brokers)
    zookeeper_ports = (None, *(server.port for server in recorded.servers if server.role == ZOOKEEPER))
    racks = tuple(server.rack for server in recorded.brokers)
    request = request.with_kraft(request.kafka or recorded.versions[-1])
    compared = {
        "data": fresh,
        "KRaft quorum" if recorded.kraft else "ZooKeeper": request.kraft != recorded.kraft,
        f"Kafka {' and '.join(recorded.versions)}": request.kafka not in (None, *recorded.versions),
        "number of brokers": request.brokers != len(recorded.brokers),
        "ZooKeeper port": request.zookeeper_port not in zookeeper_ports,
        "broker ports": request.broker_ports not in (None, ports),
        "racks": request.racks not in (None, racks),
        "broker properties": request.broker_properties not in ({}, recorded.broker_properties),
    }
    different = [name for name, differs in compared.items() if differs]
    if different:
        raise UsageError(
            f"the local cluster is running with its own {' and '.join(different)}; run `topicops local down` first"
        )


def _remove_data(folder: Path) -> None:
    for data in folder.glob("*/data"):
        shutil.rmtree(data)


def _new_state(recorded: ClusterState | None, request: ClusterRequest, *, fresh: bool = False) -> ClusterState:
    """Ports that are given, else the ports of last time as long as they are free, else free ones."""
    earlier = {server.role: server for server in recorded.servers} if recorded else {}
    taken = _given_ports(request)
    zookeeper = [] if request.kraft else [_new_server(ZOOKEEPER, request.zookeeper_port, earlier, taken)]
    ports = request.broker_ports or (None,) * request.brokers
    brokers = [_new_broker(broker, port, request, earlier, taken) for broker, port in enumerate(ports, start=1)]
    kept = None if recorded is None or fresh else recorded
    return ClusterState(
        servers=tuple(_of_version(server, kept, request) for server in (*zookeeper, *brokers)),
        broker_properties=dict(request.broker_properties),
        heap_mb=request.heap_mb,
        cluster_id=recorded.cluster_id if recorded else _new_cluster_id(request),
    )


def _of_version(server: Server, kept: ClusterState | None, request: ClusterRequest) -> Server:
    """Return the server with the version of Kafka that was asked for, else with the one that it had."""
    had = {s.role: s for s in kept.servers} if kept else {}
    newest = kept.versions[-1] if kept else usual_version()
    last = had.get(server.role)
    version = request.kafka or (last.kafka if last else newest)
    return replace(server, kafka=version, properties=last.properties if last and request.kafka is None else {})


def _given_ports(request: ClusterRequest) -> set[int]:
    given = [port for port in (request.zookeeper_port, *(request.broker_ports or ())) if port is not None]
    if len(set(given)) < len(given):
        raise UsageError("two servers cannot have one port; give different ones")
    return set(given)


def _new_server(role: str, port: int | None, earlier: Mapping[str, Server], taken: set[int]) -> Server:
    last = earlier.get(role)
    return Server(
        role=role, port=port or _choose_port(last.port if last else None, taken), process=last.process if last else None
    )


def _new_broker(
    broker: int, port: int | None, request: ClusterRequest, earlier: Mapping[str, Server], taken: set[int]
) -> Server:
    server = _new_server(broker_role(broker), port, earlier, taken)
    last = earlier.get(server.role)
    controller_port = _choose_port(last.controller_port if last else None, taken) if request.kraft else None
    rack = f"r{broker}" if request.racks is None else request.racks[broker - 1]
    return replace(server, broker=broker, rack=rack, controller_port=controller_port)


def _new_cluster_id(request: ClusterRequest) -> str | None:
    """URL-safe base64 of 16 random bytes for KRaft; in ZooKeeper mode the brokers choose the id."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") if request.kraft else None


def _choose_port(last: int | None, taken: set[int]) -> int:
    """Return a free port, the last one if possible. It is added to ``taken``."""
    port = last if last is not None and last not in taken and port_is_free(last) else free_port(frozenset(taken))
    taken.add(port)
    return port


def broker_role(broker: int) -> str:
    return f"broker-{broker}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
