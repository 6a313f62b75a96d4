"""Changes and plans in one line: a test names what matters, everything else has a default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from topicops.edges.home.audit_log import AuditOrigin
from topicops.model.cluster.snapshot import Assignment, LiveTopic
from topicops.model.codes import Code
from topicops.model.json_types import assignment_digest
from topicops.model.plans.changes import (
    ACTIONS,
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    MoveReason,
    Precondition,
    ReassignTopic,
    Target,
    audited_request,
    digest_of,
)
from topicops.model.plans.plan import Blocked, ChangeSet, ClusterState, GatedChange, Plan, PlanSource, TopicActivity
from topicops.model.runs.results import Mutation, OutcomeStatus
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Cluster, EnvironmentSpec, Risk
from topicops.model.specs.topic_config import canonical_overrides

TARGET = Target(environment="local", cluster_id="fake-cluster", chroot="/kafka")
CLUSTER = ClusterState(live_brokers=3, has_controller=True, offline_partitions=0, live_topics=0, managed_topics=0)


def rows(*replicas: Sequence[int], first: int = 0) -> Assignment:
    """Return an assignment of these rows; partition ids count from ``first``."""
    return {first + index: tuple(row) for index, row in enumerate(replicas)}


def create_topic(topic: str, *replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> CreateTopic:
    return CreateTopic(
        topic=topic,
        owner="team-shop",
        location=_location(topic),
        risk=Risk.SAFE,
        reversible=True,
        precondition=Precondition(absent=True),
        partitions=len(replicas),
        replication_factor=len(replicas[0]),
        assignment=rows(*replicas),
        configs=configs or {},
    )


def expand_topic(live: LiveTopic, *new_replicas: Sequence[int]) -> ExpandTopic:
    """Add the given rows to a topic as it is now."""
    return ExpandTopic(
        topic=live.name,
        owner="team-shop",
        location=_location(live.name),
        risk=Risk.RISKY,
        codes=(Code.KEYED_EXPANSION,),
        reversible=False,
        precondition=Precondition(
            identity=live.identity,
            partitions=live.partitions,
            assignment_digest=assignment_digest(live.target_assignment),
        ),
        partitions_before=live.partitions,
        assignment_before=live.target_assignment,
        partitions=live.partitions + len(new_replicas),
        assignment=rows(*new_replicas, first=live.partitions),
    )


def configure_topic(live: LiveTopic, configs: Mapping[str, str | None]) -> ConfigureTopic:
    """Set overrides of a topic as it is now, or remove them with None."""
    found = canonical_overrides(live.overrides)
    before = {name: found.get(name) for name in configs}
    return ConfigureTopic(
        topic=live.name,
        owner="team-shop",
        location=_location(live.name),
        risk=Risk.NOTICE,
        reversible=True,
        precondition=Precondition(identity=live.identity, overrides=before),
        configs_before=before,
        configs=configs,
    )


def delete_topic(live: LiveTopic, *, reason: str = "replaced") -> DeleteTopic:
    return DeleteTopic(
        topic=live.name,
        owner="team-shop",
        location=_location(live.name),
        risk=Risk.DESTRUCTIVE,
        reversible=False,
        precondition=Precondition(identity=live.identity, partitions=live.partitions),
        topic_id=live.topic_id,
        partitions=live.partitions,
        reason=reason,
    )


def reassign_topic(
    live: LiveTopic,
    *target: Sequence[int],
    why: MoveReason = MoveReason.FACTOR,
    copied_bytes: int | None = None,
    location: Location | None = None,
) -> ReassignTopic:
    """Move the replicas of a topic as it is now to the given rows; partitions whose row stays are left out."""
    moved = {p: row for p, row in rows(*target).items() if row != live.assignment[p]}
    return ReassignTopic(
        topic=live.name,
        owner="" if location else "team-shop",
        location=location or _location(live.name),
        risk=Risk.RISKY,
        reversible=True,
        precondition=Precondition(identity=live.identity),
        why=why,
        assignment_before={p: live.assignment[p] for p in moved},
        assignment=moved,
        copied_bytes=copied_bytes,
    )


def plan_of(
    *changes: Change,
    gates: Mapping[str, GateWord] | None = None,
    activity: Mapping[str, TopicActivity] | None = None,
    blocked: Sequence[Blocked] = (),
    unmanaged: Sequence[str] = (),
) -> Plan:
    """Return a plan of these changes; all run, except topics for which ``gates`` has another word."""
    words = gates or {}
    gated = tuple(
        GatedChange(
            change=change,
            digest=digest_of(change, TARGET),
            gate=words.get(change.topic, GateWord.RUN),
            reasons=() if words.get(change.topic, GateWord.RUN) is GateWord.RUN else ("needs an approval",),
            approvable=words.get(change.topic) is GateWord.HELD,
        )
        for change in changes
    )
    change_set = ChangeSet(
        target=TARGET,
        source=PlanSource(commit=None, desired_digest="0" * 64, topics=len(changes)),
        cluster=CLUSTER,
        changes=tuple(changes),
        blocked=tuple(blocked),
        unmanaged=tuple(unmanaged),
        activity=activity or {},
    )
    return Plan(change_set=change_set, changes=gated)


def plan_to_create(*topics: str, held: Sequence[str] = (), skipped: Sequence[str] = ()) -> Plan:
    """Return a plan that creates these topics, and the held and skipped ones after them."""
    gates = dict.fromkeys(held, GateWord.HELD) | dict.fromkeys(skipped, GateWord.SKIPPED)
    return plan_of(*(create_topic(topic, (1, 2)) for topic in (*topics, *held, *skipped)), gates=gates)


def mutation_of(
    change: Change, *, digest: str = "d" * 64, status: OutcomeStatus = OutcomeStatus.DONE, answer: str = "accepted"
) -> Mutation:
    """Return what the audit log is told of a change for which one request was sent, without ids."""
    return Mutation(
        action=change.action,
        topic=change.topic,
        digest=digest,
        request=audited_request(change),
        requests=1,
        answer=answer,
        status=status,
        id_before=None,
        id_after=None,
    )


def audit_origin(run: str = "cli/1", *, environment: str = "local", plan: str = "f" * 64) -> AuditOrigin:
    """Return what the lines of one apply have in common, of a commit that nobody knows."""
    principals = dict.fromkeys(ACTIONS, "User:applier")
    return AuditOrigin(environment=environment, run=run, plan=plan, commit=None, principals=principals)


def sandbox() -> EnvironmentSpec:
    """Return an environment with every default."""
    return EnvironmentSpec(cluster=msgspec.convert({"class": "sandbox"}, Cluster))


def _location(topic: str) -> Location:
    return Location(f"topics/shop/{topic}.yaml", 4, 9)
