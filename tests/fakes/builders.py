"""Values for tests, with sensible defaults; each function is named after what it builds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypedDict, Unpack, cast

from fakes.changes import create_topic, delete_topic
from topicops.model.choices import Placement
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import (
    Assignment,
    Broker,
    ClusterSnapshot,
    DirectoriesByBroker,
    LiveTopic,
    LogDirectories,
    PartitionState,
)
from topicops.model.codes import Code
from topicops.model.plans.changes import (
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    Precondition,
    Target,
    digest_of,
)
from topicops.model.plans.delta import compared_overrides
from topicops.model.plans.plan import Approval, ChangeSet, ClusterState, PlanSource
from topicops.model.release import DELETE_BY_ID, USUAL, MissingRequests, Releases, missing_requests, of_release
from topicops.model.runs.facts import OwnerCounts, Reading
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Diagnostic, Location, Severity
from topicops.model.specs.environment import ApprovalWay, Cluster, Environment, EnvironmentSpec, Limits, Policy, Risk

CLUSTER_ID = "Nw0Yx8fRTlqHJ0fV3k2k5A"
NOW = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
TARGET = Target(environment="local", cluster_id=CLUSTER_ID, chroot="/kafka")
ENVIRONMENT_FILE = "topics/environments/local.yaml"


def broker(broker_id: int, rack: str | None = None) -> Broker:
    return Broker(id=broker_id, rack=rack, endpoints=(f"PLAINTEXT://127.0.0.1:{9000 + broker_id}",), epoch=broker_id)


def brokers(racks: Mapping[int, str | None]) -> dict[int, Broker]:
    """Live brokers, from racks by broker id."""
    return {broker_id: broker(broker_id, rack) for broker_id, rack in racks.items()}


THREE_BROKERS: Mapping[int, str | None] = {1: "r1", 2: "r2", 3: "r3"}


def round_robin(partitions: int, replication_factor: int = 3, *, over: Sequence[int] = (1, 2, 3)) -> Assignment:
    """Replicas of partition p start at the broker with index p and continue from there."""
    return {
        p: tuple(over[(p + replica) % len(over)] for replica in range(replication_factor)) for p in range(partitions)
    }


def topic_id(name: str) -> str:
    """22 characters that depend on the name."""
    return hashlib.sha256(name.encode()).hexdigest()[:22]


class LiveFields(TypedDict, total=False):
    topic_id: str | None
    adding: Assignment
    removing: Assignment
    overrides: Mapping[str, str]
    unstable: bool
    states: Mapping[int, PartitionState] | None


def live_topic(
    name: str, partitions: int = 3, *, assignment: Assignment | None = None, **fields: Unpack[LiveFields]
) -> LiveTopic:
    rows = round_robin(partitions) if assignment is None else assignment
    rest: LiveFields = {"topic_id": topic_id(name), **fields}
    return LiveTopic(name=name, czxid=100, mzxid=100, assignment=rows, **rest)


def partition_state(isr: Sequence[int], *, leader: int | None = None, leader_epoch: int = 0) -> PartitionState:
    """Return a state with the ISR's first member as its leader; -1 for an empty ISR."""
    first = isr[0] if isr else -1
    return PartitionState(
        leader=first if leader is None else leader,
        isr=tuple(isr),
        leader_epoch=leader_epoch,
        controller_epoch=1,
        version=0,
    )


def healthy_states(assignment: Assignment) -> dict[int, PartitionState]:
    """Return every partition led by its preferred leader, with a full ISR."""
    return {p: partition_state(row) for p, row in assignment.items()}


USUAL_RELEASES = Releases(USUAL, USUAL)


class SnapshotFields(TypedDict, total=False):
    controller_id: int | None
    deleting: Mapping[str, int]
    reassigning: frozenset[str]
    orphan_configs: frozenset[str]
    releases: Releases | None
    log_directories: DirectoriesByBroker | None
    missing_requests: MissingRequests


def alike(defaults: Mapping[str, str] | BrokerDefaults, brokers: Iterable[int] = THREE_BROKERS) -> BrokerDefaults:
    """These defaults of topic configs on each broker; as they are if they name brokers."""
    of_all = {name: value for name, value in defaults.items() if isinstance(name, str) and isinstance(value, str)}
    return dict.fromkeys(brokers, of_all) if of_all else cast("BrokerDefaults", defaults)


def reading(live: ClusterSnapshot, *, at: datetime) -> Reading:
    return Reading(
        read_at=at,
        source=live.source,
        cluster_id=live.cluster_id,
        topics=len(live.topics),
        partitions=live.partitions,
        brokers=len(live.brokers),
        topics_at_last_good_snapshot=None,
        host="a-host",
        home="a-token",
    )


def snapshot(
    *topics: LiveTopic,
    racks: Mapping[int, str | None] = THREE_BROKERS,
    broker_defaults: Mapping[str, str] | BrokerDefaults | None = None,
    **fields: Unpack[SnapshotFields],
) -> ClusterSnapshot:
    """Of healthy brokers, which offer what their release does, and deletes by id of topics that have one."""
    rest: SnapshotFields = {"controller_id": 1, "deleting": {}, "releases": USUAL_RELEASES, **fields}
    rest.setdefault("log_directories", {broker: LogDirectories(held={}) for broker in racks})
    oldest = (rest["releases"] or USUAL_RELEASES).oldest
    has_ids = any(topic.topic_id for topic in topics)
    missing = [ability for ability in of_release(oldest) if not (has_ids and ability is DELETE_BY_ID)]
    rest.setdefault("missing_requests", missing_requests(dict.fromkeys(racks, missing)))
    return ClusterSnapshot(
        cluster_id=CLUSTER_ID,
        chroot="/kafka",
        source="zookeeper",
        controller_epoch=1,
        brokers=brokers(racks),
        topics={topic.name: topic for topic in topics},
        broker_defaults=None if broker_defaults is None else alike(broker_defaults, racks),
        **rest,
    )


class OwnedFields(TypedDict, total=False):
    domain: str | None
    topics: int
    partitions: int
    missing: int
    different: int
    tombstoned: int
    unhealthy: int | None


class DesiredFields(TypedDict, total=False):
    lifecycle: Lifecycle
    reason: str
    not_before: datetime | None
    until: datetime | None
    topic_id: str | None
    replication_factor: int
    keyed: bool
    placement: Placement
    rack_aware: bool
    assignment: Assignment | None
    configs: Mapping[str, str | None]
    locations: Mapping[str, Location]


def location(name: str, line: int = 4) -> Location:
    return Location(f"topics/shop/{name}.yaml", line, 9)


def desired_topic(name: str, partitions: int = 3, **fields: Unpack[DesiredFields]) -> DesiredTopic:
    rest: DesiredFields = {"replication_factor": 3, "keyed": False, **fields}
    return DesiredTopic(name=name, owner="team-shop", location=location(name), partitions=partitions, **rest)


def tombstone(name: str, **fields: Unpack[DesiredFields]) -> DesiredTopic:
    rest: DesiredFields = {
        "lifecycle": Lifecycle.ABSENT,
        "reason": "Not used any more.",
        "replication_factor": 0,
        **fields,
    }
    return desired_topic(name, 0, **rest)


def paused_topic(name: str, partitions: int = 3, **fields: Unpack[DesiredFields]) -> DesiredTopic:
    rest: DesiredFields = {"lifecycle": Lifecycle.PAUSED, "reason": "Migration by hand.", **fields}
    return desired_topic(name, partitions, **rest)


def owner_counts(owner: str | None, **counts: Unpack[OwnedFields]) -> OwnerCounts:
    """Return what an owner has whose folder has its name; topics that no file names have neither."""
    none = OwnerCounts(owner=owner, domain=owner, missing=0, different=0, tombstoned=0, topics=0, partitions=0)
    return replace(none, **counts)


def desired_of(*topics: DesiredTopic) -> Desired:
    return Desired(
        environment="local", topics={topic.name: topic for topic in topics}, files=len(topics), digest="d" * 64
    )


def desired_like(live: LiveTopic) -> DesiredTopic:
    """Return the spec that asks for exactly what is live; the throttle of a move belongs to no spec."""
    return desired_topic(
        live.name,
        live.partitions,
        replication_factor=max(live.replication_factors),
        configs=dict(compared_overrides(live)),
    )


def environment(
    *, limits: Limits | None = None, policy: Policy | None = None, min_live_brokers: int = 1, name: str = "local"
) -> Environment:
    """Return a sandbox; the locations of its values are lines of a file that need not exist."""
    cluster = Cluster(id=CLUSTER_ID, cluster_class="sandbox", min_live_brokers=min_live_brokers)
    paths = (
        "cluster.minLiveBrokers",
        "limits.deletesPerRun",
        "limits.deletesPercent",
        "limits.replicasPerRun",
        "limits.createsPerRun",
    )
    return Environment(
        name=name,
        spec=EnvironmentSpec(cluster=cluster, limits=limits or Limits(), policy=policy or Policy()),
        file=ENVIRONMENT_FILE,
        locations={path: Location(ENVIRONMENT_FILE, line, 5) for line, path in enumerate(paths, start=10)},
    )


def create_change(name: str, partitions: int = 3, *, configs: Mapping[str, str] | None = None) -> CreateTopic:
    return create_topic(name, *round_robin(partitions).values(), configs=configs)


def expand_change(name: str, before: int = 3, after: int = 6, *, risk: Risk = Risk.NOTICE) -> ExpandTopic:
    return ExpandTopic(
        topic=name,
        owner="team-shop",
        location=location(name),
        risk=risk,
        codes=(Code.KEYED_EXPANSION,) if risk is Risk.RISKY else (),
        reversible=False,
        precondition=Precondition(identity=topic_id(name), partitions=before),
        partitions_before=before,
        assignment_before=round_robin(before),
        partitions=after,
        assignment={p: row for p, row in round_robin(after).items() if p >= before},
    )


def configure_change(
    name: str,
    *,
    before: Mapping[str, str | None] | None = None,
    after: Mapping[str, str | None] | None = None,
    risk: Risk = Risk.NOTICE,
) -> ConfigureTopic:
    old = {"compression.type": None} if before is None else before
    return ConfigureTopic(
        topic=name,
        owner="team-shop",
        location=location(name),
        risk=risk,
        reversible=risk is not Risk.DESTRUCTIVE,
        precondition=Precondition(identity=topic_id(name), overrides=old),
        configs_before=old,
        configs={"compression.type": "zstd"} if after is None else after,
    )


def delete_change(name: str, partitions: int = 3) -> DeleteTopic:
    return delete_topic(live_topic(name, partitions), reason="Not used any more.")


def cluster_state(
    *, live_brokers: int = 3, managed_topics: int = 100, has_controller: bool = True, offline: int | None = None
) -> ClusterState:
    return ClusterState(
        live_brokers=live_brokers,
        has_controller=has_controller,
        offline_partitions=offline,
        live_topics=managed_topics,
        managed_topics=managed_topics,
    )


def change_set(changes: Iterable[Change], *, cluster: ClusterState | None = None) -> ChangeSet:
    return ChangeSet(
        target=TARGET,
        source=PlanSource(commit=None, desired_digest="d" * 64, topics=1),
        cluster=cluster or cluster_state(),
        changes=tuple(changes),
    )


def approval(
    *changes: Change, way: ApprovalWay = "question", approver: str | None = "bob", given_at: datetime | None = None
) -> Approval:
    """Return an approval of these changes, given just now unless another time is named."""
    return Approval(
        digests=frozenset(digest_of(change, TARGET) for change in changes),
        way=way,
        approver=approver,
        signature=f"{approver} (by {way})",
        given_at=given_at or datetime.now(UTC),
    )


def diagnostic(
    summary: str = "no owner",
    *,
    code: Code = Code.NOT_UTF8,
    file: str = "topics/a.yaml",
    line: int = 3,
    column: int = 5,
) -> Diagnostic:
    """Return an error of one character."""
    return Diagnostic(
        code=code,
        severity=Severity.ERROR,
        file=file,
        line=line,
        column=column,
        end_line=line,
        end_column=column + 1,
        summary=summary,
    )
