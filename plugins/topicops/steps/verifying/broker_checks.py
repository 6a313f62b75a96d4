"""The rules of verify for what brokers say themselves: their metadata, their configs, and the logs on their disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.cluster.snapshot import PartitionState, Source
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions, PartitionView
from topicops.model.runs.results import Verdict
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.verifying.observation import Expectation, Observation, Problem, partition_names

FIRST_SIDE: Mapping[Source, str] = {"zookeeper": "ZooKeeper", "kafka": "the controller's metadata"}
"""With what a broker's own view is compared, for a sentence."""


def cluster_id(observation: Observation) -> Iterator[Problem]:
    """V01: brokers and first side belong to one cluster."""
    for broker, view in _views(observation):
        if observation.cluster_id is not None and view.cluster_id not in (None, observation.cluster_id):
            source = FIRST_SIDE[observation.source]
            message = f"broker {broker} belongs to cluster {view.cluster_id}, {source} to {observation.cluster_id}"
            yield Problem(check="V01", verdict=Verdict.FAILED, message=message, code="TOP504", is_final=True)


def topic_ids(observation: Observation) -> Iterator[Problem]:
    """V03: the brokers give the topic the id that the first side has."""
    for broker, view in _views(observation):
        told = view.topic_ids.get(observation.expected.topic)
        if told is not None and told != observation.present.topic_id:
            message = f"broker {broker} knows it by topic id {told}, {_by_id(observation)}"
            # Right after a topic was made anew, a broker has the earlier one's id for a moment.
            yield _of_broker("V03", Verdict.CONVERGING, broker, message, "TOP606")


def metadata(observation: Observation) -> Iterator[Problem]:
    """V14: the brokers that were asked say the same as the first side."""
    for broker, view in sorted(observation.views.items()):
        if isinstance(view, str):
            yield Problem(check="V14", verdict=Verdict.DEGRADED, message=view, code="TOP605")
            continue
        for message, subject in _view_differences(observation, broker, view):
            subjects = frozenset({f"{subject} on broker {broker}"})
            yield Problem(check="V14", verdict=Verdict.CONVERGING, message=message, code="TOP605", subjects=subjects)


def overrides(observation: Observation) -> Iterator[Problem]:
    """V15: the brokers tell the overrides that the first side has."""
    if isinstance(observation.told_overrides, str):
        yield Problem(check="V15", verdict=Verdict.DEGRADED, message=observation.told_overrides, code="TOP603")
    if observation.told_overrides is None or isinstance(observation.told_overrides, str):
        return
    told, found = canonical_overrides(observation.told_overrides), canonical_overrides(observation.present.overrides)
    for name in sorted(name for name in told.keys() | found.keys() if told.get(name) != found.get(name)):
        both = f"{told.get(name, 'not set')}, {FIRST_SIDE[observation.source]} {found.get(name, 'not set')}"
        message = f"{name}: the brokers tell {both}"
        yield Problem(check="V15", verdict=Verdict.CONVERGING, message=message, code="TOP603")


def log_directories(observation: Observation) -> Iterator[Problem]:
    """V16: every replica has its log on its broker's disks, and its broker serves it."""
    topic, rows = observation.expected.topic, observation.present.assignment
    for broker, logs in sorted(observation.logs.items()):
        if isinstance(logs, str):
            yield Problem(check="V16", verdict=Verdict.DEGRADED, message=logs, code="TOP605")
            continue
        held, idle = logs.held.get(topic, frozenset()), logs.idle.get(topic, frozenset())
        for p in sorted(p for p, replicas in rows.items() if broker in replicas and p not in held):
            message = (
                f"broker {broker} has a log of partition {p} and does not serve it: made for another topic id?"
                if p in idle
                else f"broker {broker} has no log directory for partition {p}"
            )
            yield _of_replica("V16", Verdict.CONVERGING, p, broker, message)


def end_offsets(observation: Observation) -> Iterator[Problem]:
    """V16: every leader tells the end of its log."""
    for broker, logs in sorted(observation.logs.items()):
        unread = logs.unread.get(observation.expected.topic, {}) if isinstance(logs, BrokerLogs) else {}
        for p, error in sorted(unread.items()):
            message = f"broker {broker} leads partition {p} and cannot read its log: {error}"
            yield _of_replica("V16", Verdict.CONVERGING, p, broker, message)


def absence(observation: Observation) -> Iterator[Problem]:
    """V17: no broker that was asked knows the name."""
    for broker, view in sorted(observation.views.items()):
        if isinstance(view, str):
            yield Problem(check="V17", verdict=Verdict.DEGRADED, message=view, code="TOP605")
        elif observation.expected.topic in view.topics:
            message = f"broker {broker} still knows it"
            yield Problem(check="V17", verdict=Verdict.CONVERGING, message=message, code="TOP605")


def leftover_logs(observation: Observation) -> Iterator[Problem]:
    """V17: what still lies on disks; a remark, since a broker frees them when it suits it."""
    for broker, logs in sorted(observation.logs.items()):
        left = _on_disk(logs, observation.expected.topic) if isinstance(logs, BrokerLogs) else frozenset()
        if left:
            message = f"broker {broker} still has logs of {partition_names(left)}"
            yield Problem(check="V17", verdict=Verdict.HEALTHY, message=message)


def log_questions(observation: Observation) -> Mapping[int, LogQuestions]:
    """What each live broker is to be asked about its logs of this topic; by broker."""
    if observation.expected.absent:
        held = {observation.expected.topic: range(observation.expected.partitions or 0)}
        return (
            {broker: LogQuestions(held=held) for broker in observation.brokers}
            if observation.expected.partitions
            else {}
        )
    rows, topic = observation.present.assignment, observation.expected.topic
    holders = {broker for row in rows.values() for broker in row} & set(observation.brokers)
    return {
        broker: LogQuestions(
            held={topic: [p for p, row in rows.items() if broker in row]},
            led={topic: led} if (led := _led_by(broker, observation)) else {},
        )
        for broker in holders
    }


def merged(questions: Iterator[Mapping[int, LogQuestions]]) -> Mapping[int, LogQuestions]:
    """One set of questions a broker, for all topics."""
    found: dict[int, LogQuestions] = {}
    for asked in questions:
        for broker, more in asked.items():
            known = found.get(broker, LogQuestions(held={}))
            found[broker] = LogQuestions(held={**known.held, **more.held}, led={**known.led, **more.led})
    return found


def _led_by(broker: int, observation: Observation) -> dict[int, int | None]:
    """Partitions whose end offset is asked for: those that the run made, else all."""
    wanted = _made(observation.expected) or observation.present.assignment.keys()
    return {p: found.leader_epoch for p, found in observation.led() if found.leader == broker and p in wanted}


def _by_id(observation: Observation) -> str:
    return f"{FIRST_SIDE[observation.source]} by {observation.present.topic_id or 'none'}"


def _on_disk(logs: BrokerLogs, topic: str) -> frozenset[int]:
    return logs.held.get(topic, frozenset()) | logs.idle.get(topic, frozenset())


def _made(expected: Expectation) -> frozenset[int]:
    return frozenset(expected.assignment)


def _views(observation: Observation) -> Iterator[tuple[int, BrokerView]]:
    yield from ((broker, view) for broker, view in sorted(observation.views.items()) if isinstance(view, BrokerView))


def _view_differences(observation: Observation, broker: int, view: BrokerView) -> Iterator[tuple[str, str]]:
    """Message, and a subject that stays when the message does not."""
    seen = view.topics.get(observation.expected.topic)
    if seen is None:
        yield f"broker {broker} does not know the topic", "the topic"
        return
    for p, found in observation.led():
        if (difference := _partition_difference(found, seen.get(p), FIRST_SIDE[observation.source])) is not None:
            yield f"broker {broker} sees {difference.format(partition=p)}", f"partition {p}"
    for p in sorted(seen.keys() - observation.present.assignment.keys()):
        yield f"broker {broker} sees a partition {p}, {FIRST_SIDE[observation.source]} does not", f"partition {p}"


def _partition_difference(found: PartitionState, seen: PartitionView | None, first_side: str) -> str | None:
    if seen is None:
        return "no partition {partition}"
    if seen.leader != found.leader:
        return f"leader {seen.leader} of partition {{partition}}, {first_side} {found.leader}"
    if set(seen.isr) != set(found.isr):
        return f"ISR {sorted(seen.isr)} of partition {{partition}}, {first_side} {sorted(found.isr)}"
    return None


def _of_broker(check: str, verdict: Verdict, broker: int, message: str, code: str) -> Problem:
    subjects = frozenset({f"broker {broker}"})
    return Problem(check=check, verdict=verdict, message=message, code=code, subjects=subjects)


def _of_replica(check: str, verdict: Verdict, partition: int, broker: int, message: str) -> Problem:
    subjects = frozenset({f"partition {partition} on broker {broker}"})
    return Problem(check=check, verdict=verdict, message=message, code="TOP605", subjects=subjects)
