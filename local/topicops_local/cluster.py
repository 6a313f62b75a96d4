"""A real ZooKeeper and real Kafka brokers on 127.0.0.1, for the demo, for tests, and for trying things out.

With KRaft only the brokers run: each is a controller too.

All files are under ``<home>/cluster``: ``state.json`` (which process has which port), ``logs/``, and a folder for
each server with its property file and data. The processes outlive the command that started them. A later command finds
them by pid and start time, and sends no signal to any other process.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from topicops.edges.file_locks import locked
from topicops.features.shared.java import find_java, last_lines
from topicops.model.errors import ClusterError, ClusterUnreachableError, LocalClusterError, UsageError
from topicops_local import server_files
from topicops_local.jars import Progress, kafka_jars, newest_java, quiet, sums_of, version_of
from topicops_local.processes import ProcessMark, kill, pause, send_signal, spawn, stop, wait_port_free
from topicops_local.readiness import HANGS_S, ask_broker, wait_until_ready, zookeeper_answers
from topicops_local.state import (
    ZOOKEEPER,
    ClusterRequest,
    ClusterState,
    Server,
    broker_role,
    planned_state,
    read_state,
    write_state,
)

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_POLL_S = 0.05
_PORT_S = 5.0
_ANSWER_S = 5.0
"""Seconds for which a server that starts may leave one question without an answer."""
_SESSION_S = 30.0
"""Seconds that a session with ZooKeeper may take to begin."""
_BROKER_GRACE_S = 15.0
_ZOOKEEPER_GRACE_S = 5.0
_SESSION_ENDED = "SessionExpiredException"
_MOST_STARTS = 3
"""How often a broker is started again whose first session expired."""
_LOCK = "lock"
_WAITING = "waiting for another command that starts or stops this cluster"
# Without ZooKeeper a broker cannot shut down cleanly; it would try for a minute.
_ORPHAN_GRACE_S = 1.0
_MAX_LOG_BYTES = 20 << 20

_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    role: str
    pid: int | None
    port: int
    alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """What runs right now."""

    processes: tuple[ProcessStatus, ...]
    registered_brokers: tuple[int, ...]
    """Ids in ZooKeeper, or in the metadata of a KRaft broker; also empty when no server answers."""
    controller: int | None
    """The leader of the quorum under KRaft."""
    cluster_id: str | None
    kraft: bool
    zookeeper_hosts: str | None
    """None under KRaft."""
    bootstrap_servers: str
    logs: str
    versions: Mapping[str, str]
    """The version of Kafka that each process runs, by role."""

    @property
    def running(self) -> bool:
        """Whether every process is alive."""
        return all(process.alive for process in self.processes)


class LocalCluster:
    """The cluster of one home folder: ``up`` starts it, ``find`` returns the one that an earlier command started."""

    def __init__(self, folder: Path, progress: Progress = quiet) -> None:
        self.folder = folder
        self._progress = progress
        self._runtimes: dict[str, tuple[Path, Sequence[Path]]] = {}
        self._launches: dict[str, list[int]] = {}
        """Size of a server's log at each start, by role."""

    @classmethod
    def up(
        cls,
        home: Path,
        *,
        brokers: int = 3,
        zookeeper_port: int | None = None,
        broker_ports: Sequence[int] | None = None,
        broker_properties: Mapping[str, str] | None = None,
        heap_mb: int = 192,
        kraft: bool | None = None,
        racks: Sequence[str | None] | None = None,
        kafka: str | None = None,
        upgrade: bool = False,
        fresh: bool = False,
        progress: Progress = quiet,
    ) -> Self:
        """Start what is not running, and return when every broker answers on its port and knows every broker.

        Args:
            broker_properties: Extra settings of each broker; they replace ours.
            heap_mb: The heap limit of each broker; 192 is enough for some hundred topics.
            kraft: The brokers are controllers too, and no ZooKeeper runs; when left out, only where this Kafka has
                no other.
            racks: The racks of broker 1, 2 and so on, None for no rack; when left out, each broker has its own.
            kafka: A release of Kafka, or a version, such as ``2.8`` or ``2.8.2``; when left out, the one that wrote
                the data, else the usual one.
            upgrade: Let a newer Kafka start on the data of an older one.
            fresh: Delete the data of an earlier cluster first.

        Raises:
            LocalClusterError: A server did not start; the message ends with its log. Nothing is left running.
            UsageError: The cluster runs already with other options, its data need the other kind of cluster or
                another Kafka, or there is no such Kafka.
        """
        request = ClusterRequest(
            brokers=brokers,
            zookeeper_port=zookeeper_port,
            broker_ports=None if broker_ports is None else tuple(broker_ports),
            broker_properties=dict(broker_properties or {}),
            heap_mb=heap_mb,
            kraft=kraft,
            racks=None if racks is None else tuple(racks),
            kafka=None if kafka is None else _existing(kafka),
            upgrade=upgrade,
        )
        folder = _cluster_folder(home)
        _make_folders(folder)
        with locked(folder / _LOCK, on_wait=lambda: progress(_WAITING)):
            write_state(folder, planned_state(folder, request, fresh=fresh))
            cluster = cls(folder, progress)
            cluster._start_missing()
        return cluster

    @classmethod
    def find(cls, home: Path, *, progress: Progress = quiet) -> LocalCluster | None:
        """Return the cluster that was last started under ``home``, running or not; None if there was none."""
        folder = _cluster_folder(home)
        return None if read_state(folder) is None else cls(folder, progress)

    @property
    def home(self) -> Path:
        return self.folder.parent

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def zookeeper_port(self) -> int:
        """Raises ``UsageError`` under KRaft."""
        return self._state.zookeeper.port

    @property
    def zookeeper_hosts(self) -> str:
        """With the chroot, in the form of Kafka's ``zookeeper.connect``."""
        return f"127.0.0.1:{self.zookeeper_port}{server_files.CHROOT}"

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.broker_ports.values())

    @property
    def broker_ports(self) -> dict[int, int]:
        """Port by broker id."""
        return {s.broker: s.port for s in self._state.brokers if s.broker is not None}

    @property
    def broker_pids(self) -> dict[int, int]:
        """Pid by broker id, for brokers that were ever started."""
        return {s.broker: s.process.pid for s in self._state.brokers if s.broker is not None and s.process}

    @property
    def versions(self) -> dict[str, str]:
        """The version of Kafka of each server, by role: ``zookeeper``, ``broker-1`` and so on."""
        return {server.role: server.kafka for server in self._state.servers}

    @property
    def cluster_id(self) -> str:
        if self._state.cluster_id is None:
            raise LocalClusterError(f"{self.folder}: this cluster was never ready; start it with `topicops local up`")
        return self._state.cluster_id

    def status(self) -> ClusterStatus:
        state = self._state
        registered, controller = self._quorum() if state.kraft else self._registrations()
        return ClusterStatus(
            processes=tuple(_process_status(server) for server in state.servers),
            registered_brokers=registered,
            controller=controller,
            cluster_id=state.cluster_id,
            kraft=state.kraft,
            zookeeper_hosts=None if state.kraft else self.zookeeper_hosts,
            bootstrap_servers=self.bootstrap_servers,
            logs=str(self.logs),
            versions=self.versions,
        )

    def down(self, *, now: bool = False) -> tuple[str, ...]:
        """Stop what is running, brokers first, and return the roles that ran. ``now`` kills the processes."""
        with self._locked():
            running = tuple(server.role for server in self._state.servers if server.alive)
            self._stop(self._state.servers, now=now)
        return running

    def kill(self, broker: int) -> None:
        """Kill the broker; it stays registered until its session ends."""
        kill(_marks([self._broker(broker)]))

    def pause(self, broker: int) -> None:
        """Pause the broker (SIGSTOP): its port accepts connections and never answers."""
        pause(self._running(broker_role(broker)))

    def resume(self, broker: int) -> None:
        send_signal(self._running(broker_role(broker)), signal.SIGCONT)

    def stop_broker(self, broker: int) -> None:
        """Stop the broker cleanly: it moves its leaders and removes its registration."""
        self._stop([self._broker(broker)], now=False)

    def start_broker(
        self, broker: int, *, kafka: str | None = None, broker_properties: Mapping[str, str] | None = None
    ) -> None:
        """Start the broker if it is not running, and wait until it answers and knows every registered broker.

        After a kill this waits up to 6 s for the end of the old session, which keeps the broker's id.

        Args:
            kafka: A release or version, as for ``up``, that this broker runs from now on; when left out, the last.
            broker_properties: Settings of this broker alone from now on; when left out, those of the last time.

        Raises:
            UsageError: The broker runs, and one of both is given.
        """
        with self._locked():
            self._change(broker_role(broker), kafka, broker_properties)
            self._start_brokers([self._broker(broker)])

    def stop_zookeeper(self, *, now: bool = False) -> None:
        self._stop([self._state.zookeeper], now=now)

    def start_zookeeper(self, *, kafka: str | None = None) -> None:
        """Start ZooKeeper if it is not running. Sessions survive, so brokers reconnect by themselves.

        Args:
            kafka: A release or version of Kafka, as for ``up``, whose ZooKeeper runs from now on.
        """
        with self._locked():
            self._change(ZOOKEEPER, kafka, None)
            self._start_zookeeper()

    def pause_zookeeper(self) -> None:
        pause(self._running(ZOOKEEPER))

    def resume_zookeeper(self) -> None:
        send_signal(self._running(ZOOKEEPER), signal.SIGCONT)

    def wait_unregistered(self, broker: int) -> None:
        """Wait until ZooKeeper has no registration of that id."""
        with _session(self.zookeeper_port) as client:
            _wait_unregistered(client, {broker})

    # --- starting

    def _change(self, role: str, kafka: str | None, properties: Mapping[str, str] | None) -> None:
        if kafka is None and properties is None:
            return
        server = self._state.server(role)
        if server.alive:
            raise UsageError(f"{role} runs; stop it before you change its Kafka or its settings")
        server = replace(
            server,
            kafka=server.kafka if kafka is None else _existing(kafka),
            properties=server.properties if properties is None else dict(properties),
        )
        write_state(self.folder, self._state.with_server(server))

    def _locked(self) -> AbstractContextManager[int]:
        return locked(self.folder / _LOCK, on_wait=lambda: self._progress(_WAITING))

    def _start_missing(self) -> None:
        missing = [server for server in self._state.servers if not server.alive]
        if not missing:
            self._progress("the local cluster is running already")
        try:
            if not self._state.kraft:
                self._start_zookeeper()
            self._start_brokers(self._state.brokers)
        except BaseException:
            self._stop([self._state.server(server.role) for server in missing], now=True)
            raise

    def _start_zookeeper(self) -> None:
        server = self._state.zookeeper
        if not server.alive:
            self._progress("starting ZooKeeper")
            self._launch(server)
        self._wait([ZOOKEEPER], lambda: _zookeeper_missing(server.port))

    def _start_brokers(self, servers: Sequence[Server]) -> None:
        if self._state.kraft:
            self._start_kraft(servers)
        else:
            self._start_zookeeper_brokers(servers)

    def _start_kraft(self, servers: Sequence[Server]) -> None:
        missing = [server for server in servers if not server.alive]
        if missing:
            self._progress(f"starting {_broker_names({s.broker for s in missing if s.broker is not None})}")
        for server in missing:
            self._format(server)
            self._launch(server)
        self._wait([server.role for server in servers], lambda: self._quorum_not_ready(servers))

    def _format(self, server: Server) -> None:
        """Prepare the server's data folder for this cluster's id; a prepared folder stays as it is."""
        java, class_path = self._runtime(server)
        properties = self._write_properties(server)
        command = server_files.format_command(java, class_path, properties, cluster_id=self.cluster_id)
        folder = self.folder / server.role  # where the broker starts too: its settings may name paths from there
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANGS_S)
        if done.returncode:
            raise LocalClusterError(f"{server.role}: its data cannot be prepared: {done.stderr.strip()}")

    def _quorum_not_ready(self, servers: Sequence[Server]) -> str | None:
        """Return what is still missing: an answer from a broker, or a broker that it must know."""
        alive = {s.broker for s in self._state.brokers if s.alive and s.broker is not None}
        for server in servers:
            answer = ask_broker(server.port, timeout_s=_ANSWER_S)
            if answer is None:
                return f"broker {server.broker} does not answer on port {server.port} yet"
            if not alive <= answer.brokers:
                return f"broker {server.broker} does not know every broker yet"
        return None

    def _start_zookeeper_brokers(self, servers: Sequence[Server]) -> None:
        missing = [server for server in servers if not server.alive]
        wanted = {server.broker for server in servers if server.broker is not None}
        with _session(self.zookeeper_port) as client:
            ids = {server.broker for server in missing if server.broker is not None}
            if ids & _registered(client):
                self._progress(
                    f"waiting until ZooKeeper ends the session of the dead {_broker_names(ids & _registered(client))}"
                )
                _wait_unregistered(client, ids)
            if missing:
                self._progress(f"starting {_broker_names(ids)}")
            for server in missing:
                self._launch(server)
            roles = [server.role for server in servers]
            self._wait(roles, lambda: self._not_ready(client, wanted))
            write_state(self.folder, replace(self._state, cluster_id=_cluster_id(client)))

    def _not_ready(self, client: KazooClient, wanted: set[int]) -> str | None:
        """Say what is missing: a registration, the controller, an answer, or what the answering broker must know."""
        from kazoo.exceptions import ConnectionLoss, SessionExpiredError

        try:
            registered, controller = _registered(client), _controller(client)
        except (ConnectionLoss, SessionExpiredError):  # a busy machine let it end; kazoo begins a new one
            return "the session with ZooKeeper has ended; a new one begins"
        if absent := wanted - registered:
            return f"{_broker_names(absent)} not registered yet"
        if controller is None:
            return "no controller elected yet"
        for broker in sorted(wanted):
            answer = ask_broker(self.broker_ports[broker], timeout_s=_ANSWER_S)
            if answer is None:
                return f"broker {broker} does not answer on port {self.broker_ports[broker]} yet"
            if answer.brokers != registered or answer.controller != controller:
                return f"broker {broker} does not know every broker and the controller yet"
        return None

    def _runtime(self, server: Server) -> tuple[Path, Sequence[Path]]:
        """Java and the class path, searched and checked once."""
        if server.kafka not in self._runtimes:
            self._runtimes[server.kafka] = (
                find_java(newest=newest_java(server.kafka)),
                kafka_jars(server.kafka, progress=self._progress),
            )
        return self._runtimes[server.kafka]

    def _launch(self, server: Server) -> None:
        if not wait_port_free(server.port, timeout_s=_PORT_S if server.process else 0.0):
            raise LocalClusterError(
                f"port {server.port} of {server.role} is taken by another process; give another port"
            )
        command = self._command(server)
        log = self._log(server.role)
        _rotate(log)
        self._launches.setdefault(server.role, []).append(log.stat().st_size if log.exists() else 0)
        process = spawn(command, log=log, folder=self.folder / server.role, environment=os.environ)
        write_state(self.folder, self._state.with_process(server.role, process))

    def _command(self, server: Server) -> list[str]:
        """Write the server's property file, and return the command that starts it."""
        java, class_path = self._runtime(server)
        name, log_settings = server_files.log_settings(class_path)
        log4j = self.folder / name
        log4j.write_text(log_settings, encoding="utf-8")
        file = self._write_properties(server)
        if server.broker is None:
            return server_files.zookeeper_command(java, class_path, file, log4j=log4j)
        return server_files.broker_command(java, class_path, file, heap_mb=self._state.heap_mb, log4j=log4j)

    def _write_properties(self, server: Server) -> Path:
        folder = self.folder / server.role
        file = folder / f"{'zookeeper' if server.broker is None else 'server'}.properties"
        folder.mkdir(exist_ok=True)
        file.write_text(server_files.properties_text(self._properties(server)), encoding="utf-8")
        return file

    def _properties(self, server: Server) -> dict[str, str]:
        data = self.folder / server.role / "data"
        if server.broker is None:
            return server_files.zookeeper_properties(data, server.port)
        if self._state.kraft:
            return server_files.kraft_properties(
                server.broker,
                rack=server.rack or "",
                port=server.port,
                controller_ports={
                    s.broker: s.controller_port for s in self._state.brokers if s.broker and s.controller_port
                },
                data=data,
                extra={**self._state.broker_properties, **server.properties},
            )
        return server_files.broker_properties(
            server.broker,
            rack=server.rack or "",
            port=server.port,
            zookeeper_port=self.zookeeper_port,
            data=data,
            extra={**self._state.broker_properties, **server.properties},
        )

    def _wait(self, roles: Sequence[str], missing: Callable[[], str | None]) -> None:
        wait_until_ready(
            missing, roles, timeout_s=HANGS_S, is_alive=self._is_alive, log_end=self._log_end, progress=self._progress
        )

    def _is_alive(self, role: str) -> bool:
        return self._state.server(role).alive or self._is_started_again(role)

    def _is_started_again(self, role: str) -> bool:
        """Start a broker again that ended because its first session did: a busy machine may hold it up that long."""
        server, began = self._state.server(role), self._launches.get(role, [])
        if server.broker is None or not 0 < len(began) <= _MOST_STARTS:
            return False
        with self._log(role).open(errors="replace") as log:
            log.seek(began[-1])
            if _SESSION_ENDED not in log.read():
                return False
        self._progress(f"{role} ended with its session in ZooKeeper, and is started again")
        self._launch(server)
        return True

    def _log_end(self, role: str) -> str:
        log = self._log(role)
        return f"{log} ends:\n{last_lines(log)}"

    # --- stopping

    def _stop(self, servers: Sequence[Server], *, now: bool) -> None:
        brokers = _marks(server for server in servers if server.broker is not None)
        zookeeper = _marks(server for server in servers if server.broker is None)
        if now:
            kill([*brokers, *zookeeper])
            return
        has_controller = self._state.kraft or zookeeper_answers(self.zookeeper_port)
        grace_s = _BROKER_GRACE_S if has_controller else _ORPHAN_GRACE_S
        stop(brokers, grace_s=grace_s)
        stop(zookeeper, grace_s=_ZOOKEEPER_GRACE_S)

    # --- status

    def _registrations(self) -> tuple[tuple[int, ...], int | None]:
        if not zookeeper_answers(self.zookeeper_port):
            return (), None
        with _session(self.zookeeper_port) as client:
            return tuple(sorted(_registered(client))), _controller(client)

    def _quorum(self) -> tuple[tuple[int, ...], int | None]:
        """Return the brokers that the first answering broker knows, and the leader of the quorum."""
        answers = (ask_broker(server.port) for server in self._state.brokers if server.alive)
        answer = next((answer for answer in answers if answer is not None), None)
        return (tuple(sorted(answer.brokers)) if answer else (), self._quorum_leader() if answer else None)

    def _quorum_leader(self) -> int | None:
        from topicops.edges.kafka.questions.cluster import quorum_of

        try:
            quorum = quorum_of({"bootstrap.servers": self.bootstrap_servers})
        except ClusterError:
            return None
        return quorum.leader if quorum and quorum.leader >= 0 else None

    def _broker(self, broker: int) -> Server:
        return self._state.server(broker_role(broker))

    def _running(self, role: str) -> ProcessMark:
        server = self._state.server(role)
        if server.process is None or not server.process.alive:
            raise LocalClusterError(f"{role} is not running; start it first")
        return server.process

    def _log(self, role: str) -> Path:
        return self.logs / f"{role}.log"

    @property
    def _state(self) -> ClusterState:
        """Read each time, because another command may have restarted a server."""
        state = read_state(self.folder)
        if state is None:
            raise LocalClusterError(f"{self.folder} no longer exists; start the cluster again with `topicops local up`")
        return state


def _existing(kafka: str) -> str:
    """Return the version that a user names. Raises ``UsageError``, before any write, if it was never released."""
    version = version_of(kafka)
    sums_of(version)
    return version


def _cluster_folder(home: Path) -> Path:
    return home.absolute() / "cluster"


def _make_folders(folder: Path) -> None:
    if "," in str(folder):
        raise LocalClusterError(f"{folder}: Kafka takes no folder with a comma in its path; name another with --home")
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalClusterError(f"{folder}: {error.strerror}; name a writable folder with --home") from error


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def _marks(servers: Iterable[Server]) -> list[ProcessMark]:
    return [server.process for server in servers if server.process is not None]


def _process_status(server: Server) -> ProcessStatus:
    alive = server.alive
    pid = server.process.pid if server.process and alive else None
    return ProcessStatus(role=server.role, pid=pid, port=server.port, alive=alive)


def _broker_names(brokers: Collection[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, sorted(brokers)))}"


def _zookeeper_missing(port: int) -> str | None:
    return None if zookeeper_answers(port, timeout_s=_ANSWER_S) else f"ZooKeeper does not answer on port {port} yet"


@contextmanager
def _session(zookeeper_port: int) -> Iterator[KazooClient]:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    client = KazooClient(hosts=f"127.0.0.1:{zookeeper_port}", timeout=4.0, logger=_kazoo_log)
    try:
        client.start(timeout=_SESSION_S)
        yield client
    except (KazooException, KazooTimeoutError) as error:
        raise ClusterUnreachableError(
            f"the local ZooKeeper on port {zookeeper_port}: {type(error).__name__}; see `topicops local status`"
        ) from error
    finally:
        client.stop()
        client.close()


def _registered(client: KazooClient) -> set[int]:
    from kazoo.exceptions import NoNodeError

    try:
        return {int(name) for name in client.get_children(f"{server_files.CHROOT}/brokers/ids")}
    except NoNodeError:
        return set()


def _controller(client: KazooClient) -> int | None:
    from kazoo.exceptions import NoNodeError

    try:
        return int(json.loads(client.get(f"{server_files.CHROOT}/controller")[0])["brokerid"])
    except NoNodeError:
        return None


def _cluster_id(client: KazooClient) -> str:
    return str(json.loads(client.get(f"{server_files.CHROOT}/cluster/id")[0])["id"])


def _wait_unregistered(client: KazooClient, brokers: set[int]) -> None:
    deadline = time.monotonic() + HANGS_S
    while remaining := _registered(client) & brokers:
        if time.monotonic() > deadline:
            raise LocalClusterError(f"{_broker_names(remaining)} still registered in ZooKeeper after {HANGS_S:.0f} s")
        time.sleep(_POLL_S)
