"""The rules of verify: each looks at one topic once and yields what is wrong with it.

Ids and meaning: docs/reference/checks.md. A new check is one function and one line in ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from topicops.model.canonical import assignment_digest
from topicops.model.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import BrokerView, PartitionView
from topicops.model.results import Check, Verdict
from topicops.model.snapshot import Assignment, LiveTopic, PartitionState, Source, TopicTraces
from topicops.model.topic_config import canonical_overrides

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a topic shall be; without any field set it only has to be healthy."""

    topic: str
    absent: bool = False
    identity: str | None = None
    """For a topic that is to go: the one that was there."""
    partitions: int | None = None
    assignment: Assignment = field(default_factory=dict)
    """Rows that the run wrote."""
    earlier_partitions: int = 0
    earlier_digest: str | None = None
    """Digest of the rows that an expansion found."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    """Canonical; None: no override."""
    configs_are_all: bool = False
    """No other override may be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that one look at one topic saw."""

    expected: Expected
    traces: TopicTraces
    brokers: Collection[int]
    """Registered right now."""
    controller_epoch: int | None
    default_min_isr: int = 1
    source: Source = "zookeeper"
    """Which side the first one is."""
    views: Mapping[int, BrokerView | str] = field(default_factory=dict)
    """Of the brokers that were asked; empty while the first side alone already says that it is not healthy."""

    @property
    def live(self) -> LiveTopic | None:
        return self.traces.live

    @property
    def states(self) -> Mapping[int, PartitionState]:
        return (self.live.states or {}) if self.live else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What one rule found in one look."""

    check: str
    verdict: Verdict
    message: str
    code: str | None = None
    place: int | None = None
    """Partition; None for the topic as a whole."""


Rule = Callable[[Look], Iterator[Problem]]


def expected_of(topic: str, changes: Iterable[Change]) -> Expected:
    """Say what the topic shall be once all these changes of it are in place."""
    found = Expected(topic=topic)
    for change in changes:
        found = _with_change(found, change)
    return found


def problems(look: Look) -> tuple[Problem, ...]:
    """Every problem of the topic, in the order of the rules."""
    if look.expected.absent:
        return tuple(absence(look))
    if look.live is None:
        return (Problem(check="V02", verdict=Verdict.FAILED, message="topic is not there", code="TOP604"),)
    return tuple(problem for rule in rules_of(look.source).values() for problem in rule(look))


def rules_of(source: Source) -> Mapping[str, Rule]:
    """The rules for a topic that shall be there; where brokers are the first side, their disks are the second."""
    return {**RULES, **DISK_RULES} if source == "kafka" else RULES


def checked_ids(expected: Expected, source: Source) -> tuple[str, ...]:
    """List the rules that are looked at for such a topic."""
    return ("V17",) if expected.absent else tuple(rules_of(source))


def as_check(topic: str, problem: Problem) -> Check:
    return Check(id=problem.check, topic=topic, verdict=problem.verdict, message=problem.message, code=problem.code)


def shape(look: Look) -> Iterator[Problem]:
    """V02: partition ids 0 to n-1, rows of distinct brokers and equal length, and as planned."""
    live = _present(look)
    for message in (*_malformed(live), *_unplanned(look.expected, live)):
        yield Problem(check="V02", verdict=Verdict.FAILED, message=message, code="TOP604")


def identity(look: Look) -> Iterator[Problem]:
    """V03: still the topic of the plan."""
    live, planned = _present(look), look.expected.identity
    if planned is not None and live.identity != planned:
        message = f"topic id: planned {planned}, live {live.identity}: it was deleted and made again"
        yield Problem(check="V03", verdict=Verdict.FAILED, message=message, code="TOP606")


def reassignment(look: Look) -> Iterator[Problem]:
    """V04: no replicas being added or removed."""
    live = _present(look)
    for p in sorted(p for p in live.assignment if live.adding.get(p) or live.removing.get(p)):
        message = f"partition {p} is being reassigned: replicas {list(live.assignment[p])}"
        yield Problem(check="V04", verdict=Verdict.CONVERGING, message=message, code="TOP419", place=p)


def deletion_marker(look: Look) -> Iterator[Problem]:
    """V05: nobody asked for its deletion."""
    if look.traces.is_deleting:
        message = "marked for deletion" + _waiting_for(look)
        yield Problem(check="V05", verdict=Verdict.FAILED, message=message, code="TOP418")


def state(look: Look) -> Iterator[Problem]:
    """V06: every partition has a state."""
    live = _present(look)
    for p in sorted(live.assignment.keys() - look.states.keys()):
        replicas = live.assignment[p]
        hope = any(broker in look.brokers for broker in replicas)
        verdict = Verdict.CONVERGING if hope else Verdict.FAILED
        message = f"partition {p} has no state yet: replicas {list(replicas)}{_dead(replicas, look.brokers)}"
        yield Problem(check="V06", verdict=verdict, message=message, code="TOP601", place=p)


def leader(look: Look) -> Iterator[Problem]:
    """V07: the leader is a live replica in the ISR."""
    for p, found in _states(look):
        replicas = _present(look).assignment[p]
        if reason := _leader_problem(found, replicas, look.brokers):
            message = f"partition {p} {reason}{_dead(replicas, look.brokers)}"
            yield Problem(check="V07", verdict=Verdict.FAILED, message=message, code="TOP601", place=p)


def isr(look: Look) -> Iterator[Problem]:
    """V08: the ISR is all replicas, and all of them live."""
    for p, found in _states(look):
        replicas = _present(look).assignment[p]
        missing = [broker for broker in replicas if broker not in found.isr or broker not in look.brokers]
        if missing:
            dead = any(broker not in look.brokers for broker in missing)
            verdict = Verdict.DEGRADED if dead else Verdict.CONVERGING
            message = f"partition {p} lacks {_names(missing)} in its ISR{_dead(missing, look.brokers)}"
            yield Problem(check="V08", verdict=verdict, message=message, code="TOP602", place=p)


def min_isr(look: Look) -> Iterator[Problem]:
    """V09: the ISR suffices for producers with ``acks=all``."""
    needed = effective_min_isr(_present(look), look.default_min_isr)
    for p, found in _states(look):
        size = sum(broker in look.brokers for broker in found.isr)
        if size < needed:
            message = f"partition {p} has {size} of {needed} in-sync replicas that {MIN_ISR} asks for"
            yield Problem(check="V09", verdict=Verdict.DEGRADED, message=message, code="TOP602", place=p)


def controller_epochs(look: Look) -> Iterator[Problem]:
    """V12: no state was written under a later controller than ZooKeeper knows."""
    for p, found in _states(look):
        # Brokers do not tell under which controller a state was written.
        if (found.controller_epoch or 0) > (look.controller_epoch or 0):
            message = (
                f"partition {p} was written under controller epoch {found.controller_epoch}, "
                f"the current one is {look.controller_epoch}"
            )
            yield Problem(check="V12", verdict=Verdict.CONVERGING, message=message, code="TOP508", place=p)


def metadata(look: Look) -> Iterator[Problem]:
    """V14: the brokers that were asked say the same as the first side."""
    for broker, view in sorted(look.views.items()):
        if isinstance(view, str):
            yield Problem(check="V14", verdict=Verdict.DEGRADED, message=view, code="TOP605")
            continue
        for message, place in _view_differences(look, broker, view):
            yield Problem(check="V14", verdict=Verdict.CONVERGING, message=message, code="TOP605", place=place)


def log_directories(look: Look) -> Iterator[Problem]:
    """V16: every replica has its log on its broker's disks."""
    rows = _present(look).assignment
    for broker, view in sorted(look.views.items()):
        if isinstance(view, str) or view.directories is None:
            continue
        if isinstance(view.directories, str):
            yield Problem(check="V16", verdict=Verdict.DEGRADED, message=view.directories, code="TOP605")
            continue
        found = view.directories.get(look.expected.topic, frozenset())
        for p in sorted(p for p, replicas in rows.items() if broker in replicas and p not in found):
            message = f"broker {broker} has no log directory for partition {p}"
            yield Problem(check="V16", verdict=Verdict.CONVERGING, message=message, code="TOP605", place=p)


def overrides(look: Look) -> Iterator[Problem]:
    """V15: overrides as planned, compared as the brokers read them."""
    found, wanted = canonical_overrides(_present(look).overrides), look.expected.configs
    for name in sorted(wanted.keys() | found.keys() if look.expected.configs_are_all else wanted):
        if wanted.get(name) != found.get(name):
            message = f"{name}: planned {_shown(wanted.get(name))}, live {_shown(found.get(name))}"
            yield Problem(check="V15", verdict=Verdict.FAILED, message=message, code="TOP603")


def absence(look: Look) -> Iterator[Problem]:
    """V17: topic, config and marker znodes are gone, and no broker that was asked knows the name."""
    live = look.live
    if live is not None and live.identity != (look.expected.identity or live.identity):
        message = f"it is back with topic id {live.identity}: something makes topics outside git"
        yield Problem(check="V17", verdict=Verdict.FAILED, message=message, code="TOP607")
    elif not look.traces.is_gone:
        message = f"left: {', '.join(_left(look))}{_waiting_for(look)}"
        yield Problem(check="V17", verdict=_pending(look), message=message, code="TOP418")
    for broker, view in sorted(look.views.items()):
        if isinstance(view, str):
            yield Problem(check="V17", verdict=Verdict.DEGRADED, message=view, code="TOP605")
        elif look.expected.topic in view.topics:
            message = f"broker {broker} still knows it"
            yield Problem(check="V17", verdict=Verdict.CONVERGING, message=message, code="TOP605")


RULES: Mapping[str, Rule] = {
    "V02": shape,
    "V03": identity,
    "V04": reassignment,
    "V05": deletion_marker,
    "V06": state,
    "V07": leader,
    "V08": isr,
    "V09": min_isr,
    "V12": controller_epochs,
    "V14": metadata,
    "V15": overrides,
}
"""For a topic that shall be there; V17 alone stands for one that shall not."""
DISK_RULES: Mapping[str, Rule] = {"V16": log_directories}


def effective_min_isr(live: LiveTopic, default: int) -> int:
    """Take the topic's own value, else the brokers' default."""
    text = canonical_overrides(live.overrides).get(MIN_ISR, "")
    return int(text) if text.isdecimal() else default


def _with_change(found: Expected, change: Change) -> Expected:
    match change:
        case CreateTopic():
            return Expected(
                topic=change.topic,
                partitions=change.partitions,
                assignment=change.assignment,
                configs=canonical_overrides(change.configs),
                configs_are_all=True,
            )
        case ExpandTopic():
            return Expected(
                topic=change.topic,
                identity=change.precondition.identity,
                partitions=change.partitions,
                assignment=change.assignment,
                earlier_partitions=change.partitions_before,
                earlier_digest=change.precondition.assignment_digest,
                configs=found.configs,
            )
        case ConfigureTopic():
            return Expected(
                topic=change.topic,
                identity=change.precondition.identity,
                partitions=found.partitions,
                assignment=found.assignment,
                earlier_partitions=found.earlier_partitions,
                earlier_digest=found.earlier_digest,
                configs=change.configs,
            )
        case DeleteTopic():
            return Expected(topic=change.topic, absent=True, identity=change.precondition.identity or change.topic_id)


def _malformed(live: LiveTopic) -> Iterator[str]:
    if sorted(live.assignment) != list(range(live.partitions)):
        yield f"partition ids are not 0 to {live.partitions - 1}: {sorted(live.assignment)}"
    if len(live.replication_factors) > 1:
        yield f"partitions have different replication factors: {sorted(live.replication_factors)}"
    for p, replicas in sorted(live.assignment.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            yield f"partition {p} has replicas {list(replicas)}"


def _unplanned(expected: Expected, live: LiveTopic) -> Iterator[str]:
    if expected.partitions is not None and live.partitions != expected.partitions:
        yield f"partitions: planned {expected.partitions}, live {live.partitions}"
    for p, replicas in sorted(expected.assignment.items()):
        if p in live.assignment and live.assignment[p] != tuple(replicas):
            yield f"replicas of partition {p}: planned {list(replicas)}, live {list(live.assignment[p])}"
    earlier = {p: row for p, row in live.target_assignment.items() if p < expected.earlier_partitions}
    if expected.earlier_digest is not None and assignment_digest(earlier) != expected.earlier_digest:
        yield f"replicas of the first {expected.earlier_partitions} partitions are not as before"


def _leader_problem(found: PartitionState, replicas: tuple[int, ...], brokers: Collection[int]) -> str | None:
    # The state names a dead leader for a moment, until the controller has written another.
    if found.leader < 0:
        return "has no leader"
    if found.leader not in brokers:
        return f"is led by broker {found.leader}, which is not live"
    if found.leader not in found.isr:
        return f"is led by broker {found.leader}, which is not in its ISR {list(found.isr)}"
    return None if found.leader in replicas else f"is led by broker {found.leader}, which holds no replica of it"


def _view_differences(look: Look, broker: int, view: BrokerView) -> Iterator[tuple[str, int | None]]:
    seen = view.topics.get(look.expected.topic)
    if seen is None:
        yield f"broker {broker} does not know the topic", None
        return
    for p, found in _states(look):
        if (difference := _partition_difference(found, seen.get(p), FIRST_SIDE[look.source])) is not None:
            yield f"broker {broker} sees {difference.format(partition=p)}", p


FIRST_SIDE: Mapping[Source, str] = {"zookeeper": "ZooKeeper", "kafka": "the controller's metadata"}
"""With what a broker's own view is compared, for a sentence."""


def _partition_difference(found: PartitionState, seen: PartitionView | None, first_side: str) -> str | None:
    if seen is None:
        return "no partition {partition}"
    if seen.leader != found.leader:
        return f"leader {seen.leader} of partition {{partition}}, {first_side} {found.leader}"
    if set(seen.isr) != set(found.isr):
        return f"ISR {sorted(seen.isr)} of partition {{partition}}, {first_side} {sorted(found.isr)}"
    return None


def _pending(look: Look) -> Verdict:
    return Verdict.CONVERGING if look.traces.is_deleting or look.live is None else Verdict.FAILED


def _left(look: Look) -> Iterator[str]:
    traces = look.traces
    if traces.live is not None:
        yield "topic znode" if look.source == "zookeeper" else "the topic"
    if traces.has_config_znode:
        yield "config znode"
    if traces.is_deleting:
        yield "deletion marker"


def _waiting_for(look: Look) -> str:
    held = {broker for row in look.live.assignment.values() for broker in row} if look.live else set()
    missing = sorted(held - set(look.brokers))
    return f"; waits for {_names(missing)}" if missing else ""


def _dead(replicas: Iterable[int], brokers: Collection[int]) -> str:
    dead = sorted(broker for broker in replicas if broker not in brokers)
    return f"; {_names(dead)} not live" if dead else ""


def _names(brokers: Iterable[int]) -> str:
    return ", ".join(f"broker {broker}" for broker in brokers)


def _states(look: Look) -> Iterator[tuple[int, PartitionState]]:
    yield from sorted((p, found) for p, found in look.states.items() if p in _present(look).assignment)


def _present(look: Look) -> LiveTopic:
    if look.live is None:
        raise ValueError(f"{look.expected.topic}: rules for present topics need one")
    return look.live


def _shown(value: str | None) -> str:
    return "not set" if value is None else value
