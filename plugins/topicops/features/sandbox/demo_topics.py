"""The topics of the demo's cluster before the plan: one for each kind of change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from topicops.flow.runs.run import EnvironmentRun
from topicops.flow.single_steps import validate
from topicops.model.cluster.snapshot import Assignment
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import CreateTopic, Precondition
from topicops.model.ports import AnswerKind
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk

UNMANAGED = "scratch.experiments"
RETENTION = "retention.ms"


def seed_cluster(run: EnvironmentRun, bootstrap_servers: str, brokers: Sequence[int]) -> Iterator[str]:
    """Create the topics on an empty cluster, and yield one line about each."""
    from topicops.edges.kafka.admin import KafkaAdmin

    validate(run)
    seeds = list(seeds_of(run.read_desired(), brokers))
    admin = KafkaAdmin({"bootstrap.servers": bootstrap_servers})
    try:
        for (topic, why), answer in zip(seeds, admin.create([topic for topic, _ in seeds]), strict=True):
            if answer.kind is not AnswerKind.ACCEPTED:
                raise ClusterError(f"{topic.topic}: {answer.error}")
            yield f"{topic.topic}: {why}"
    finally:
        admin.close()


def seeds_of(desired: Desired, brokers: Sequence[int]) -> Iterator[tuple[CreateTopic, str]]:
    """One topic to expand, one with a drifted config, one that is right, each tombstoned one, an unmanaged one."""
    topics = sorted(desired.topics.values(), key=lambda topic: topic.name)
    present = [topic for topic in topics if topic.lifecycle is Lifecycle.PRESENT]
    if growing := _take(present, lambda topic: topic.partitions > 1):
        fewer = growing.partitions // 2
        yield _created(growing, brokers, partitions=fewer), f"{fewer} partitions, the spec wants {growing.partitions}"
    if drifted := _take(present, lambda topic: bool(topic.configs.get(RETENTION))):
        yield _created(drifted, brokers, configs={RETENTION: "3600000"}), f"{RETENTION} was set to an hour by hand"
    if right := _take(present, lambda _: True):
        yield _created(right, brokers), "as the spec says"
    for topic in topics:
        if topic.lifecycle is Lifecycle.ABSENT:
            old = replace(topic, partitions=3, replication_factor=min(3, len(brokers)))
            yield _created(old, brokers), "its spec is a tombstone"
    scratch = DesiredTopic(name=UNMANAGED, owner="", location=Location("demo"), partitions=1, replication_factor=1)
    yield _created(scratch, brokers), "no spec names it"


def _take(topics: list[DesiredTopic], fits: Callable[[DesiredTopic], bool]) -> DesiredTopic | None:
    """Remove the first fitting topic from the list, and return it."""
    topic = next(filter(fits, topics), None)
    if topic is not None:
        topics.remove(topic)
    return topic


def _created(
    topic: DesiredTopic, brokers: Sequence[int], *, partitions: int | None = None, configs: dict[str, str] | None = None
) -> CreateTopic:
    written = {name: value for name, value in topic.configs.items() if value is not None}
    rows = partitions or topic.partitions
    return CreateTopic(
        topic=topic.name,
        location=topic.location,
        risk=Risk.SAFE,
        reversible=True,
        precondition=Precondition(absent=True),
        partitions=rows,
        replication_factor=topic.replication_factor,
        assignment=_in_turn(brokers, rows, topic.replication_factor),
        configs={**written, **(configs or {})},
    )


def _in_turn(brokers: Sequence[int], partitions: int, replication_factor: int) -> Assignment:
    return {
        p: tuple(brokers[(p + offset) % len(brokers)] for offset in range(replication_factor))
        for p in range(partitions)
    }
