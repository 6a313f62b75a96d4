"""gate: which changes run, which are held for an approval, and which are skipped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from topicops.model.codes import Code
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import (
    Change,
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    GateWord,
    MoveReason,
    ReassignTopic,
    digest_of,
)
from topicops.model.plans.plan import ChangeSet, ClusterState, GatedChange, Plan
from topicops.model.printable import plural
from topicops.model.specs.environment import BUILT_IN_PROTECTED_TOPICS, Environment

STRICTNESS = (GateWord.RUN, GateWord.HELD, GateWord.SKIPPED)
NO_APPROVALS: frozenset[str] = frozenset()


def gate(
    change_set: ChangeSet,
    environment: Environment,
    *,
    approved: Collection[str] = NO_APPROVALS,
    waits: Sequence[str] = (),
) -> Plan:
    """Sort every change into run, held or skipped, with all its reasons.

    Args:
        approved: Digests of changes that a person has approved; they cover exactly those.
        waits: Why nothing may be sent to this environment yet; no approval lifts that.
    """
    too_many: Mapping[str, Sequence[str]] = {
        CreateTopic.action: list(_create_limit_reasons(change_set, environment)),
        DeleteTopic.action: list(delete_limit_reasons(change_set, environment)),
    }
    far_too_many = list(delete_percent_reasons(change_set, environment))
    replicas = copied = 0
    gated = []
    for change in change_set.changes:
        digest = digest_of(change, change_set.target)
        skipping = [*_protection_reasons(change, environment)]
        skipping += _by_name_reasons(change, environment)
        skipping += _state_reasons(change, change_set.cluster, environment)
        skipping += _expansion_reasons(change, environment)
        skipping += _budget_reasons(change, environment, used=replicas)
        skipping += _move_reasons(change, change_set, environment, copied=copied)
        skipping += waits
        holding = [*_risk_reasons(change, environment), *_unattended_moves(change), *too_many.get(change.action, ())]
        final = far_too_many if isinstance(change, DeleteTopic) else []
        entry = _gated(change, digest, skipping=skipping, final=final, holding=() if digest in approved else holding)
        if entry.gate is GateWord.RUN:
            replicas += _new_replicas(change)
            copied += (change.copied_bytes or 0) if isinstance(change, ReassignTopic) else 0
        gated.append(entry)
    return Plan(change_set=change_set, changes=tuple(gated), command_approves=environment.spec.command_approves)


def strictest_of(first: Plan, second: Plan, *, approved: Collection[str] = NO_APPROVALS) -> Plan:
    """Return the second plan with the stricter word of both gates on each change; equal words keep all reasons.

    Args:
        first: As it was gated before, without approvals; a change that is approvable there runs once it is approved.
        second: Gated again, with the approvals.

    Raises ``ArtifactError``: They are not gates of the same changes.
    """
    before = {entry.digest: with_approval(entry, approved) for entry in first.changes}
    if before.keys() != {entry.digest for entry in second.changes}:
        raise ArtifactError("the two gates are not of the same changes; plan again")
    return replace(second, changes=tuple(_stricter(entry, before[entry.digest]) for entry in second.changes))


def with_approval(entry: GatedChange, approved: Collection[str]) -> GatedChange:
    """Return the entry as it is once these digests are approved."""
    if not entry.approvable or entry.digest not in approved:
        return entry
    return GatedChange(change=entry.change, digest=entry.digest, gate=GateWord.RUN)


def _create_limit_reasons(change_set: ChangeSet, environment: Environment) -> Iterator[str]:
    """Yield a reason when the plan creates more topics than one run may: the files may be for another cluster."""
    creates = sum(isinstance(change, CreateTopic) for change in change_set.changes)
    allowed, managed = environment.spec.limits.creates_per_run, change_set.cluster.managed_topics
    if creates > allowed:
        place = environment.place_of("limits.createsPerRun")
        live = f"{plural(managed, 'topic')} of these files {'is' if managed == 1 else 'are'} live"
        yield f"{Code.MANY_CREATES}: {plural(creates, 'create')}, {allowed} allowed: {live} ({place})"


def delete_limit_reasons(change_set: ChangeSet, environment: Environment) -> Iterator[str]:
    """Yield a reason when the plan holds more deletes than one run may do."""
    deletes, allowed = _deletes(change_set), environment.spec.limits.deletes_per_run
    if deletes > allowed:
        yield f"{plural(deletes, 'delete')}, {allowed} allowed ({environment.place_of('limits.deletesPerRun')})"


def delete_percent_reasons(change_set: ChangeSet, environment: Environment) -> Iterator[str]:
    """Yield a reason when the deletes are too large a share of the managed topics; no approval lifts it.

    All deletes of the whole plan count, so that ``--only`` cannot avoid the limit.
    """
    cluster = change_set.cluster
    deletes, managed = max(_deletes(change_set), cluster.planned_deletes), cluster.managed_topics
    percent = environment.spec.limits.deletes_percent
    allowed = max(1, -(-managed * percent // 100))
    if deletes > allowed:
        place = environment.place_of("limits.deletesPercent")
        yield f"{plural(deletes, 'delete')}, {allowed} allowed: {percent} % of {managed} managed topics ({place})"


def _deletes(change_set: ChangeSet) -> int:
    return sum(isinstance(change, DeleteTopic) for change in change_set.changes)


def _protection_reasons(change: Change, environment: Environment) -> Iterator[str]:
    """Yield a reason if the topic has become protected after the plan."""
    pattern = environment.protecting_pattern(change.topic)
    is_drained = isinstance(change, ReassignTopic) and change.why is MoveReason.DRAIN
    if is_drained and environment.spec.policy.drain_unmanaged == "allow":
        return
    if pattern is not None:
        is_built_in = pattern in BUILT_IN_PROTECTED_TOPICS
        place = "built in" if is_built_in else environment.place_of("policy.protectedTopics")
        yield f"{Code.PROTECTED_TOPIC}: the topic is protected by the pattern {pattern} ({place})"


def _by_name_reasons(change: Change, environment: Environment) -> Iterator[str]:
    if isinstance(change, DeleteTopic) and change.topic_id is None and environment.spec.delete_by_name == "refuse":
        place = environment.place_of("policy.deleteByName")
        yield f"{Code.DELETED_BY_NAME}: the topic has no topic id, and deletes by name are refused ({place})"


def _state_reasons(change: Change, cluster: ClusterState, environment: Environment) -> Iterator[str]:
    """Configs may change in any state; every other change needs all brokers, a controller and no offline partition."""
    if isinstance(change, ConfigureTopic):
        return
    needed = environment.spec.cluster.min_live_brokers
    if cluster.live_brokers < needed:
        place = environment.place_of("cluster.minLiveBrokers")
        yield f"{Code.FEW_BROKERS}: {plural(cluster.live_brokers, 'live broker')}, {needed} needed ({place})"
    if not cluster.has_controller:
        yield f"{Code.NO_CONTROLLER}: 0 controllers, 1 needed: none is elected"
    if cluster.offline_partitions:
        yield f"{plural(cluster.offline_partitions, 'offline partition')}, 0 allowed"


def _expansion_reasons(change: Change, environment: Environment) -> Iterator[str]:
    if not isinstance(change, ExpandTopic):
        return
    factor = environment.spec.limits.expansion_factor
    most = change.partitions_before * factor
    if change.partitions > most:
        place = environment.place_of("limits.expansionFactor")
        sum_of_it = f"{factor} times {change.partitions_before}"
        yield f"{Code.EXPANSION_FACTOR}: {change.partitions} partitions, {most} allowed: {sum_of_it} ({place})"


def _budget_reasons(change: Change, environment: Environment, *, used: int) -> Iterator[str]:
    allowed, wanted = environment.spec.limits.replicas_per_run, used + _new_replicas(change)
    if _new_replicas(change) and wanted > allowed:
        yield f"{wanted} new replicas in this run, {allowed} allowed ({environment.place_of('limits.replicasPerRun')})"


def _move_reasons(change: Change, change_set: ChangeSet, environment: Environment, *, copied: int) -> Iterator[str]:
    """Yield why the moves of this topic do not begin in this run.

    Args:
        copied: Bytes that the moves before it copy.
    """
    if not isinstance(change, ReassignTopic):
        return
    yield from change_set.move_obstacles.get(change.topic, ())
    if not change.added:
        return
    spec, most = environment.spec, environment.spec.limits.moved_bytes_per_run
    if spec.cluster.cluster_class == "production" and spec.apply.throttle is None:
        place = environment.place_of("apply.throttle")
        yield f"{Code.NO_THROTTLE}: a move that copies replicas needs a throttle in production ({place})"
    if most is None or (change.copied_bytes is not None and copied + change.copied_bytes <= most):
        return
    known = (
        f"{copied + change.copied_bytes} bytes" if change.copied_bytes is not None else "a number of bytes not known"
    )
    place = environment.place_of("limits.movedBytesPerRun")
    yield f"{Code.MANY_MOVED_BYTES}: {known} to copy in this run, {most} allowed ({place})"


def _unattended_moves(change: Change) -> Iterator[str]:
    """Yield why a move never runs without an approval, whatever ``policy.unattended`` says."""
    if not isinstance(change, ReassignTopic):
        return
    if change.why in (MoveReason.BALANCE, MoveReason.RACKS) and not change.is_order_only:
        yield f"a move for {change.why} always needs an approval"
    if Code.UNMANAGED_MOVE in change.codes:
        yield f"{Code.UNMANAGED_MOVE}: no file describes the topic, so its move always needs an approval"


def _new_replicas(change: Change) -> int:
    if not isinstance(change, CreateTopic | ExpandTopic):
        return 0
    return sum(map(len, change.assignment.values())) or change.new_partitions * change.replication_factor


def _risk_reasons(change: Change, environment: Environment) -> Iterator[str]:
    unattended = environment.spec.policy.unattended
    if change.risk.rank > unattended.rank:
        place = environment.place_of("policy.unattended")
        yield f"risk {change.risk}, up to {unattended} allowed without an approval ({place})"


def _gated(
    change: Change, digest: str, *, skipping: Collection[str], final: Collection[str], holding: Collection[str]
) -> GatedChange:
    """Gate one change: an approval lifts the reasons in ``holding``, and nothing lifts those in ``final``."""
    if skipping:
        return GatedChange(change=change, digest=digest, gate=GateWord.SKIPPED, reasons=tuple(skipping))
    reasons = (*final, *holding)
    if not reasons:
        return GatedChange(change=change, digest=digest, gate=GateWord.RUN)
    return GatedChange(change=change, digest=digest, gate=GateWord.HELD, reasons=reasons, approvable=not final)


def _stricter(one: GatedChange, other: GatedChange) -> GatedChange:
    if one.gate is not other.gate:
        return max(one, other, key=lambda entry: STRICTNESS.index(entry.gate))
    reasons = tuple(dict.fromkeys((*one.reasons, *other.reasons)))
    return replace(one, reasons=reasons, approvable=one.approvable and other.approvable)
