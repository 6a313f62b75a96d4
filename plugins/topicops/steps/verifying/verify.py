"""Look at every touched topic, on both sides, until it is right twice in a row, or its time is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, PartitionState, Source, TopicTraces
from topicops.model.errors import ClusterError
from topicops.model.plans.plan import Plan
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.model.runs.results import IN_PLACE, Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.broker_checks import FIRST_SIDE, log_questions, merged
from topicops.steps.verifying.checks import as_check, checked_ids, problems
from topicops.steps.verifying.observation import (
    Expectation,
    Observation,
    Problem,
    Trouble,
    broker_names,
    expectation_of,
)

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 2.0
SHORTEST_PAUSE_S = 0.05
MOST_BROKERS_ASKED = 32

TOUCHED = (*IN_PLACE, OutcomeStatus.UNKNOWN)
"""Outcomes after which a topic shall be as planned, or may be."""
NOT_AGAINST = (Verdict.HEALTHY, Verdict.PRE_EXISTING)
"""What nobody waits for."""


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
    clock: Clock,
    progress: Callable[[Progress], None] = lambda _: None,
    interrupted: Callable[[], bool] = lambda: False,
    old_trouble: Collection[Trouble] = frozenset(),
    broker_defaults: Mapping[str, str] | None = None,
    source: Source = "zookeeper",
) -> tuple[Check, ...]:
    """Check every touched topic under every rule; sorted by topic and id, one check or more for each.

    ``old_trouble`` is what was wrong before apply (``trouble_of``): it is named as old and not waited for.
    ``source`` is what ``reader`` reads: with ``kafka`` both sides are the brokers', their metadata and their disks.
    An interrupt, or a cluster that stays out of reach, ends the waiting: the verdicts are those of the last look.
    """
    watch = _Watch(
        reader=reader,
        metadata=metadata,
        deadlines=deadlines,
        clock=clock,
        old_trouble=frozenset(old_trouble),
        broker_defaults=broker_defaults,
        cluster_id=plan.target.cluster_id,
        source=source,
        topics={expected.topic: _Topic(expected) for expected in expectations(plan, outcomes)},
    )
    wait = FIRST_WAIT_S
    while True:
        started = clock.now()
        has_moved = watch.observation()
        progress(watch.progress())
        if not watch.open_topics() or interrupted():
            return watch.checks()
        wait = FIRST_WAIT_S if has_moved else min(wait * 1.5, LONGEST_WAIT_S)
        # From start to start: a look at many topics takes its time too.
        clock.sleep(max(wait - (clock.now() - started), SHORTEST_PAUSE_S))


def expectations(plan: Plan, outcomes: Iterable[Outcome]) -> tuple[Expectation, ...]:
    """Say what each touched topic shall be, by topic name."""
    touched = {outcome.digest for outcome in outcomes if outcome.status in TOUCHED}
    changes = sorted((g.change for g in plan.changes if g.digest in touched), key=lambda change: change.topic)
    return tuple(
        expectation_of(topic, list(group)) for topic, group in groupby(changes, key=lambda change: change.topic)
    )


def verify_cluster(
    snapshot: ClusterSnapshot,
    metadata: BrokerMetadata,
    *,
    confirmed: Callable[[Collection[str]], Collection[str]] = lambda names: names,
) -> tuple[Check, ...]:
    """Check the health of every topic of one snapshot, which must hold the states; no plan, no waiting.

    ``confirmed`` looks again at names that only brokers know, and gives those that the first side still has not.
    """
    views = metadata.views(chosen_brokers(snapshot.brokers), None)
    looks = _whole_looks(snapshot, metadata, views)
    found = [
        check
        for observation in looks
        for check in _checks(observation.expected, problems(observation), observation.sides)
    ]
    found += _unheard_of(snapshot, views, confirmed)
    if snapshot.controller_id is None:
        message = "no controller is elected"
        found.append(Check(id="V13", topic="", verdict=Verdict.FAILED, message=message, code="TOP421"))
    return tuple(sorted(found, key=lambda check: (not check.topic, check.topic, check.id)))


def trouble_of(
    snapshot: ClusterSnapshot,
    metadata: BrokerMetadata,
    *,
    topics: Collection[str],
) -> frozenset[Trouble]:
    """What is wrong with these topics of a snapshot now, on both sides; for a look back after apply.

    Nothing is known of topics whose states were not read.
    """
    there = {name: snapshot.topics[name] for name in sorted(topics) if snapshot.topics[name].states is not None}
    views = metadata.views(chosen_brokers(snapshot.brokers), list(there))
    looks = _whole_looks(replace(snapshot, topics=there, deleting={}), metadata, views)
    return frozenset(
        (observation.expected.topic, p.check, subject)
        for observation in looks
        for p in problems(observation)
        for subject in p.subjects
    )


def chosen_brokers(brokers: Iterable[int], *, most: int = MOST_BROKERS_ASKED) -> tuple[int, ...]:
    """At most ``most`` of the brokers, evenly spread over their ids."""
    ids = sorted(brokers)
    if len(ids) <= most:
        return tuple(ids)
    return tuple(ids[index * len(ids) // most] for index in range(most))


@dataclass(slots=True)
class _Topic:
    """One touched topic while it is watched."""

    expected: Expectation
    problems: tuple[Problem, ...] = ()
    """Of the last look."""
    sides: frozenset[str] = frozenset()
    """What the last look could look at."""
    signature: object = None
    """Identity, leaders, epochs and ISRs of the last look if it was healthy, else None."""
    before: LiveTopic | None = None
    """As the last look saw it."""
    is_settled: bool = False
    is_given_up: bool = False
    first_seen: dict[str, float] = field(default_factory=dict)
    """When each kind of problem was first seen; a kind that comes and goes does not start anew."""

    @property
    def is_open(self) -> bool:
        return not self.is_settled and not self.is_given_up

    @property
    def is_watched(self) -> bool:
        """A name that is gone may come back as long as anything else is waited for."""
        return self.is_open or (self.is_settled and self.expected.absent)

    def earlier_states(self, live: LiveTopic | None) -> Mapping[int, PartitionState]:
        """The states of the last look, if it saw the same topic."""
        if live is None or self.before is None or self.before.identity != live.identity:
            return {}
        return self.before.states or {}


@dataclass(slots=True, kw_only=True)
class _Watch:
    """All touched topics, and the ports to look at them."""

    reader: LiveReader
    metadata: BrokerMetadata
    deadlines: Verify
    clock: Clock
    old_trouble: frozenset[Trouble]
    broker_defaults: Mapping[str, str] | None
    cluster_id: str
    source: Source
    topics: dict[str, _Topic]

    def open_topics(self) -> list[_Topic]:
        return [topic for topic in self.topics.values() if topic.is_open]

    def observation(self) -> bool:
        """Look once at every watched topic, and say whether any of them has moved since the look before.

        One that the cluster would not show counts as not led.
        """
        if not self.open_topics():
            return False
        watched = [topic for topic in self.topics.values() if topic.is_watched]
        seen = [(topic.problems, topic.signature, topic.is_open) for topic in watched]
        try:
            self._look_at(watched)
        except ClusterError as error:
            logger.warning("cannot look topics=%d: %s", len(watched), error)
            self._judge_blind(
                watched, Problem(check="V13", verdict=Verdict.DEGRADED, message=f"cannot be read: {error}")
            )
        return seen != [(topic.problems, topic.signature, topic.is_open) for topic in watched]

    def progress(self) -> Progress:
        waiting = [
            f"{topic.expected.topic}: {found.message}"
            for topic in self.open_topics()
            for found in _against(topic.problems)[:1]
        ]
        healthy = sum(topic.is_settled for topic in self.topics.values())
        return Progress(healthy=healthy, topics=len(self.topics), waiting_for=tuple(waiting[:5]))

    def checks(self) -> tuple[Check, ...]:
        return tuple(
            check
            for _, topic in sorted(self.topics.items())
            for check in _checks(topic.expected, topic.problems, topic.sides)
        )

    def _look_at(self, watched: Sequence[_Topic]) -> None:
        controller = (self.reader.controller_epoch(), self.reader.controller_id())
        names = [topic.expected.topic for topic in watched]
        traces = self.reader.traces(names, states=True)
        brokers = self.reader.brokers()
        if (self.reader.controller_epoch(), self.reader.controller_id()) != controller:
            self._controller_moved(watched)
            return
        looks = {name: self._first_side(self.topics[name], traces[name], brokers, controller) for name in names}
        # Each broker is asked only about what the first side already shows as right.
        self._ask_for_views(looks, brokers)
        self._ask_for_the_rest(looks)
        now = self._signatures_now(self._settling(looks))
        for name, observation in looks.items():
            self._judge(self.topics[name], self._with_history(observation), now.get(name, _signature(observation.live)))
            self.topics[name].before, self.topics[name].sides = observation.live, observation.sides

    def _first_side(
        self, topic: _Topic, traces: TopicTraces, brokers: Collection[int], controller: tuple[int | None, int | None]
    ) -> Observation:
        return Observation(
            expected=topic.expected,
            traces=traces,
            brokers=frozenset(brokers),
            controller_epoch=controller[0],
            has_controller=controller[1] is not None,
            cluster_id=self.cluster_id,
            broker_defaults=self.broker_defaults,
            source=self.source,
            before=topic.earlier_states(traces.live),
        )

    def _ask_for_views(self, looks: dict[str, Observation], brokers: Collection[int]) -> None:
        """Ask the brokers that hold the topics; all of them when a topic may settle now."""
        right = self._right(looks)
        if not right:
            return
        everyone = frozenset(chosen_brokers(brokers))
        may_settle = any(self._may_settle(name, looks[name]) for name in right)
        holders = {broker for name in right for broker in _holders(looks[name], everyone)}
        views = self.metadata.views(sorted(everyone if may_settle else holders & frozenset(brokers)), right)
        looks.update({name: replace(looks[name], views=views) for name in right})

    def _ask_for_the_rest(self, looks: dict[str, Observation]) -> None:
        """Disks, end offsets and configs of the topics that would settle now, so that each is asked for once."""
        settling = self._settling(looks)
        if not settling:
            return
        logs = self.metadata.logs(merged(log_questions(looks[name]) for name in settling))
        told = self._told_overrides([name for name in settling if looks[name].expected.configs])
        for name in settling:
            looks[name] = replace(looks[name], logs=logs, told_overrides=told.get(name))

    def _told_overrides(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        """Where the brokers are the first side, they have told them already."""
        return self.metadata.overrides(names) if names and self.source == "zookeeper" else {}

    def _signatures_now(self, names: Sequence[str]) -> Mapping[str, object]:
        """Read once more what would settle now: brokers take their time to answer, and an ISR may shrink meanwhile."""
        traces = self.reader.traces(names, states=True) if names else {}
        return {name: _signature(found.live) for name, found in traces.items()}

    def _settling(self, looks: Mapping[str, Observation]) -> list[str]:
        """Open topics with which nothing is wrong, as little as at the look before."""
        return self._right(
            {name: observation for name, observation in looks.items() if self._may_settle(name, observation)}
        )

    def _right(self, looks: Mapping[str, Observation]) -> list[str]:
        """Open topics with which nothing is wrong so far."""
        names = [name for name in looks if self.topics[name].is_open]
        return [name for name in names if not _against(self._with_history(looks[name]))]

    def _may_settle(self, name: str, observation: Observation) -> bool:
        return self.topics[name].signature == _signature(observation.live)

    def _with_history(self, observation: Observation) -> tuple[Problem, ...]:
        """The problems of a look, those of before the run named as old."""
        return tuple(
            _pre_existing(problem) if self._is_old(observation.expected.topic, problem) else problem
            for problem in problems(observation)
        )

    def _is_old(self, topic: str, problem: Problem) -> bool:
        subjects = {(topic, problem.check, subject) for subject in problem.subjects}
        return bool(subjects) and subjects <= self.old_trouble

    def _controller_moved(self, watched: Sequence[_Topic]) -> None:
        message = "the controller changed during the look"
        self._judge_blind(watched, Problem(check="V13", verdict=Verdict.CONVERGING, message=message, code="TOP508"))

    def _judge_blind(self, watched: Iterable[_Topic], problem: Problem) -> None:
        """Nothing was seen but why."""
        for topic in watched:
            topic.sides = frozenset()
            self._judge(topic, (problem,), None)

    def _judge(self, topic: _Topic, found: tuple[Problem, ...], signature: object) -> None:
        fresh = _against(found)
        if fresh:
            topic.problems, topic.signature, topic.is_settled = found, None, False
            topic.is_given_up = self._is_over(topic, fresh)
            return
        if topic.signature is not None and topic.signature != signature:
            message = "leaders or ISRs changed between two looks"
            moved = Problem(check="V11", verdict=Verdict.CONVERGING, message=message)
            topic.problems, topic.signature = (*found, moved), signature
            topic.is_given_up = self._is_over(topic, [moved])
            return
        topic.is_settled = topic.signature == signature
        topic.problems, topic.signature = found, signature

    def _is_over(self, topic: _Topic, fresh: Sequence[Problem]) -> bool:
        """Whether a problem outlived the deadline of its kind; then waiting for the others is of no use."""
        now = self.clock.now()
        for problem in fresh:
            topic.first_seen.setdefault(_kind(problem), now)
        return any(problem.is_final for problem in fresh) or any(
            now - topic.first_seen[_kind(problem)] >= self._patience_s(_kind(problem)) for problem in fresh
        )

    def _patience_s(self, kind: str) -> float:
        patience = {
            "leaders": self.deadlines.leaders,
            "isr": self.deadlines.isr,
            "metadata": self.deadlines.metadata,
            "deletes": self.deadlines.deletes,
        }
        return patience[kind].total_seconds()


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


def _against(found: Iterable[Problem]) -> list[Problem]:
    """The problems that speak against the run; not remarks, not old trouble."""
    return [problem for problem in found if problem.verdict not in NOT_AGAINST]


def _checks(expected: Expectation, found: Sequence[Problem], sides: Collection[str]) -> Iterator[Check]:
    """Give every problem, and a healthy check for each rule that looked and found none; in the order of ids."""
    broken = {problem.check for problem in found}
    healthy = [
        Check(id=check, topic=expected.topic, verdict=Verdict.HEALTHY)
        for check in checked_ids(expected, sides)
        if check not in broken
    ]
    yield from sorted([*healthy, *(as_check(expected.topic, p) for p in found)], key=lambda check: check.id)


def _whole_looks(
    snapshot: ClusterSnapshot, metadata: BrokerMetadata, views: Mapping[int, BrokerView | str]
) -> list[Observation]:
    """One look at each topic of a snapshot, with all that the brokers tell of it."""
    names = sorted(snapshot.topics.keys() | snapshot.deleting.keys())
    looks = [_snapshot_look(snapshot, name, views) for name in names]
    questions = merged(log_questions(observation) for observation in looks if not observation.expected.absent)
    # A broker that gave no view is known to be silent, and would only take its time again.
    heard = {broker: asked for broker, asked in questions.items() if isinstance(views.get(broker), BrokerView)}
    logs = metadata.logs(heard) if heard else {}
    return [observation if observation.expected.absent else replace(observation, logs=logs) for observation in looks]


def _unheard_of(
    snapshot: ClusterSnapshot,
    views: Mapping[int, BrokerView | str],
    confirmed: Callable[[Collection[str]], Collection[str]],
) -> Iterator[Check]:
    """Topics that brokers serve and the first side has not: their znodes were removed by hand."""
    known = snapshot.topics.keys() | snapshot.deleting.keys()
    holders: dict[str, list[int]] = {}
    for broker, view in sorted(views.items()):
        for name in view.topics.keys() - known if isinstance(view, BrokerView) else ():
            holders.setdefault(name, []).append(broker)
    for name in confirmed(sorted(holders)) if holders else ():
        message = f"{_brokers_know(holders[name])} it, and there is no such topic in {FIRST_SIDE[snapshot.source]}"
        yield Check(id="V14", topic=name, verdict=Verdict.FAILED, message=message, code="TOP605")


def _snapshot_look(snapshot: ClusterSnapshot, topic: str, views: Mapping[int, BrokerView | str]) -> Observation:
    live = snapshot.topics.get(topic)
    deleting = topic in snapshot.deleting
    traces = TopicTraces(live=live, has_config_znode=live is not None, is_deleting=deleting)
    return Observation(
        # A topic that is marked is on its way out: its health is of no interest, only what keeps it.
        expected=Expectation(topic=topic, absent=deleting),
        traces=traces,
        brokers=frozenset(snapshot.brokers),
        controller_epoch=snapshot.controller_epoch,
        cluster_id=snapshot.cluster_id,
        source=snapshot.source,
        broker_defaults=snapshot.broker_defaults,
        views={} if deleting else views,
    )


def _holders(observation: Observation, everyone: Collection[int]) -> Iterable[int]:
    if observation.live is None:
        return everyone
    return {broker for row in observation.live.assignment.values() for broker in row}


def _signature(live: LiveTopic | None) -> object:
    if live is None:
        return "absent"
    states = {p: (found.leader, found.leader_epoch, found.version) for p, found in (live.states or {}).items()}
    return live.identity, tuple(sorted(states.items()))


def _pre_existing(problem: Problem) -> Problem:
    return replace(problem, verdict=Verdict.PRE_EXISTING, message=f"{problem.message} (so before the run)")


def _brokers_know(brokers: Sequence[int]) -> str:
    return f"{broker_names(brokers)} {'serves' if len(brokers) == 1 else 'serve'}"
