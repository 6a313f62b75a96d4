"""Why a replica on a live broker never comes back, and a deletion never ends: its log directory failed.

Source: kafka.server.ReplicaManager#handleLogDirFailure (3.9): the broker serves these replicas no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.log_directories import REPAIR, failed_by_broker, named, replicas_on_failed
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import at, marker_path, read_from, topic_path


def failed_log_directory(facts: WhyFacts) -> Iterator[Cause]:
    """Another disk and a restart bring the replica back, as a copy of its leader's."""
    if facts.is_deleting:
        return
    for broker, partitions in lost_replicas(facts).items():
        yield Cause(
            id="failed-log-directory",
            kind=CauseKind.STUCK,
            message=f"broker {broker} is live, and its log directory {_paths(facts, broker)} has failed: its replica "
            f"of {partition_names(partitions)} is in none that works, and does not come back by itself",
            way_out=f"{REPAIR}; it copies the records anew from the leaders",
            caution=_loss(facts, broker, partitions),
            read_from=_answers_of(broker),
        )


def deletion_waits_for_disk(facts: WhyFacts) -> Iterator[Cause]:
    """The broker refuses to delete what it cannot reach, and the controller waits until it registers anew."""
    if not facts.is_deleting:
        return
    marked = facts.times.marker if facts.times else None
    for broker, partitions in lost_replicas(facts).items():
        yield Cause(
            id="deletion-waits-for-disk",
            kind=CauseKind.STUCK,
            message=f"the deletion asked for{at(marked)} does not finish: broker {broker} is live, and its log "
            f"directory {_paths(facts, broker)} has failed; its replica of {partition_names(partitions)} is in none "
            "that works",
            way_out=f"{REPAIR}: the deletion goes on by itself then",
            read_from=(*read_from(facts, marker_path(facts), topic_path(facts)), *_answers_of(broker)),
        )


def lost_replicas(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Partitions of the topic by broker: their replica is on a log directory that failed."""
    return replicas_on_failed(facts.topic, facts.live.assignment if facts.live else {}, facts.logs)


def able_brokers(facts: WhyFacts, partition: int) -> frozenset[int]:
    """The registered brokers whose replica of this partition is not known to be on such a directory."""
    return facts.brokers - {broker for broker, lost in lost_replicas(facts).items() if partition in lost}


def _loss(facts: WhyFacts, broker: int, partitions: Sequence[int]) -> str:
    """Kafka elects a replica of the ISR that comes back, also with an empty log, and the others drop their records."""
    last = [p for p in partitions if p in facts.states and facts.states[p].isr == (broker,)]
    return (
        f"no other replica of {partition_names(last)} is in sync: with an empty disk the records are lost"
        if last
        else ""
    )


def _paths(facts: WhyFacts, broker: int) -> str:
    return named(failed_by_broker(facts.logs)[broker])


def _answers_of(broker: int) -> tuple[str, ...]:
    return (f"log directories of broker {broker}",)
