"""What the local cluster consists of, and the file that tells the next command about it."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.processes import ProcessMark, free_port, port_is_free
from topicops.model.errors import LocalClusterError, UsageError

ZOOKEEPER = "zookeeper"
_STATE_FILE = "state.json"
_FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One of the cluster's servers as ``state.json`` holds it."""

    role: str
    """``zookeeper`` or ``broker-<id>``; its folder and its log have that name too."""
    port: int
    process: ProcessMark | None = None
    """The last one that was started, alive or not."""
    broker: int | None = None
    rack: str | None = None
    controller_port: int | None = None
    """Where a KRaft broker votes; None in ZooKeeper mode."""

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The file that makes the cluster known to the next command."""

    servers: tuple[Server, ...]
    """ZooKeeper first, where there is one, then the brokers by id."""
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = 192
    cluster_id: str | None = None
    format_version: int = 1

    @property
    def kraft(self) -> bool:
        """Whether the brokers rule themselves, without ZooKeeper."""
        return all(server.role != ZOOKEEPER for server in self.servers)

    @property
    def zookeeper(self) -> Server:
        """The ZooKeeper. Raises ``UsageError`` under KRaft."""
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

    def with_process(self, role: str, process: ProcessMark) -> ClusterState:
        servers = tuple(replace(s, process=process) if s.role == role else s for s in self.servers)
        return replace(self, servers=servers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """What ``up`` was asked for; None leaves the choice to it."""

    brokers: int = 3
    zookeeper_port: int | None = None
    broker_ports: tuple[int, ...] | None = None
    broker_properties: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = 192
    kraft: bool = False
    racks: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.brokers < 1:
            raise UsageError(f"{self.brokers} brokers cannot be started; ask for 1 or more")
        if self.broker_ports is not None and len(self.broker_ports) != self.brokers:
            raise UsageError(f"{self.brokers} brokers need {self.brokers} ports; {len(self.broker_ports)} are given")
        if self.racks is not None and len(self.racks) != self.brokers:
            raise UsageError(f"{self.brokers} brokers stand on {self.brokers} racks; {len(self.racks)} are given")
        if self.kraft and self.zookeeper_port is not None:
            raise UsageError("a KRaft cluster has no ZooKeeper, and so no port of one; leave one of the two out")


def read_state(folder: Path) -> ClusterState | None:
    """The recorded state; None where no cluster was ever started. Raises ``LocalClusterError`` when it is damaged."""
    file = folder / _STATE_FILE
    try:
        state = msgspec.json.decode(file.read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise LocalClusterError(
            f"{file} cannot be read: {error}; end the Java processes that work in {folder} by hand and delete the file"
        ) from error
    if state.format_version != _FORMAT_VERSION or not state.brokers:
        raise LocalClusterError(f"{file} was written by another version of topicops; stop the cluster with that one")
    return state


def write_state(folder: Path, state: ClusterState) -> None:
    """Replace the recorded state in one step."""
    write_atomically(folder / _STATE_FILE, msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")


def planned_state(folder: Path, request: ClusterRequest, *, fresh: bool) -> ClusterState:
    """What ``up`` shall bring up: the recorded cluster if any of it runs, else a new one on the old data and ports.

    Raises:
        UsageError: Some of it runs, and not as asked for.
    """
    recorded = read_state(folder)
    if recorded is not None and any(server.alive for server in recorded.servers):
        _refuse_differences(recorded, request, fresh=fresh)
        return recorded
    if recorded is not None and not fresh and recorded.kraft != request.kraft:
        had, asked = ("KRaft", "ZooKeeper") if recorded.kraft else ("ZooKeeper", "KRaft")
        raise UsageError(
            f"the data in {folder} are of a cluster with {had}, and one with {asked} cannot start on them; "
            "add --fresh to lose them, or name another --home"
        )
    if not fresh:
        return _new_state(recorded, request)
    state = replace(_new_state(recorded, request), cluster_id=_new_cluster_id(request))
    _remove_data(folder)
    return state


def _refuse_differences(recorded: ClusterState, request: ClusterRequest, *, fresh: bool) -> None:
    ports = tuple(server.port for server in recorded.brokers)
    zookeeper_ports = (None, *(server.port for server in recorded.servers if server.role == ZOOKEEPER))
    different = [
        *(["data"] if fresh else []),
        *(["KRaft quorum" if recorded.kraft else "ZooKeeper"] if request.kraft != recorded.kraft else []),
        *(["number of brokers"] if request.brokers != len(recorded.brokers) else []),
        *(["ZooKeeper port"] if request.zookeeper_port not in zookeeper_ports else []),
        *(["broker ports"] if request.broker_ports not in (None, ports) else []),
        *(["racks"] if request.racks not in (None, tuple(server.rack for server in recorded.brokers)) else []),
        *(["broker properties"] if request.broker_properties not in ({}, recorded.broker_properties) else []),
    ]
    if different:
        raise UsageError(
            f"the local cluster is running with its own {' and '.join(different)}; run `topicops local down` first"
        )


def _remove_data(folder: Path) -> None:
    for data in folder.glob("*/data"):
        shutil.rmtree(data)


def _new_state(recorded: ClusterState | None, request: ClusterRequest) -> ClusterState:
    """Ports that are given, else those of last time as long as they are free, else free ones."""
    given = [request.zookeeper_port, *(request.broker_ports or [None] * request.brokers)]
    earlier = {server.role: server for server in recorded.servers} if recorded else {}
    taken = {port for port in given if port is not None}
    if len(taken) != sum(port is not None for port in given):
        raise UsageError("two servers cannot have one port; give different ones")
    servers = []
    for broker, wanted in enumerate(given):
        if request.kraft and not broker:
            continue
        role = broker_role(broker) if broker else ZOOKEEPER
        last = earlier.get(role)
        servers.append(
            Server(
                role=role,
                port=wanted or _choose_port(last.port if last else None, taken),
                process=last.process if last else None,
                broker=broker or None,
                rack=_rack(broker, request) if broker else None,
                controller_port=_choose_port(last.controller_port if last else None, taken) if request.kraft else None,
            )
        )
    return ClusterState(
        servers=tuple(servers),
        broker_properties=dict(request.broker_properties),
        heap_mb=request.heap_mb,
        cluster_id=recorded.cluster_id if recorded else _new_cluster_id(request),
    )


def _rack(broker: int, request: ClusterRequest) -> str | None:
    return f"r{broker}" if request.racks is None else request.racks[broker - 1]


def _new_cluster_id(request: ClusterRequest) -> str | None:
    """A KRaft cluster is given its id; in ZooKeeper mode the brokers make it: URL-safe base64 of 16 random bytes."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") if request.kraft else None


def _choose_port(last: int | None, taken: set[int]) -> int:
    """A port that nobody has, the last one if that may be; ``taken`` has it afterwards."""
    port = last if last is not None and last not in taken and port_is_free(last) else free_port(frozenset(taken))
    taken.add(port)
    return port


def broker_role(broker: int) -> str:
    return f"broker-{broker}"
