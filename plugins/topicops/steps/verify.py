"""Look at every touched topic, on both sides, until it is right twice in a row, or its time is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from topicops.model.environment import Verify
from topicops.model.errors import ClusterError
from topicops.model.plan import Plan
from topicops.model.ports import BrokerMetadata, BrokerView, LiveReader
from topicops.model.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.snapshot import ClusterSnapshot, LiveTopic, Source, TopicTraces
from topicops.steps.checks import MIN_ISR, Expected, Look, Problem, as_check, checked_ids, expected_of, problems

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0
MOST_BROKERS_ASKED = 32

TOUCHED = (OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO, OutcomeStatus.UNKNOWN)
"""Outcomes after which a topic shall be as planned, or may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far verify is."""

    healthy: int
    topics: int
    waiting_for: tuple[str, ...]
    """One sentence for each of the first topics that are not healthy yet."""


def verify(
    plan: Plan,
    outcomes: Sequence[Outcome],
    *,
    reader: LiveReader,
    metadata: BrokerMetadata,
    deadlines: Verify,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    progress: Callable[[Progress], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
    baseline: ClusterSnapshot | None = None,
    broker_defaults: Mapping[str, str] | None = None,
    source: Source = "zookeeper",
) -> tuple[Check, ...]:
    """Check every touched topic under every rule; sorted by topic and id, one check or more for each.

    ``baseline`` is the cluster before apply, with states: what was wrong then is pre-existing and not waited for.
    ``source`` is what ``reader`` reads: with ``kafka`` both sides are the brokers', their metadata and their disks.
    An interrupt, or a cluster that stays out of reach, ends the waiting: the verdicts are those of the last look.
    """
    watch = _Watch(
        reader=reader,
        metadata=metadata,
        deadlines=deadlines,
        clock=clock,
        known=baseline_problems(baseline, broker_defaults),
        default_min_isr=_default_min_isr(broker_defaults),
        source=source,
        topics={expected.topic: _Topic(expected) for expected in expectations(plan, outcomes)},
    )
    for wait in _waits():
        watch.look()
        progress(watch.progress())
        if not watch.open_topics() or interrupted():
            break
        sleep(wait)
    return watch.checks()


def expectations(plan: Plan, outcomes: Iterable[Outcome]) -> tuple[Expected, ...]:
    """Say what each touched topic shall be, by topic name."""
    touched = {outcome.digest for outcome in outcomes if outcome.status in TOUCHED}
    changes = sorted((g.change for g in plan.changes if g.digest in touched), key=lambda change: change.topic)
    return tuple(expected_of(topic, list(group)) for topic, group in groupby(changes, key=lambda change: change.topic))


def verify_cluster(
    snapshot: ClusterSnapshot,
    views: Mapping[int, BrokerView | str],
    *,
    broker_defaults: Mapping[str, str] | None = None,
) -> tuple[Check, ...]:
    """Check the health of every topic of one snapshot, which must hold the states; no plan, no waiting."""
    found: list[Check] = []
    for topic in sorted(snapshot.topics.keys() | snapshot.deleting.keys()):
        look = _snapshot_look(snapshot, topic, views, _default_min_isr(broker_defaults))
        found.extend(_checks(look.expected, problems(look), snapshot.source))
    if snapshot.controller_id is None:
        message = "no controller is elected"
        found.append(Check(id="V13", topic="", verdict=Verdict.FAILED, message=message, code="TOP421"))
    return tuple(found)


def chosen_brokers(brokers: Iterable[int], *, most: int = MOST_BROKERS_ASKED) -> tuple[int, ...]:
    """At most ``most`` of the brokers, evenly spread over their ids."""
    ids = sorted(brokers)
    if len(ids) <= most:
        return tuple(ids)
    return tuple(ids[index * len(ids) // most] for index in range(most))


def baseline_problems(
    baseline: ClusterSnapshot | None, broker_defaults: Mapping[str, str] | None = None
) -> frozenset[tuple[str, str, int | None]]:
    """Old trouble as (topic, check, partition): what the first side already showed before apply."""
    if baseline is None:
        return frozenset()
    looks = [_snapshot_look(baseline, topic, {}, _default_min_isr(broker_defaults)) for topic in baseline.topics]
    return frozenset((look.expected.topic, p.check, p.place) for look in looks for p in problems(look))


@dataclass(slots=True)
class _Topic:
    """One touched topic while it is watched."""

    expected: Expected
    problems: tuple[Problem, ...] = ()
    """Of the last look."""
    signature: object = None
    """Identity and leader epochs of the last look if it was healthy, else None."""
    is_settled: bool = False
    is_given_up: bool = False
    first_seen: dict[str, float] = field(default_factory=dict)
    """When each kind of problem was first seen; a kind that comes and goes does not start anew."""

    @property
    def is_open(self) -> bool:
        return not self.is_settled and not self.is_given_up


@dataclass(slots=True, kw_only=True)
class _Watch:
    """All touched topics, and the ports to look at them."""

    reader: LiveReader
    metadata: BrokerMetadata
    deadlines: Verify
    clock: Callable[[], float]
    known: frozenset[tuple[str, str, int | None]]
    default_min_isr: int
    source: Source
    topics: dict[str, _Topic]

    def open_topics(self) -> list[_Topic]:
        return [topic for topic in self.topics.values() if topic.is_open]

    def look(self) -> None:
        """Look once at every open topic; one that the cluster would not show counts as not led."""
        pending = self.open_topics()
        if not pending:
            return
        try:
            self._look_at(pending)
        except ClusterError as error:
            logger.warning("cannot look topics=%d: %s", len(pending), error)
            problem = Problem(check="V13", verdict=Verdict.DEGRADED, message=f"cannot be read: {error}")
            for topic in pending:
                self._judge(topic, (problem,), None)

    def progress(self) -> Progress:
        waiting = [f"{t.expected.topic}: {t.problems[0].message}" for t in self.open_topics() if t.problems]
        healthy = sum(topic.is_settled for topic in self.topics.values())
        return Progress(healthy=healthy, topics=len(self.topics), waiting_for=tuple(waiting[:5]))

    def checks(self) -> tuple[Check, ...]:
        return tuple(
            check
            for _, topic in sorted(self.topics.items())
            for check in _checks(topic.expected, topic.problems, self.source)
        )

    def _look_at(self, pending: Sequence[_Topic]) -> None:
        epoch = self.reader.controller_epoch()
        traces = self.reader.traces([topic.expected.topic for topic in pending], states=True)
        brokers = self.reader.brokers()
        if self.reader.controller_epoch() != epoch:
            self._controller_moved(pending)
            return
        looks = {
            topic.expected.topic: Look(
                expected=topic.expected,
                traces=traces[topic.expected.topic],
                brokers=frozenset(brokers),
                controller_epoch=epoch,
                default_min_isr=self.default_min_isr,
                source=self.source,
            )
            for topic in pending
        }
        # Each broker is asked only about what the first side already shows as right.
        right = {topic.expected.topic for topic in pending if not self._fresh(looks[topic.expected.topic])}
        views = self._views_for([topic for topic in pending if topic.expected.topic in right], looks, brokers)
        for topic in pending:
            look = looks[topic.expected.topic]
            if topic.expected.topic in right:
                look = replace(look, views=views)
            self._judge(topic, tuple(self._with_history(look.expected.topic, problems(look))), _signature(look.live))

    def _views_for(
        self, right: Sequence[_Topic], looks: Mapping[str, Look], brokers: Collection[int]
    ) -> Mapping[int, BrokerView | str]:
        """Ask the brokers that hold the topics; all of them when a topic may settle now."""
        if not right:
            return {}
        everyone = frozenset(chosen_brokers(brokers))
        may_settle = any(topic.signature is not None for topic in right)
        holders = {broker for topic in right for broker in _holders(looks[topic.expected.topic], everyone)}
        asked = everyone if may_settle else holders & frozenset(brokers)
        return self.metadata.views(sorted(asked), [topic.expected.topic for topic in right])

    def _fresh(self, look: Look) -> list[Problem]:
        """Problems on the first side that were not there before the run."""
        found = self._with_history(look.expected.topic, problems(look))
        return [problem for problem in found if problem.verdict is not Verdict.PRE_EXISTING]

    def _with_history(self, topic: str, found: Iterable[Problem]) -> Iterator[Problem]:
        for problem in found:
            if (topic, problem.check, problem.place) in self.known and problem.check in _HEALTH:
                yield _pre_existing(problem)
            else:
                yield problem

    def _controller_moved(self, pending: Sequence[_Topic]) -> None:
        message = "the controller changed during the look"
        problem = Problem(check="V13", verdict=Verdict.CONVERGING, message=message, code="TOP508")
        for topic in pending:
            self._judge(topic, (problem,), None)

    def _judge(self, topic: _Topic, found: tuple[Problem, ...], signature: object) -> None:
        fresh = [problem for problem in found if problem.verdict is not Verdict.PRE_EXISTING]
        if fresh:
            topic.problems, topic.signature = found, None
            topic.is_given_up = self._is_over(topic, fresh)
            return
        if topic.signature is not None and topic.signature != signature:
            message = "leaders changed between two looks"
            moved = Problem(check="V11", verdict=Verdict.CONVERGING, message=message)
            topic.problems, topic.signature = (*found, moved), signature
            topic.is_given_up = self._is_over(topic, [moved])
            return
        topic.is_settled = topic.signature == signature
        topic.problems, topic.signature = found, signature

    def _is_over(self, topic: _Topic, fresh: Sequence[Problem]) -> bool:
        """Whether a problem outlived the deadline of its kind; then waiting for the others is of no use."""
        now = self.clock()
        for problem in fresh:
            topic.first_seen.setdefault(_kind(problem), now)
        return any(now - topic.first_seen[_kind(problem)] >= self._patience_s(_kind(problem)) for problem in fresh)

    def _patience_s(self, kind: str) -> float:
        patience = {
            "leaders": self.deadlines.leaders,
            "isr": self.deadlines.isr,
            "metadata": self.deadlines.metadata,
            "deletes": self.deadlines.deletes,
        }
        return patience[kind].total_seconds()


_HEALTH = ("V02", "V04", "V06", "V07", "V08", "V09")
"""Rules that old trouble can break without any doing of the run."""
_KINDS: Mapping[str, str] = {
    "V08": "isr",
    "V09": "isr",
    "V14": "metadata",
    "V15": "metadata",
    "V16": "metadata",
    "V17": "deletes",
}


def _kind(problem: Problem) -> str:
    return _KINDS.get(problem.check, "leaders")


def _checks(expected: Expected, found: Sequence[Problem], source: Source) -> Iterator[Check]:
    """Give every problem, and a healthy check for each rule without one; in the order of ids."""
    broken = {problem.check for problem in found}
    healthy = [
        Check(id=check, topic=expected.topic, verdict=Verdict.HEALTHY)
        for check in checked_ids(expected, source)
        if check not in broken
    ]
    yield from sorted([*healthy, *(as_check(expected.topic, p) for p in found)], key=lambda check: check.id)


def _snapshot_look(
    snapshot: ClusterSnapshot, topic: str, views: Mapping[int, BrokerView | str], default_min_isr: int
) -> Look:
    live = snapshot.topics.get(topic)
    deleting = topic in snapshot.deleting
    traces = TopicTraces(live=live, has_config_znode=live is not None, is_deleting=deleting)
    return Look(
        # A topic that is marked is on its way out: its health is of no interest, only what keeps it.
        expected=Expected(topic=topic, absent=deleting),
        traces=traces,
        brokers=frozenset(snapshot.brokers),
        controller_epoch=snapshot.controller_epoch,
        source=snapshot.source,
        default_min_isr=default_min_isr,
        views={} if deleting else views,
    )


def _holders(look: Look, everyone: Collection[int]) -> Iterable[int]:
    if look.live is None:
        return everyone
    return {broker for row in look.live.assignment.values() for broker in row}


def _signature(live: LiveTopic | None) -> object:
    if live is None:
        return "absent"
    epochs = {p: (found.leader, found.leader_epoch) for p, found in (live.states or {}).items()}
    return live.identity, tuple(sorted(epochs.items()))


def _pre_existing(problem: Problem) -> Problem:
    return replace(problem, verdict=Verdict.PRE_EXISTING, message=f"{problem.message} (so before the run)")


def _default_min_isr(broker_defaults: Mapping[str, str] | None) -> int:
    text = (broker_defaults or {}).get(MIN_ISR, "")
    return int(text) if text.isdecimal() else 1


def _waits() -> Iterator[float]:
    wait = FIRST_WAIT_S
    while True:
        yield wait
        wait = min(wait * 1.5, LONGEST_WAIT_S)
