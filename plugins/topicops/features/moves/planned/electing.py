"""Preferred leaders that do not lead, and their election: seconds behind the lease, and no byte is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from topicops.edges.home.audit_log import audit_log
from topicops.features.moves.carrying.audited import audited
from topicops.features.moves.carrying.sending import UNNAMED
from topicops.features.moves.carrying.values import Sent
from topicops.features.moves.record import TopicPartition
from topicops.features.moves.stepping import open_cluster, origin_of
from topicops.flow.runs.access import PORT_WRAPPERS
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun, audit_folder
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.json_types import FormatVersion
from topicops.model.printable import plural
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.needed import no_topic

AT_ONCE = 50
"""Most partitions of one election: a ZooKeeper controller is busy with a larger one for seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unled:
    """A partition whose preferred leader does not lead."""

    topic: str
    partition: int
    leader: int
    """Leader of now; -1 means none."""
    preferred: int
    why_not: str = ""
    """Reason why the preferred leader cannot lead now, or the brokers' refusal; empty: an election lets it lead."""
    elected: bool = False
    """Whether the brokers accepted its election."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaders:
    """What ``topicops leaders`` found and did."""

    format_version: FormatVersion = "1.0"
    environment: str
    partitions: int
    """Number of partitions of the cluster."""
    unled: tuple[Unled, ...]
    """Partitions by topic and id."""

    @property
    def can_lead(self) -> tuple[Unled, ...]:
        return tuple(found for found in self.unled if not (found.why_not or found.elected))


def read_leaders(run: EnvironmentRun) -> Leaders:
    """Return the partitions whose preferred leader does not lead. Raises ``ClusterError`` where it is not known."""
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    with run.access(environment).reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        live = reader.snapshot(states=True)
    return Leaders(environment=run.environment, partitions=live.partitions, unled=tuple(unled(live)))


def unled(live: ClusterSnapshot) -> Iterator[Unled]:
    """Yield each partition that another broker leads than the first one of its row."""
    for name, topic in sorted(live.topics.items()):
        if name in live.deleting:
            continue
        for partition, row in sorted(topic.target_assignment.items()):
            state = (topic.states or {}).get(partition)
            leader = state.leader if state else -1
            if row and leader != row[0]:
                why = _why_not(row[0], live, state.isr if state else ())
                yield Unled(topic=name, partition=partition, leader=leader, preferred=row[0], why_not=why)


def _why_not(broker: int, live: ClusterSnapshot, isr: Sequence[int]) -> str:
    if broker not in live.brokers:
        return f"broker {broker} is not live"
    return "" if broker in isr else f"broker {broker} is not in sync"


def elect(run: EnvironmentRun, wanted: Sequence[Unled], *, lock_timeout_s: float) -> Mapping[TopicPartition, str]:
    """Let preferred leaders lead; gives what the brokers refused, a sentence by partition.

    Raises:
        LeaseHeldError: Another run is changing the cluster; nothing was sent.
        ClusterError: An answer was not clear; earlier ones are in the audit log.
    """
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    access, refused = run.access(environment), dict[TopicPartition, str]()
    with access.reader() as reader:
        cluster_id = reader.cluster_id()
        require_cluster_id(cluster_id, environment)
        lease_to_take = access.lease(cluster_id, operation="leaders", lock_timeout_s=lock_timeout_s)
        with PORT_WRAPPERS.get().lease(lease_to_take) as lease, open_cluster(access, reader) as cluster:
            audit = audit_log(audit_folder(run.home), origin_of(run, access))
            audit.check()
            partitions = [TopicPartition(found.topic, found.partition) for found in wanted]
            for start in range(0, len(partitions), AT_ONCE):
                part = partitions[start : start + AT_ONCE]
                lease.confirm()
                found = cluster.elect(part)
                answers = {place: found.get(place, UNNAMED) for place in part}
                refused |= {place: answer for place, answer in answers.items() if answer}
                audit.append([audited(sent, {}) for sent in _sent(part, answers)])
    return refused


def _sent(partitions: Sequence[TopicPartition], answers: Mapping[TopicPartition, str]) -> Iterator[Sent]:
    """Yield a line for each topic and answer."""
    found: dict[tuple[str, str], list[int]] = {}
    for place in partitions:
        found.setdefault((place.topic, answers[place] or "accepted"), []).append(place.partition)
    for (topic, answer), ids in found.items():
        yield Sent(what="elect", topic=topic, partitions=tuple(ids), answer=answer)


def leaders_text(found: Leaders) -> str:
    """Write a line for each partition that its preferred leader does not lead."""
    all_of_them = f"{plural(found.partitions, 'partition')} of {found.environment}"
    if not found.unled:
        return f"All {all_of_them} are led by their preferred leaders."
    head = f"{len(found.unled)} of {all_of_them} are not led by their preferred leaders:"
    return "\n".join((head, *(f"  {_line(each)}" for each in found.unled)))


def _line(found: Unled) -> str:
    now = f"broker {found.leader} leads" if found.leader >= 0 else "nobody leads"
    then = "asked to lead" if found.elected else found.why_not or "an election lets it lead"
    return f"{found.topic}-{found.partition}: {now}, broker {found.preferred} is preferred ({then})"
