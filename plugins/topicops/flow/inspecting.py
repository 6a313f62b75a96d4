"""Inspect without changing: what is wrong with a cluster, its topics, its drift from the files, and the audit logs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from topicops.edges.home.audit_files import audited_environments, read_audit_log
from topicops.flow.runs.access import Access
from topicops.flow.runs.lost_topics import known_lost_topics
from topicops.flow.runs.run import (
    DELTA_FILE,
    CountedSummary,
    Run,
    audit_folder,
    home_folder,
    home_is_set,
    read_environment,
    read_needed_specs,
)
from topicops.model.cluster.doctor_facts import (
    Area,
    DoctorFacts,
    DoctorReport,
    KafkaFacts,
    KafkaRole,
    MigrationFacts,
    UnreadArea,
    ZooKeeperFacts,
)
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import TopicopsError, UsageError
from topicops.model.ports import Clock, LiveReader
from topicops.model.runs.audit import AuditFile
from topicops.model.specs.desired import Desired, Lifecycle
from topicops.steps.clocks import difference_text
from topicops.steps.doctor import examine, examine_for_kraft, kraft_report
from topicops.steps.planning.cluster_guard import require_cluster_id
from topicops.steps.planning.drift import DriftReport, counted
from topicops.steps.planning.drift import drift as drift_step
from topicops.steps.planning.only import needs_of
from topicops.steps.reporting.cluster.drift_text import drift_lines, drift_summary, drift_values
from topicops.steps.specs.needed import no_topic
from topicops.steps.topic_listing import Listing, Wanted, list_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSummary(CountedSummary):
    """How many differences are of each kind."""

    summary: str
    differences: int


def topics(run: Run, wanted: Wanted) -> Listing:
    """The live topics that ``wanted`` lets through. Raises ``WrongTargetError`` for another cluster."""
    environment, desired = read_needed_specs(run, no_topic).require()
    access = run.access(environment)
    live = read_live_topics(access, states=bool(wanted.partitions))
    if wanted.partitions:
        live = access.with_broker_answers(live)
    return list_topics(live, wanted, environment=environment.name, managed=desired.topics.keys() | desired.left_out)


def drift(run: Run, *, only: str | None = None) -> DriftReport:
    """Where the live cluster differs from the files. Raises ``SpecError`` or ``WrongTargetError``; writes nothing."""
    run.progress(f"Reading {run.topics}")
    environment, desired = read_needed_specs(run, needs_of(only) or no_topic).require()
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(run.access(environment))
    live = replace(live, lost=known_lost_topics(run, live, desired))
    return drift_step(desired, live, environment, only=only)


def record_drift(run: Run, *, only: str | None = None) -> DriftSummary:
    """``drift.json``, and a line for each difference between the files and the snapshot of this run."""
    delta = run.read_delta() if run.store.has(DELTA_FILE) else None
    found = drift_step(run.read_desired(), run.read_live(), read_environment(run), only=only, delta=delta)
    for line in drift_lines(found.entries):
        run.progress(line)
    summary = drift_summary(found)
    run.progress(summary)
    path = run.store.write_json("drift.json", drift_values(found))
    counts = {kind.value: number for kind, number in counted(found.entries).items()}
    return DriftSummary(path=str(path), summary=summary, differences=len(found.entries), counts=counts)


def audit_files(environment: str | None) -> tuple[AuditFile, ...]:
    """The audit log of one environment, or all there are. Opens no connection.

    Raises:
        UsageError: The environment has none.
        ArtifactError: A log cannot be read.
    """
    folder = audit_folder(home_folder())
    known = audited_environments(folder)
    if environment is not None and environment not in known:
        others = f"there are logs of {', '.join(known)}" if known else "nothing was ever sent from this TOPICOPS_HOME"
        raise UsageError(f"{folder}: no audit log of {environment}; {others}")
    return tuple(read_audit_log(folder, name) for name in ([environment] if environment else known))


def read_live_topics(access: Access, *, states: bool = False) -> ClusterSnapshot:
    """The environment's own cluster as it is now. Raises ``WrongTargetError`` for another one."""
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), access.environment)
        return reader.snapshot(states=states)


def doctor(run: Run, *, spark_starts_slowly: bool = False) -> DoctorReport:
    """What can be read of the environment's cluster, and what is wrong with it; what cannot be read is a finding."""
    environment, desired = read_needed_specs(run, no_topic).require()
    access, unread = run.access(environment), dict[Area, UnreadArea]()
    snapshot, zookeeper, other_cluster_id = _read_source(access, unread)
    changing = _topics_to_change(desired, snapshot.topics if snapshot else ())
    kafka = _read_brokers(access, changing, unread)
    facts = DoctorFacts(
        snapshot=snapshot,
        zookeeper=zookeeper,
        kafka=kafka,
        unread=unread,
        other_cluster_id=other_cluster_id,
        home_is_set=home_is_set(),
        spark_starts_slowly=spark_starts_slowly,
        clock_difference=_clock_difference(access) if snapshot and snapshot.source == "kafka" else "",
    )
    return examine(facts, environment)


def doctor_for_kraft(run: Run) -> DoctorReport:
    """What stands in the way of a migration of the environment's cluster from ZooKeeper to KRaft; writes nothing."""
    from topicops.edges.kafka.questions.probe import SETTINGS_OF_MIGRATION

    environment, _ = read_needed_specs(run, no_topic).require()
    access, unread = run.access(environment), dict[Area, UnreadArea]()
    if _runs_with_kraft(access):
        return kraft_report(environment.name, "the brokers run with KRaft already: there is nothing to migrate")
    kafka = _read_brokers(access, {}, unread, settings=SETTINGS_OF_MIGRATION)
    if environment.spec.cluster.source != "zookeeper":
        place = environment.place_of("cluster.source")
        unread["zookeeper"] = UnreadArea(message=f"{place}: ZooKeeper is read only with source: zookeeper")
        return examine_for_kraft(DoctorFacts(snapshot=None, zookeeper=None, kafka=kafka, unread=unread), environment)
    snapshot, zookeeper, other_cluster_id = _read_source(access, unread)
    facts = DoctorFacts(
        snapshot=snapshot,
        zookeeper=zookeeper,
        kafka=kafka,
        unread=unread,
        other_cluster_id=other_cluster_id,
        migration=_read_migration(access, unread) if other_cluster_id is None and zookeeper is not None else None,
    )
    return examine_for_kraft(facts, environment)


def _runs_with_kraft(access: Access) -> bool:
    """False too where no broker answers: that is a finding of its own."""
    from topicops.edges.kafka.questions.quorum import quorum_of

    try:
        return quorum_of(access.kafka("reader")) is not None
    except TopicopsError:
        return False


def _clock_difference(access: Access) -> str:
    try:
        with access.reader() as reader:
            return difference_text(reader.server_time(), Clock())
    except TopicopsError:
        return ""


def _read_migration(access: Access, unread: dict[Area, UnreadArea]) -> MigrationFacts | None:
    try:
        with access.reader() as reader:
            return access.migration_facts(reader)
    except TopicopsError as error:
        unread["zookeeper"] = UnreadArea(message=str(error), code=error.code)
        return None


def _read_source(
    access: Access, unread: dict[Area, UnreadArea]
) -> tuple[ClusterSnapshot | None, ZooKeeperFacts | None, str | None]:
    """The environment's own cluster with states, what ZooKeeper says, and the id of another cluster that answered."""
    try:
        with access.reader() as reader:
            other = _other_cluster_id(reader, access, unread)
            snapshot = None if other or "snapshot" in unread else _whole_snapshot(reader, unread)
            facts = access.zookeeper_facts(reader, is_decodable=snapshot is not None or other is not None)
            return snapshot, facts, other
    except TopicopsError as error:
        area: Area = "zookeeper" if access.environment.spec.cluster.source == "zookeeper" else "snapshot"
        unread[area] = UnreadArea(message=str(error), code=error.code)
        return None, None, None


def _other_cluster_id(reader: LiveReader, access: Access, unread: dict[Area, UnreadArea]) -> str | None:
    """None: the environment's own cluster answered, or no cluster; the second is a problem of the snapshot."""
    found = None
    try:
        found = reader.cluster_id()
        require_cluster_id(found, access.environment)
    except TopicopsError as error:
        unread["snapshot"] = UnreadArea(message=str(error), code=error.code)
        return found
    return None


def _whole_snapshot(reader: LiveReader, unread: dict[Area, UnreadArea]) -> ClusterSnapshot | None:
    """With states; None and a problem if it cannot be read."""
    try:
        return reader.snapshot(states=True)
    except TopicopsError as error:
        unread["snapshot"] = UnreadArea(message=str(error), code=error.code)
        return None


def _topics_to_change(desired: Desired, live: Container[str]) -> dict[KafkaRole, list[str]]:
    """Live topics that a role may have to change: the deleter gets those with a tombstone."""
    named = [topic for name, topic in sorted(desired.topics.items()) if name in live]
    return {
        "applier": [topic.name for topic in named if topic.lifecycle is not Lifecycle.ABSENT],
        "deleter": [topic.name for topic in named if topic.lifecycle is Lifecycle.ABSENT],
    }


def _read_brokers(
    access: Access,
    topics: Mapping[KafkaRole, Sequence[str]],
    unread: dict[Area, UnreadArea],
    *,
    settings: Sequence[str] | None = None,
) -> KafkaFacts | None:
    from topicops.edges.kafka.questions.probe import SETTINGS, kafka_facts

    roles: tuple[KafkaRole, ...] = ("reader", "applier", "deleter")
    try:
        return kafka_facts({role: access.kafka(role) for role in roles}, topics=topics, settings=settings or SETTINGS)
    except TopicopsError as error:
        unread["brokers"] = UnreadArea(message=str(error), code=error.code)
        return None
