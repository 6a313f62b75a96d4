"""Rehearse a plan on the live cluster's snapshot, and the loss of brokers; nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

from topicops.features.rehearse.losses import RackLosses, without_each_rack
from topicops.features.rehearse.moving import MoveLosses, without_each_broker
from topicops.features.rehearse.played import Rehearsal, after_plan, rehearse
from topicops.flow.runs.access import read_live_topics
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.guards import require_planned_target
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import UsageError
from topicops.model.plans.changes import Change, GateWord
from topicops.model.plans.plan import Plan
from topicops.steps.specs.needed import no_topic


def rehearse_plan(
    run: EnvironmentRun, plan: Plan | None, *, brokers: Sequence[int], racks: Sequence[str], step: int | None
) -> Rehearsal:
    """Play the changes of a plan that run or are held, and lose these brokers and all brokers of these racks.

    Raises ``WrongTargetError`` for a plan of another cluster, ``UsageError`` for an unknown broker, rack or ``step``.
    """
    live, is_kraft = _live(run, plan)
    lost = {*brokers, *_brokers_of(live, racks)}
    return rehearse(live, _playable(plan), environment=run.environment, lost=lost, step=step, is_kraft=is_kraft)


def lose_each_rack(run: EnvironmentRun, plan: Plan | None) -> RackLosses:
    """Lose each rack in turn; with a plan, after all its changes. Raises as ``rehearse_plan``."""
    live, is_kraft = _live(run, plan)
    if plan is not None:
        live = after_plan(live, _playable(plan), is_kraft=is_kraft)
    return without_each_rack(live, environment=run.environment, after_plan=plan is not None)


def lose_each_broker(run: EnvironmentRun, plan: Plan) -> MoveLosses:
    """Lose each broker in turn before, while and after the moves of a plan run. Raises as ``rehearse_plan``."""
    live, _ = _live(run, plan)
    return without_each_broker(live, _playable(plan), environment=run.environment)


def _playable(plan: Plan | None) -> list[Change]:
    """Give the changes that run, or may run after an approval."""
    return [gated.change for gated in plan.changes if gated.gate is not GateWord.SKIPPED] if plan else []


def _live(run: EnvironmentRun, plan: Plan | None) -> tuple[ClusterSnapshot, bool]:
    """Read the snapshot with states and broker defaults, and whether KRaft rules the cluster."""
    from topicops.edges.kafka.questions.cluster import quorum_of

    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    access = run.access(environment)
    run.progress(f"Reading the live topics of {run.environment}")
    live = read_live_topics(access, states=True)
    if plan is not None:
        require_planned_target(plan, live.cluster_id, live.chroot)
    is_kraft = live.source == "kafka" and quorum_of(access.kafka("reader")) is not None
    return access.with_broker_answers(live), is_kraft


def _brokers_of(live: ClusterSnapshot, racks: Sequence[str]) -> list[int]:
    known = sorted({rack for rack in live.racks.values() if rack is not None})
    if unknown := [rack for rack in racks if rack not in known]:
        raise UsageError(f"no live broker is on rack {unknown[0]}; racks: {', '.join(known) or 'none'}")
    return [broker for broker, rack in live.racks.items() if rack in racks]
