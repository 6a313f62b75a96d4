"""Verify the topics that a plan changed, until each is healthy or its deadline ends; or the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.plans.plan import Plan
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.model.release import Releases
from topicops.model.runs.moves import TopicMoves
from topicops.model.runs.results import IN_PLACE, Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.broker_checks import SOURCE_NAMES
from topicops.steps.verifying.checks import checks_of, findings
from topicops.steps.verifying.observation import (
    Expectation,
    FindingKey,
    Observation,
    broker_names,
    chosen_brokers,
    expectation_of,
    log_questions,
    merged,
    replica_questions,
)
from topicops.steps.verifying.watch import Progress, Watch, WatchedTopic

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0
SHORTEST_PAUSE_S = 0.05

NOTHING_MOVES: Mapping[str, TopicMoves] = MappingProxyType({})
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
    moving: Mapping[str, TopicMoves] = NOTHING_MOVES,
) -> tuple[Check, ...]:
    """Check every changed topic under every rule; sorted by topic and id, one check or more for each.

    Args:
        known_findings: What was wrong before apply (``findings_before_run``): reported as pre-existing, not waited for.
        source: What ``reader`` reads. With ``kafka``, the brokers' metadata is compared with their disks.
        moving: Topics whose replicas move by a plan of topicops, and how far they are; nothing waits for the end of it.

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
        topics={expected.topic: WatchedTopic(expected) for expected in expectations(plan, outcomes, moving)},
    )
    return settled(watch, progress=progress, interrupted=interrupted)


def settled(
    watch: Watch,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> tuple[Check, ...]:
    """Observe until no topic is waited for any more; the checks of the last observation."""
    clock, wait = watch.clock, FIRST_WAIT_S
    while True:
        started = clock.now()
        has_changed = watch.observe()
        progress(watch.progress())
        if not watch.open_topics() or interrupted():
            return watch.checks()
        wait = FIRST_WAIT_S if has_changed else min(wait * 1.5, LONGEST_WAIT_S)
        # The wait counts from start to start, because observing many topics takes time too.
        clock.sleep(max(wait - (clock.now() - started), SHORTEST_PAUSE_S))


def expectations(
    plan: Plan, outcomes: Iterable[Outcome], moving: Mapping[str, TopicMoves] = NOTHING_MOVES
) -> tuple[Expectation, ...]:
    """Return what each changed topic must be, by topic name. While its replicas move they need not be as planned."""
    changed = {outcome.digest for outcome in outcomes if outcome.status in (*TOUCHED, OutcomeStatus.MOVING)}
    running = {outcome.digest for outcome in outcomes if outcome.status is OutcomeStatus.MOVING}
    in_place = changed - running - {found.digest for found in moving.values()}
    found = (gated for gated in plan.changes if gated.digest in changed)
    by_topic = groupby(sorted(found, key=lambda gated: gated.change.topic), key=lambda gated: gated.change.topic)
    return tuple(
        replace(
            expectation_of(topic, [gated.change for gated in group if gated.digest in in_place]),
            moving=moving.get(topic),
        )
        for topic, group in by_topic
    )


def verify_cluster(
    snapshot: ClusterSnapshot,
    metadata: BrokerMetadata,
    *,
    confirmed: Callable[[Collection[str]], Collection[str]] = lambda names: names,
    moving: Mapping[str, TopicMoves] = NOTHING_MOVES,
) -> tuple[Check, ...]:
    """Check the health of every topic of one snapshot, which must hold the partition states.

    ``moving`` has the topics whose replicas move by a plan of topicops.
    ``confirmed`` reads the source again for names that only brokers know, and gives those that it still does not have.
    """
    views = metadata.views(chosen_brokers(snapshot.brokers), None)
    found = [
        check
        for seen in _observations(snapshot, metadata, views, moving)
        for check in checks_of(seen.expected, findings(seen), seen.parts_read)
    ]
    found += _topics_of_brokers_alone(snapshot, views, confirmed)
    if snapshot.controller_id is None:
        message = "no controller is elected"
        found.append(Check(id=Code.V13, topic="", verdict=Verdict.FAILED, message=message, code=Code.NO_CONTROLLER))
    return tuple(sorted(found, key=lambda check: (not check.topic, check.topic, check.id)))


def findings_before_run(
    snapshot: ClusterSnapshot, metadata: BrokerMetadata, *, topics: Collection[str]
) -> frozenset[FindingKey]:
    """Return keys of what is wrong with these topics now, so that ``verify`` does not blame the run for it.

    A topic whose partition states were not read is left out.
    """
    known = {name: snapshot.topics[name] for name in sorted(topics) if snapshot.topics[name].states is not None}
    views = metadata.views(chosen_brokers(snapshot.brokers), list(known))
    return frozenset(
        (seen.expected.topic, finding.check, subject)
        for seen in _observations(replace(snapshot, topics=known, deleting={}), metadata, views)
        for finding in findings(seen)
        for subject in finding.subjects
    )


def _observations(
    snapshot: ClusterSnapshot,
    metadata: BrokerMetadata,
    views: Mapping[int, BrokerView | str],
    moving: Mapping[str, TopicMoves] = NOTHING_MOVES,
) -> list[Observation]:
    """Return one observation of each topic of a snapshot, with the brokers' views and logs."""
    names = sorted(snapshot.topics.keys() | snapshot.deleting.keys())
    observed = [_observation(snapshot, name, views, moving.get(name)) for name in names]
    present = [seen for seen in observed if seen.live]
    questions = merged(replica_questions(seen) if seen.expected.absent else log_questions(seen) for seen in present)
    # A broker that gave no view does not answer: asking it again would only wait for the timeout again.
    answering = {broker: asked for broker, asked in questions.items() if isinstance(views.get(broker), BrokerView)}
    logs = metadata.logs(answering) if answering else {}
    # Logs of a topic that is being deleted are no finding; a failed disk is what the deletion may wait for.
    return [replace(seen, directories=logs) if seen.expected.absent else replace(seen, logs=logs) for seen in observed]


def _observation(
    snapshot: ClusterSnapshot, topic: str, views: Mapping[int, BrokerView | str], moving: TopicMoves | None
) -> Observation:
    deleting = topic in snapshot.deleting
    return Observation(
        # Of a topic that is marked for deletion only what keeps it alive matters, not its health.
        expected=Expectation(topic=topic, absent=deleting, moving=moving),
        traces=snapshot.traces(topic),
        brokers=frozenset(snapshot.brokers),
        controller_epoch=snapshot.controller_epoch,
        cluster_id=snapshot.cluster_id,
        source=snapshot.source,
        broker_defaults=snapshot.broker_defaults,
        releases=snapshot.releases,
        views={} if deleting else views,
    )


def _topics_of_brokers_alone(
    snapshot: ClusterSnapshot,
    views: Mapping[int, BrokerView | str],
    confirmed: Callable[[Collection[str]], Collection[str]],
) -> Iterator[Check]:
    """Yield a failed check for each topic that only brokers know: its znodes were removed by hand."""
    known = snapshot.topics.keys() | snapshot.deleting.keys()
    holders: dict[str, list[int]] = {}
    for broker, view in sorted(views.items()):
        for name in view.topics.keys() - known if isinstance(view, BrokerView) else ():
            holders.setdefault(name, []).append(broker)
    for name in confirmed(sorted(holders)) if holders else ():
        message = f"{_serving(holders[name])} it, and there is no such topic in {SOURCE_NAMES[snapshot.source]}"
        yield Check(
            id=Code.V14,
            topic=name,
            verdict=Verdict.FAILED,
            message=message,
            code=Code.BROKERS_DISAGREE,
            brokers=tuple(holders[name]),
        )


def _serving(brokers: Sequence[int]) -> str:
    return f"{broker_names(brokers)} {'serves' if len(brokers) == 1 else 'serve'}"
