"""How one run reaches the outside world: every reader, client and lease of a run is opened here and nowhere else.

``READERS`` and ``LEASES`` list the functions that open a source or a lease, which import its heavy clients.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from topicops.edges.connections.client_properties import has_readable_password
from topicops.edges.connections.lookup import (
    BOOTSTRAP_SERVERS,
    Role,
    kafka_properties,
    place_of_kafka,
    zookeeper_address,
)
from topicops.edges.home.file_lease import FileLease, NoLease, lease_files, lease_name
from topicops.edges.places import Place
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import ClusterError, ClusterUnreachableError, UnsupportedTargetError, UsageError
from topicops.model.ports import (
    BROKER_PATIENCE,
    AuditLog,
    Clock,
    ClusterQuestions,
    ConnectionSource,
    Journal,
    Lease,
    LiveReader,
    Mover,
    TopicAdmin,
)
from topicops.model.printable import plural
from topicops.model.runs.moves import KnownMoves
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec, ZooKeeperEndpoint
from topicops.model.specs.topic_config import read_duration_ms
from topicops.steps.planning.moves import MovePlanner, NoPlanner
from topicops.steps.planning.right_cluster import require_cluster_id

if TYPE_CHECKING:
    from topicops.edges.connections.lookup import ZooKeeperAddress as ZooKeeperAddress
    from topicops.edges.home.artifacts import ArtifactStore
    from topicops.edges.home.audit_log import AuditOrigin
    from topicops.edges.kafka.admin import KafkaAdmin
    from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
    from topicops.edges.kafka.questions.broker_views import BrokerViews
    from topicops.edges.kafka.reader import KafkaReader
    from topicops.edges.zookeeper.reader import ZooKeeperReader

Port = TypeVar("Port")
PLAN_DEADLINE_S = 2.0
"""The least time that a plan gives brokers for what only they know; it follows the time of their first answer."""
VIEW_DEADLINE_S = 3.0
"""The least time that verify gives single brokers."""


def broker_patience_s() -> float:
    """Return ``$TOPICOPS_BROKER_PATIENCE`` in seconds; 0 without it. Raises ``UsageError`` for what is no duration."""
    text = os.environ.get(BROKER_PATIENCE) or "0s"
    try:
        return read_duration_ms(text) / 1000
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{BROKER_PATIENCE} is {text!r}: {error}; write 5s or 1m") from error


class Moves(MovePlanner, Protocol):
    """What a feature offers that moves replicas: it plans moves, carries them out, and knows which it has accepted."""

    def known(self, home: Place, environment: str, /) -> KnownMoves:
        """Return the moves of an environment that were accepted and have not ended. Raises ``ArtifactError``."""

    def mover(
        self,
        access: Access,
        *,
        clock: Clock,
        reader: LiveReader,
        lease: Lease,
        desired: Desired,
        approvers: Mapping[str, str],
        origin: AuditOrigin,
    ) -> Mover | None:
        """Return the mover of one apply, which holds the lease; None: reassignments are refused.

        Apply has checked the cluster's identity, and judged each change again by the files and the cluster of now.
        Nothing is opened before ``Mover.begin``.

        Args:
            desired: The files of now, by which the step learns whether they still ask for a move.
            approvers: Approver of each change whose approval counts, by digest.
            origin: Origin of the lines that the mover adds to the audit log; its principals have ``reassign``.
        """


class _NoMoves(NoPlanner):
    def known(self, *_: object) -> KnownMoves:
        return KnownMoves()

    def mover(self, *_: object, **__: object) -> None:
        return None


TAKEN_SERVERS = re.compile(r"[a-zA-Z0-9.-]+:[0-9]{1,5}(?:,[a-zA-Z0-9.-]+:[0-9]{1,5})*")
"""Addresses that each client takes, so that none needs to be made to know it."""
NO_MOVES: Moves = _NoMoves()
"""Stands in where no feature moves replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one run may open: the environment's cluster, in the name of the run."""

    environment: Environment
    run: str
    """Name of the run; shown to other runs that wait for the lease."""
    home: Place
    connections: ConnectionSource
    """Function that finds a connection by its id; asks for each of them once."""
    moves: Moves = NO_MOVES
    interrupted: Callable[[], bool] = lambda: False
    """Function that returns true to end waits for the lease and for brokers early."""

    def known_moves(self) -> KnownMoves:
        return self.moves.known(self.home, self.environment.name)

    def zookeeper(self) -> ZooKeeperAddress:
        return zookeeper_address(self.environment, self.connections)

    def kafka(self, role: Role) -> dict[str, str]:
        """Client properties of one role. Asks no broker, but who gives tokens.

        Raises ``UsageError`` where the connection is not known, or one of the two clients cannot use it, and as
        ``TokenSource.token`` where it logs in by token.
        """
        properties = kafka_properties(self.environment, role, self.connections)
        if [*properties] == [BOOTSTRAP_SERVERS] and TAKEN_SERVERS.fullmatch(properties[BOOTSTRAP_SERVERS]):
            return properties  # to import both clients takes longer than most plans
        from topicops.edges.kafka.clients.confluent import require_clients

        try:
            require_clients(properties)
        except UsageError as error:
            raise UsageError(f"{place_of_kafka(self.environment, role)}: {error}") from None
        except ClusterError as error:
            raise type(error)(f"{place_of_kafka(self.environment, role)}: {error}") from None
        return properties

    def login_notes(self) -> Iterator[str]:
        """Yield which roles send a password that anybody on the way can read; a login that is unknown here is left out.

        The command that uses such a login says what is wrong with it.
        """
        roles: tuple[Role, ...] = ("reader", "applier", "mover", "deleter")
        for role in roles:
            try:
                properties = kafka_properties(self.environment, role, self.connections)
            except UsageError:
                continue
            if has_readable_password(properties):
                place = place_of_kafka(self.environment, role)
                readable = f"anybody on the way can read it ({Code.READABLE_PASSWORD}; {place})"
                yield f"the {role} sends its password or token without TLS: {readable}"

    def reader(self) -> AbstractContextManager[LiveReader]:
        """Read the live cluster from the environment's ``source``.

        Raises:
            UsageError: The environment names no address, or a connection that cannot be used.
            ClusterUnreachableError: No server answers there.
            UnsupportedTargetError: The source is ZooKeeper, and the brokers run with KRaft.
        """
        return READERS[self.environment.spec.cluster.source](self)

    def lease(self, cluster_id: str, *, operation: str, lock_timeout_s: float) -> AbstractContextManager[Lease]:
        """Give the right to change the cluster. Raises ``LeaseHeldError`` on entering while another run has it."""
        return LEASES[self.environment.spec.cluster.lease](self, cluster_id, operation, lock_timeout_s)

    def admin(self, roles: Collection[Role]) -> AbstractContextManager[KafkaAdmin]:
        """Send changes as the first of these roles, in sorted order, and deletes as the deleter."""
        from topicops.edges.kafka.admin import KafkaAdmin

        properties = {role: self.kafka(role) for role in sorted(roles)}
        applier, deleter = next(iter(properties.values())), properties.get("deleter")
        return closing(KafkaAdmin(applier, deleter=deleter, interrupted=self.interrupted))

    def require_reachable_brokers(self, roles: Collection[Role]) -> None:
        """Raise ``ClusterUnreachableError`` where this host cannot use the addresses that the brokers advertise."""
        from topicops.edges.kafka.clients.diagnosis import require_reachable

        distinct = {repr(sorted(properties.items())): properties for properties in map(self.kafka, sorted(roles))}
        require_reachable([*distinct.values()])

    def questions(self, *, timeout_s: float = PLAN_DEADLINE_S) -> AbstractContextManager[BrokerQuestions]:
        """Ask brokers what only they know."""
        from topicops.edges.kafka.questions.broker_questions import BrokerQuestions

        patience_s, is_managed = max(timeout_s, broker_patience_s()), self.environment.spec.cluster.is_managed
        return closing(BrokerQuestions(self.kafka("reader"), timeout_s=patience_s, is_managed=is_managed))

    def broker_views(self) -> AbstractContextManager[BrokerViews]:
        """Ask named brokers for their own metadata and logs."""
        from topicops.edges.kafka.questions.broker_views import BrokerViews

        patience_s, is_managed = max(VIEW_DEADLINE_S, broker_patience_s()), self.environment.spec.cluster.is_managed
        return closing(BrokerViews(self.kafka("reader"), timeout_s=patience_s, is_managed=is_managed))

    def with_broker_answers(self, live: ClusterSnapshot) -> ClusterSnapshot:
        """Add the brokers' releases to the snapshot, and defaults that it lacks, as far as brokers give them."""
        with self.questions() as questions:
            return with_broker_answers(live, questions)


def with_broker_answers(live: ClusterSnapshot, questions: ClusterQuestions) -> ClusterSnapshot:
    """Add the brokers' answers to the snapshot: releases, missing requests, and defaults that it lacks."""
    defaults = questions.broker_defaults() if live.broker_defaults is None else live.broker_defaults
    releases, missing = questions.releases(), questions.missing_requests()
    return replace(live, broker_defaults=defaults, releases=releases, missing_requests=missing)


def with_log_directories(
    live: ClusterSnapshot, asked: Collection[str], new: Mapping[str, Collection[int]], questions: ClusterQuestions
) -> ClusterSnapshot:
    """Return the snapshot with each broker's log directories, and which logs it has of some partitions.

    Args:
        asked: Live topics of which each partition is asked for.
        new: Partitions that are to be created, by topic: a broker may have a log of an earlier topic of the name.
    """
    topics = {name: live.topics[name].assignment.keys() for name in asked if name in live.topics}
    both = {name: {*topics.get(name, ()), *new.get(name, ())} for name in topics.keys() | new.keys()}
    return replace(live, log_directories=questions.log_directories(both))


def zookeeper_of(connection_id: str, connections: ConnectionSource) -> ZooKeeperAddress:
    """Return the address that a run would use for a ZooKeeper connection. Raises ``UsageError``."""
    endpoint = ZooKeeperEndpoint(connection=connection_id)
    spec = EnvironmentSpec(cluster=Cluster(cluster_class="sandbox", zookeeper=endpoint))
    return zookeeper_address(Environment(name="", spec=spec, file="the connection"), connections)


def describe_zookeeper(address: ZooKeeperAddress) -> str:
    """Return ``cluster <id>, 3 live brokers``. Raises ``ClusterError``."""
    from topicops.edges.zookeeper.reader import ZooKeeperReader

    with ZooKeeperReader(address, timeout_s=5.0) as reader:
        return f"cluster {reader.cluster_id()}, {plural(len(reader.brokers()), 'live broker')}"


def read_live_topics(access: Access, *, states: bool = False) -> ClusterSnapshot:
    """Return the environment's own cluster as it is now. Raises ``WrongTargetError`` for another one."""
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), access.environment)
        return reader.snapshot(states=states)


@contextmanager
def zookeeper_reader(access: Access) -> Iterator[ZooKeeperReader]:
    """Read from ZooKeeper. If that fails because the brokers run with KRaft, the error names that reason."""
    from topicops.edges.zookeeper.reader import ZooKeeperReader

    with ExitStack() as stack:
        try:
            reader = stack.enter_context(ZooKeeperReader(access.zookeeper()))
        except (UsageError, ClusterUnreachableError) as error:
            _refuse_kraft(access, error)
            raise
        yield reader


def kafka_reader(access: Access) -> AbstractContextManager[KafkaReader]:
    """Read from the brokers, through the Admin API."""
    from topicops.edges.kafka.reader import KafkaReader

    return KafkaReader(access.kafka("reader"), is_managed=access.environment.spec.cluster.is_managed)


def zookeeper_lease(
    access: Access, _cluster_id: str, operation: str, lock_timeout_s: float
) -> AbstractContextManager[Lease]:
    from topicops.edges.zookeeper.lease import ZooKeeperLease

    environment = access.environment
    if environment.spec.cluster.source == "kafka":
        place = environment.place_of("cluster.lease")
        raise UsageError(f"{place}: with source: kafka the lease is home, file or none; write lease: home")
    return ZooKeeperLease(
        access.zookeeper(),
        run=access.run,
        operation=operation,
        lock_timeout_s=lock_timeout_s,
        interrupted=access.interrupted,
    )


def home_lease(access: Access, cluster_id: str, operation: str, lock_timeout_s: float) -> AbstractContextManager[Lease]:
    """Lock a file of the home, and one of this host; in a store it is an object, which counts for all hosts."""
    if isinstance(access.home, Path):
        return file_lease(access, cluster_id, operation, lock_timeout_s)
    from topicops.edges.home.stored_lease import StoredLease

    place = access.home / "lease" / lease_name(cluster_id, "json")
    return StoredLease(
        place, run=access.run, operation=operation, lock_timeout_s=lock_timeout_s, interrupted=access.interrupted
    )


def file_lease(access: Access, cluster_id: str, operation: str, lock_timeout_s: float) -> AbstractContextManager[Lease]:
    if not isinstance(access.home, Path):
        place = access.environment.place_of("cluster.lease")
        raise UsageError(f"{place}: TOPICOPS_HOME is an object store, which has no file to lock: write lease: home")
    files = lease_files(access.home, cluster_id)
    return FileLease(
        files, run=access.run, operation=operation, lock_timeout_s=lock_timeout_s, interrupted=access.interrupted
    )


READERS: Mapping[str, Callable[[Access], AbstractContextManager[LiveReader]]] = {
    "zookeeper": zookeeper_reader,
    "kafka": kafka_reader,
}
"""The function that opens each word of ``model.choices.SOURCES``."""
LEASES: Mapping[str, Callable[[Access, str, str, float], AbstractContextManager[Lease]]] = {
    "zookeeper": zookeeper_lease,
    "home": home_lease,
    "file": file_lease,
    "none": lambda *_: NoLease(),
}
"""The function that opens each word of ``model.choices.LEASES``; takes cluster id, operation and seconds to wait."""


def _refuse_kraft(access: Access, error: Exception) -> None:
    """Raise ``UnsupportedTargetError`` if the brokers answer as KRaft brokers; if they do not answer, do nothing."""
    from topicops.edges.kafka.questions.cluster import quorum_of

    try:
        quorum = quorum_of(access.kafka("reader"))
    except (UsageError, ClusterError):
        return
    if quorum is not None:
        raise UnsupportedTargetError(
            f"{access.environment.place_of('cluster.source')}: the brokers run with KRaft, without ZooKeeper; "
            "set `source: kafka`, and no lease, or `lease: home`"
        ) from error


def _as_it_is(port: Port) -> Port:
    return port


@dataclass(frozen=True, slots=True, kw_only=True)
class PortWrappers:
    """Gives each port back as it is. Tests set another one, which wraps ports to stop a run at a named step.

    ``earlier``: those of a run that ended in the middle, while its open intents are closed.
    """

    store: Callable[[ArtifactStore], ArtifactStore] = _as_it_is
    lease: Callable[[AbstractContextManager[Lease]], AbstractContextManager[Lease]] = _as_it_is
    reader: Callable[[LiveReader], LiveReader] = _as_it_is
    admin: Callable[[TopicAdmin], TopicAdmin] = _as_it_is
    journal: Callable[[Journal], Journal] = _as_it_is
    audit: Callable[[AuditLog], AuditLog] = _as_it_is
    earlier_journal: Callable[[Journal], Journal] = _as_it_is
    earlier_audit: Callable[[AuditLog], AuditLog] = _as_it_is


PORT_WRAPPERS: ContextVar[PortWrappers] = ContextVar("PORT_WRAPPERS", default=PortWrappers())  # noqa: B039 - it is frozen
