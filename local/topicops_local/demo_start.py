"""What the demo begins with: a copy of specs and DAG files for another Kafka, and one topic for each kind of change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from topicops.flow.runs.run import EnvironmentRun
from topicops.flow.single_steps import validate
from topicops.model.cluster.snapshot import Assignment
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.changes import CreateTopic, Precondition
from topicops.model.ports import AnswerKind
from topicops.model.release import Release
from topicops.model.specs.desired import Desired, DesiredTopic, Lifecycle
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk

COMPRESSION = "compression.type"
UNMANAGED = "scratch.experiments"
MIN_ISR = "min.insync.replicas"
RECORD = b"a record of the demo " * 500
RECORDS = 3000
RETENTION = "retention.ms"
ZSTD = Release(2, 1)
"""Brokers know the compression ``zstd`` (KIP-110)."""


def copy_files(topics: Path, dags: Path, folder: Path) -> tuple[Path, Path]:
    """Copy both folders into ``folder``, side by side as DAG files expect it; returns the copies."""
    shutil.rmtree(folder, ignore_errors=True)
    copies = folder / "topics", folder / "dags"
    for source, copy in zip((topics, dags), copies, strict=True):
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copies


def fit_to_kafka(topics: Path, environment: str, release: Release, *, kraft: bool) -> Iterator[str]:
    """Write into a copy of the specs what that Kafka needs; yields a line about each thing.

    Raises:
        UsageError: There is no such environment.
    """
    file = topics / "environments" / f"{environment}.yaml"
    if not file.is_file():
        raise UsageError(f"{file}: no such file; the demo needs the environment {environment}")
    _edit(file, lambda spec: _fit_cluster(spec["cluster"], release, kraft=kraft))
    source = ", source: kafka, lease: file" if kraft else ""
    yield f'environment {environment}: kafkaVersion: "{release}"{source}'
    if release < ZSTD:
        for each in sorted(topics.rglob("*.yaml")):
            if _edit(each, _without_zstd):
                yield f"{each.stem}: {COMPRESSION}: lz4, because Kafka {release} has no zstd"


def _fit_cluster(cluster: dict[str, Any], release: Release, *, kraft: bool) -> bool:
    cluster["kafkaVersion"] = str(release)
    if kraft:
        cluster.pop("zookeeper", None)
        cluster |= {"source": "kafka", "lease": "file"}
    return True


def _without_zstd(spec: dict[str, Any]) -> bool:
    configs = spec.get("configs") or {}
    if configs.get(COMPRESSION) != "zstd":
        return False
    configs[COMPRESSION] = "lz4"
    return True


def _edit(file: Path, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Write the file again if ``change`` changed its ``spec``; says whether."""
    import yaml

    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    changed = isinstance(content, dict) and isinstance(content.get("spec"), dict) and change(content["spec"])
    if changed:
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return changed


def seed_cluster(run: EnvironmentRun, bootstrap_servers: str, brokers: Sequence[int], *, moves: bool) -> Iterator[str]:
    """Create the topics on an empty cluster, and yield one line about each; ``moves``: its Kafka moves replicas."""
    from topicops.edges.kafka.admin import KafkaAdmin

    validate(run)
    seeds = list(seeds_of(run.read_desired(), brokers, moves=moves))
    admin = KafkaAdmin({"bootstrap.servers": bootstrap_servers})
    try:
        for (topic, why), answer in zip(seeds, admin.create([topic for topic, _ in seeds]), strict=True):
            if answer.kind is not AnswerKind.ACCEPTED:
                raise ClusterError(f"{topic.topic}: {answer.error}")
            yield f"{topic.topic}: {why}"
    finally:
        admin.close()
    for topic, _ in seeds:
        if topic.replication_factor == 1 and topic.topic != UNMANAGED:
            _fill(bootstrap_servers, topic.topic)
            yield f"{topic.topic}: {len(RECORD) * RECORDS >> 20} MiB of records, which its new replicas have to copy"


def _fill(bootstrap_servers: str, topic: str) -> None:
    """Write records. Raises ``ClusterError`` where brokers do not take them."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 50})
    for number in range(RECORDS):
        producer.produce(topic, RECORD, key=str(number))
        producer.poll(0)
    if left := producer.flush(60):
        raise ClusterError(f"{topic}: the brokers took all but {left} records within 60 s")


def seeds_of(desired: Desired, brokers: Sequence[int], *, moves: bool = True) -> Iterator[tuple[CreateTopic, str]]:
    """Yield topics to expand, with a drifted config, right ones, of one replica, with a tombstone, without a file.

    There is one of each, but all tombstones.
    """
    topics = sorted(desired.topics.values(), key=lambda topic: topic.name)
    present = [topic for topic in topics if topic.lifecycle is Lifecycle.PRESENT]
    if growing := _take(present, lambda topic: topic.partitions > 1):
        fewer = growing.partitions // 2
        yield _created(growing, brokers, partitions=fewer), f"{fewer} partitions, the spec wants {growing.partitions}"
    if drifted := _take(present, lambda topic: bool(topic.configs.get(RETENTION))):
        yield _created(drifted, brokers, configs={RETENTION: "3600000"}), f"{RETENTION} was set to an hour by hand"
    if right := _take(present, lambda _: True):
        yield _created(right, brokers), "as the spec says"
    if moves and (thin := _take(present, _may_have_one_replica)):
        wants = f"the spec wants {thin.replication_factor}"
        yield _created(replace(thin, replication_factor=1), brokers), f"one replica of each partition, {wants}"
    for topic in topics:
        if topic.lifecycle is Lifecycle.ABSENT:
            old = replace(topic, partitions=3, replication_factor=min(3, len(brokers)))
            yield _created(old, brokers), "its spec is a tombstone"
    scratch = DesiredTopic(name=UNMANAGED, owner="", location=Location("demo"), partitions=1, replication_factor=1)
    yield _created(scratch, brokers), "no spec names it"


def _may_have_one_replica(topic: DesiredTopic) -> bool:
    """Return whether producers may write while it grows: with one replica of two that must be in sync, they may not."""
    return topic.replication_factor > 2 and topic.partitions > 1 and MIN_ISR not in topic.configs


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
