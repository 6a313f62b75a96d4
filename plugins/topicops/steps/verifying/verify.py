"""Observe every changed topic until it is healthy twice in a row, or until its deadline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.plans.plan import Plan
from topicops.model.ports import BrokerMetadata, Clock, LiveReader
from topicops.model.release import Releases
from topicops.model.runs.results import IN_PLACE, Check, Outcome, OutcomeStatus
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.observation import Expectation, FindingKey, expectation_of
from topicops.steps.verifying.watch import Progress, Watch, WatchedTopic

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0
SHORTEST_PAUSE_S = 0.05

TOUCHED = (*IN_PLACE, OutcomeStatus.UNKNOWN)
"""Outcomes after which a topic must be as planned, or may be."""


def verify(
    plan: Plan,
    outcomes: Sequence[Outcome],
    *,
    reader: LiveReader,
    metadata: BrokerMetadata,
    deadlines: Verify,
    clock: Clock,
    progress: Callable[[Progress], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
    known_findings: Collection[FindingKey] = frozenset(),
    broker_defaults: BrokerDefaults | None = None,
    releases: Releases | None = None,
    source: Source = "zookeeper",
) -> tuple[Check, ...]:
    """Check every changed topic under every rule; sorted by topic and id, one check or more for each.

    Args:
        known_findings: What was wrong before apply (``findings_before_run``): reported as pre-existing, not waited for.
        source: What ``reader`` reads. With ``kafka``, the brokers' metadata is compared with their disks.

    An interrupt, or a cluster that stays unreachable, ends the waiting: the verdicts are those of the last observation.
    """
    watch = Watch(
        reader=reader,
        metadata=metadata,
        deadlines=deadlines,
        clock=clock,
        known_findings=frozenset(known_findings),
        broker_defaults=broker_defaults,
        releases=releases,
        cluster_id=plan.target.cluster_id,
        source=source,
        topics={expected.topic: WatchedTopic(expected) for expected in expectations(plan, outcomes)},
    )
    return settled(watch, clock=clock, progress=progress, interrupted=interrupted)


def settled(
    watch: Watch,
    *,
    clock: Clock,
    progress: Callable[[Progress], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Check, ...]:
    """Observe until no topic is waited for any more; the checks of the last observation."""
    wait = FIRST_WAIT_S
    while True:
        started = clock.now()
        has_changed = watch.observe()
        progress(watch.progress())
        if not watch.open_topics() or interrupted():
            return watch.checks()
        wait = FIRST_WAIT_S if has_changed else min(wait * 1.5, LONGEST_WAIT_S)
        # The wait counts from start to start, because observing many topics takes time too.
        clock.sleep(max(wait - (clock.now() - started), SHORTEST_PAUSE_S))


def expectations(plan: Plan, outcomes: Iterable[Outcome]) -> tuple[Expectation, ...]:
    """What each changed topic must be, by topic name."""
    touched = {outcome.digest for outcome in outcomes if outcome.status in TOUCHED}
    changes = sorted((g.change for g in plan.changes if g.digest in touched), key=lambda change: change.topic)
    return tuple(
        expectation_of(topic, list(group)) for topic, group in groupby(changes, key=lambda change: change.topic)
    )
