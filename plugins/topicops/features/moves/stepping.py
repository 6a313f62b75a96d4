"""One step of an environment's moves on its real cluster: opens what the step needs, and holds the lease for seconds.

Whoever comes next goes on: apply when it accepts moves, the commands, or Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from topicops.edges.connections.lookup import principal_of
from topicops.edges.home.audit_log import AuditOrigin, FileAuditLog, StoredAuditLog, audit_log
from topicops.edges.home.memories import MemoryFile
from topicops.features.moves.carrying.audited import audited
from topicops.features.moves.carrying.ports import MoveCluster
from topicops.features.moves.carrying.still_asked import still_asked
from topicops.features.moves.carrying.values import MoveSettings, Sent, Stepped
from topicops.features.moves.record import MOVES, MovesRecord, read_moves
from topicops.flow.runs.access import PORT_WRAPPERS, Access
from topicops.flow.runs.files import commit_of_files, read_needed_specs
from topicops.flow.runs.run import EnvironmentRun, audit_folder
from topicops.model.errors import ArtifactError, TopicopsError
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Begun, Clock, LiveReader
from topicops.model.runs.results import OutcomeStatus
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment, EnvironmentSpec
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.needed import no_topic

if TYPE_CHECKING:
    from topicops.features.moves.edges.cluster import KafkaMoveCluster
    from topicops.model.ports import Lease


@contextmanager
def open_cluster(access: Access, reader: LiveReader) -> Iterator[KafkaMoveCluster]:
    """Ask and change the environment's cluster as the mover.

    Raises:
        UsageError: The mover's connection cannot be used.
        WrongTargetError: Its brokers belong to another cluster than the one that is read.
        ClusterError: None of them answers.
    """
    from topicops.features.moves.edges.cluster import KafkaMoveCluster

    properties, draining = access.kafka("mover"), access.environment.spec.cluster.draining
    with access.broker_views() as views, KafkaMoveCluster(properties, reader, views, draining=draining) as cluster:
        cluster.require_same_cluster()
        yield cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWrappers:
    """Gives each port of a step back as it is. Tests set another one, to end the process at a named request."""

    opened: Callable[[Access, LiveReader], AbstractContextManager[KafkaMoveCluster]] = open_cluster
    cluster: Callable[[MoveCluster], MoveCluster] = lambda cluster: cluster
    keep: Callable[[Callable[[MovesRecord], None]], Callable[[MovesRecord], None]] = lambda keep: keep
    tell: Callable[[Callable[[Sent], None]], Callable[[Sent], None]] = lambda tell: tell


STEP_WRAPPERS: ContextVar[StepWrappers] = ContextVar("STEP_WRAPPERS", default=StepWrappers())  # noqa: B039 - it is frozen


def take_step(run: EnvironmentRun, *, lock_timeout_s: float = 0.0) -> Stepped | None:
    """Make one step of the environment's moves; None where nothing of ours moves, waits or is owed.

    Raises:
        SpecError: The environment's file has errors. Of a topic whose files have errors, nothing that waits starts.
        LeaseHeldError: Another run is changing the cluster; nothing was sent.
        WrongTargetError: The cluster is not the environment's.
        ClusterError: The cluster could not be read; nothing was sent.
    """
    known = read_moves(run.home, run.environment)
    if known is None or known.is_idle:
        return None
    environment, desired = read_needed_specs(run.files, no_topic, run.progress).require()
    access = run.access(environment)
    with access.reader() as reader:
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        lease_to_take = access.lease(cluster_id, operation="moves", lock_timeout_s=lock_timeout_s)
        with PORT_WRAPPERS.get().lease(lease_to_take) as lease:
            reader.catch_up_with(lease)
            steps = _Steps(run.clock, access, reader, lease, desired, origin_of(run, access))
            record = steps.read()  # behind the lease: another step may have ended a moment ago
            return None if record.is_idle else steps.step(record)


@dataclass(frozen=True, slots=True)
class KafkaMover:
    """Implements ``model.ports.Mover`` for one apply, which holds the lease."""

    run: str
    steps: _Steps
    approvers: Mapping[str, str]

    def begin(self, changes: Sequence[GatedChange]) -> Mapping[str, Begun]:
        """Record the changes, make one step, and give what became of each.

        Raises ``TopicopsError`` before anything was recorded, such as for a right that the mover lacks.
        """
        steps = self.steps
        record = steps.read()
        steps.require_rights({gated.change.topic for gated in changes})
        record = steps.accepted(record, changes, self.run, self.approvers)
        steps.keep(record)
        taken = {move.digest for move in record.topics if move.partitions}  # a second try finds what the first recorded
        found = {g.digest: MOVING if g.digest in taken else _refused(g, record) for g in changes}
        try:
            became = steps.step(record).became
        except TopicopsError as error:
            return {d: replace(b, message=_later(error)) if d in taken else b for d, b in found.items()}
        return {digest: became.get(digest, begun) if digest in taken else begun for digest, begun in found.items()}


MOVING = Begun(OutcomeStatus.MOVING)


def kafka_mover(
    access: Access,
    *,
    clock: Clock,
    reader: LiveReader,
    lease: Lease,
    desired: Desired,
    approvers: Mapping[str, str],
    origin: AuditOrigin,
) -> KafkaMover:
    """Implements ``flow.runs.access.Moves.mover``."""
    return KafkaMover(access.run, _Steps(clock, access, reader, lease, desired, origin), approvers)


def _later(error: TopicopsError) -> str:
    return f"accepted; its first step ended early: {error}; the next step goes on"


def _refused(gated: GatedChange, record: MovesRecord) -> Begun:
    """Answer a change whose topic has an earlier move."""
    topic = gated.change.topic
    earlier = next((move.run for move in record.topics if move.topic == topic), "")
    way = f"wait until it has ended, or cancel it: topicops moves --cancel {topic}"
    return Begun(OutcomeStatus.REFUSED, f"{topic} has an earlier move, of {earlier}; {way}")


@dataclass(frozen=True, slots=True)
class _Steps:
    """What one step needs of the world."""

    clock: Clock
    access: Access
    reader: LiveReader
    lease: Lease
    desired: Desired
    origin: AuditOrigin

    @property
    def environment(self) -> Environment:
        return self.access.environment

    @property
    def file(self) -> MemoryFile[MovesRecord]:
        return MOVES.of(self.access.home, self.environment.name)

    def read(self) -> MovesRecord:
        """Return the record, an empty one before the first move. Raises ``ArtifactError`` for another cluster's."""
        cluster_id = self.reader.cluster_id()
        record = self.file.read() or MovesRecord(cluster_id=cluster_id)
        if record.cluster_id != cluster_id:
            raise ArtifactError(
                f"{self.file.path}: is about another cluster, {record.cluster_id!r}; remove it if that one is gone"
            )
        return record

    def keep(self, record: MovesRecord) -> None:
        STEP_WRAPPERS.get().keep(self.file.write)(record)

    def accepted(
        self, record: MovesRecord, changes: Sequence[GatedChange], run: str, approvers: Mapping[str, str]
    ) -> MovesRecord:
        """Return the record with these changes, the racks of now, and of a drain the brokers that the file drains."""
        from topicops.features.moves.carrying.step import accept

        draining = self.environment.spec.cluster.draining
        racks = {broker: found.rack for broker, found in self.reader.brokers().items()}
        return accept(record, changes, run, approvers, self.clock.utc(), draining=draining, racks=racks)

    def require_rights(self, topics: set[str]) -> None:
        with STEP_WRAPPERS.get().opened(self.access, self.reader) as cluster:
            cluster.require_rights(topics)

    def step(self, record: MovesRecord) -> Stepped:
        from topicops.features.moves.carrying.step import make_step

        audit, moves = self._audit_log(record), {move.topic: move for move in record.topics}
        wrappers = STEP_WRAPPERS.get()
        with wrappers.opened(self.access, self.reader) as cluster:
            return make_step(
                record,
                wrappers.cluster(cluster),
                settings=settings_of(self.environment.spec),
                keep=self.keep,
                confirm=self.lease.confirm,
                still_asked=lambda move: still_asked(move, self.desired, self.environment.spec),
                left_out=self.desired.left_out,
                clock=self.clock,
                tell=wrappers.tell(lambda sent: audit.append([audited(sent, moves)])),
            )

    def _audit_log(self, record: MovesRecord) -> FileAuditLog | StoredAuditLog:
        """Return the log, after a check that it can be continued: else nothing is sent."""
        approvers = {move.digest: move.approver for move in record.topics if move.approver}
        origin = replace(self.origin, approvers=approvers, comments={})
        found = audit_log(audit_folder(self.access.home), origin)
        found.check()
        return found


def settings_of(spec: EnvironmentSpec) -> MoveSettings:
    limits = spec.limits
    return MoveSettings(
        at_once=limits.moves_at_once,
        per_broker=limits.moves_per_broker,
        throttle=spec.apply.throttle,
        stuck_after=spec.verify.moves,
    )


def origin_of(run: EnvironmentRun, access: Access) -> AuditOrigin:
    """Return the origin of the lines of a step that no apply makes: the plan is that of the run that accepted."""
    return AuditOrigin(
        environment=run.environment,
        run=run.name,
        plan="",
        commit=commit_of_files(run.files),
        principals={"reassign": principal_of(access.kafka("mover"))},
    )
