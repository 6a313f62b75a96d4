"""The rules of verify about the brokers' own answers: their metadata, their configs, and the logs on their disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import unoffered_text
from topicops.model.cluster.snapshot import PartitionState
from topicops.model.codes import Code
from topicops.model.ports import BrokerLogs, BrokerView, PartitionView, Unoffered
from topicops.model.runs.results import Verdict
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.verifying.observation import Finding, Observation, partition_names

SOURCE_NAMES: Mapping[Source, str] = {"zookeeper": "ZooKeeper", "kafka": "the controller's metadata"}
"""Name of the source in a sentence that compares it with a broker's own view."""


def cluster_id(observation: Observation) -> Iterator[Finding]:
    """V01: the brokers belong to the cluster of the source."""
    for broker, view in _views(observation):
        if observation.cluster_id is not None and view.cluster_id not in (None, observation.cluster_id):
            source = SOURCE_NAMES[observation.source]
            message = f"broker {broker} belongs to cluster {view.cluster_id}, {source} to {observation.cluster_id}"
            yield Finding(Code.V01, Verdict.FAILED, message, Code.WRONG_CLUSTER, is_final=True, brokers=(broker,))


def topic_ids(observation: Observation) -> Iterator[Finding]:
    """V03: the brokers have the same topic id as the source."""
    for broker, view in _views(observation):
        known = view.topic_ids.get(observation.expected.topic)
        if known is not None and known != observation.present.topic_id:
            own = f"{SOURCE_NAMES[observation.source]} by {observation.present.topic_id or 'none'}"
            message = f"broker {broker} knows it by topic id {known}, {own}"
            # Right after a topic is created again, a broker still has the old id for a moment.
            yield _of_broker(Code.V03, Verdict.CONVERGING, broker, message, Code.BROKERS_DISAGREE)


def metadata(observation: Observation) -> Iterator[Finding]:
    """V14: the brokers that were asked have the same metadata as the source."""
    for broker, view in sorted(observation.views.items()):
        if isinstance(view, str):
            yield Finding(Code.V14, Verdict.DEGRADED, view, Code.NO_ANSWER, brokers=(broker,))
            continue
        for message, subject in _metadata_differences(observation, broker, view):
            yield _of_broker(Code.V14, Verdict.CONVERGING, broker, message, Code.BROKERS_DISAGREE, subject)


def overrides(observation: Observation) -> Iterator[Finding]:
    """V15: the brokers have the same overrides as the source."""
    if isinstance(observation.broker_overrides, Unoffered):
        yield _not_checked(Code.V15, f"the brokers' own configs ({observation.broker_overrides})")
    elif isinstance(observation.broker_overrides, str):
        yield Finding(Code.V15, Verdict.DEGRADED, observation.broker_overrides, Code.NO_ANSWER)
    if observation.broker_overrides is None or isinstance(observation.broker_overrides, str):
        return
    known, found = canonical_overrides(observation.broker_overrides), canonical_overrides(observation.present.overrides)
    for name in sorted(name for name in known.keys() | found.keys() if known.get(name) != found.get(name)):
        both = f"{known.get(name, 'not set')}, {SOURCE_NAMES[observation.source]} {found.get(name, 'not set')}"
        message = f"{name}: the brokers have {both}"
        yield Finding(Code.V15, Verdict.CONVERGING, message, Code.BROKERS_DISAGREE)


def log_directories(observation: Observation) -> Iterator[Finding]:
    """V16: every replica has a log on its broker's disks, and the broker serves it."""
    topic, rows = observation.expected.topic, observation.present.assignment
    yield from _unseen_disks(observation, Code.V16)
    for broker, logs in sorted(observation.logs.items()):
        if isinstance(logs, str):
            yield Finding(Code.V16, Verdict.DEGRADED, logs, Code.NO_ANSWER, brokers=(broker,))
            continue
        if logs.unoffered:
            continue
        held, idle = logs.held.get(topic, frozenset()), logs.idle.get(topic, frozenset())
        for p in sorted(p for p, replicas in rows.items() if broker in replicas and p not in held):
            message = (
                f"broker {broker} has a log of partition {p} and does not serve it: created for another topic id?"
                if p in idle
                else f"broker {broker} has no log directory for partition {p}{observation.failed_disks([p])}"
            )
            yield _of_broker(Code.V16, Verdict.CONVERGING, broker, message, Code.NO_LOG, f"partition {p}")


def end_offsets(observation: Observation) -> Iterator[Finding]:
    """V16: every leader can read the end of its log."""
    for broker, logs in sorted(observation.logs.items()):
        unread = logs.unread.get(observation.expected.topic, {}) if isinstance(logs, BrokerLogs) else {}
        for p, error in sorted(unread.items()):
            message = f"broker {broker} leads partition {p} and cannot read its log: {error}"
            yield _of_broker(Code.V16, Verdict.CONVERGING, broker, message, Code.NO_LOG, f"partition {p}")


def absence(observation: Observation) -> Iterator[Finding]:
    """V17: no broker that was asked knows the topic."""
    for broker, view in sorted(observation.views.items()):
        if isinstance(view, str):
            yield Finding(Code.V17, Verdict.DEGRADED, view, Code.NO_ANSWER, brokers=(broker,))
        elif observation.expected.topic in view.topics:
            message = f"broker {broker} still knows it"
            yield Finding(Code.V17, Verdict.CONVERGING, message, Code.BROKERS_DISAGREE, brokers=(broker,))


def leftover_logs(observation: Observation) -> Iterator[Finding]:
    """V17: logs that are still on disks; only a remark, because brokers remove them later."""
    yield from _unseen_disks(observation, Code.V17)
    for broker, logs in sorted(observation.logs.items()):
        by_topic = (logs.held, logs.idle) if isinstance(logs, BrokerLogs) else ()
        if left := {p for found in by_topic for p in found.get(observation.expected.topic, ())}:
            message = f"broker {broker} still has logs of {partition_names(left)}"
            yield Finding(Code.V17, Verdict.HEALTHY, message)


def _unseen_disks(observation: Observation, check: Code) -> Iterator[Finding]:
    """Brokers that offer no request about their disks, of those that would have to be asked about this topic."""
    logs = {b: found.unoffered for b, found in observation.logs.items() if isinstance(found, BrokerLogs)}
    asked = observation.holders & logs.keys() if observation.live else logs
    if unoffered := {b: logs[b] for b in asked if logs[b]}:
        yield _not_checked(check, f"log directories ({unoffered_text(unoffered)})")


def _not_checked(check: Code, what: str) -> Finding:
    return Finding(check, Verdict.NOT_CHECKED, what)


def _views(observation: Observation) -> Iterator[tuple[int, BrokerView]]:
    yield from ((broker, view) for broker, view in sorted(observation.views.items()) if isinstance(view, BrokerView))


def _metadata_differences(observation: Observation, broker: int, view: BrokerView) -> Iterator[tuple[str, str]]:
    """Message, and a subject that stays the same when the message changes."""
    seen = view.topics.get(observation.expected.topic)
    if seen is None:
        yield f"broker {broker} does not know the topic", "the topic"
        return
    for p, found in observation.led_partitions():
        if (difference := _partition_difference(found, seen.get(p), SOURCE_NAMES[observation.source])) is not None:
            yield f"broker {broker} sees {difference.format(partition=p)}", f"partition {p}"
    for p in sorted(seen.keys() - observation.present.assignment.keys()):
        yield f"broker {broker} sees a partition {p}, {SOURCE_NAMES[observation.source]} does not", f"partition {p}"


def _partition_difference(found: PartitionState, seen: PartitionView | None, source: str) -> str | None:
    if seen is None:
        return "no partition {partition}"
    if seen.leader != found.leader:
        return f"leader {seen.leader} of partition {{partition}}, {source} {found.leader}"
    if set(seen.isr) != set(found.isr):
        return f"ISR {sorted(seen.isr)} of partition {{partition}}, {source} {sorted(found.isr)}"
    return None


def _of_broker(
    check: Code, verdict: Verdict, broker: int, message: str, code: Code, subject: str | None = None
) -> Finding:
    """Return a finding about something of a broker; None means about the broker itself."""
    subjects = frozenset({f"{subject} on broker {broker}" if subject else f"broker {broker}"})
    return Finding(check, verdict, message, code, subjects=subjects, brokers=(broker,))
