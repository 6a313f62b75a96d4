"""The live topics of a run, in the tables ``topics`` and ``partitions``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from topicops.edges.tables.rows_by_topic import RowsByTopic, problems_of, record_batch
from topicops.edges.tables.schemas import PARTITIONS, TOPICS
from topicops.edges.tables.table_folder import NewTable, TableFolder
from topicops.model.cluster.snapshot import Assignment, LiveTopic, PartitionState, Tally, Totals, identity_of
from topicops.model.plans.delta import live_row
from topicops.model.release import Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import own_min_insync_replicas


class LiveTables:
    """Fills ``model.ports.TopicSink``: writes topics and partitions while they are read.

    A context manager; tables that are not finished when it ends leave nothing behind.
    """

    def __init__(self, folder: TableFolder, release: Release) -> None:
        """``release``: whose brokers judge the overrides."""
        self._folder = folder
        self._release = release
        self._new: tuple[NewTable, ...] = ()
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._discard()

    def begin(self) -> None:
        self._discard()
        self._tally = Tally()
        self._new = (self._folder.new_table("topics", TOPICS), self._folder.new_table("partitions", PARTITIONS))

    def take(self, topics: Sequence[LiveTopic]) -> None:
        if topics:
            self._tally.count(topics)
            batches = topics_batch(topics, self._release), partitions_batch(topics)
            for table, batch in zip(self._new, batches, strict=True):
                table.write(batch)

    def finish(self) -> Mapping[str, LiveTopic]:
        for table in self._new:
            table.keep()
        return read_live_topics(self._folder)

    @property
    def totals(self) -> Totals:
        """Of the topics that were taken since the last ``begin``."""
        return self._tally.totals

    def _discard(self) -> None:
        for table in self._new:
            table.discard()
        self._new = ()


def read_live_topics(folder: TableFolder) -> RowsByTopic[LiveTopic]:
    """The topics of the tables, by name."""
    names = folder.read("topics", columns=["topic"])["topic"].to_pylist()
    return RowsByTopic(names, partial(_topics_of, folder))


def read_identities(folder: TableFolder) -> Iterator[tuple[str, str]]:
    """Yield each topic with its identity, as ``LiveTopic.identity``."""
    for batch in folder.read("topics", columns=["topic", "topic_id", "czxid"]).to_batches():
        columns = batch.to_pydict()
        for topic, topic_id, czxid in zip(columns["topic"], columns["topic_id"], columns["czxid"], strict=True):
            yield topic, identity_of(topic_id, czxid)


def topics_batch(topics: Sequence[LiveTopic], release: Release) -> pa.RecordBatch:
    """A row for each topic; brokers of ``release`` judge the overrides."""
    rows = [live_row(topic) for topic in topics]
    columns: Mapping[str, Sequence[object]] = {
        "topic": [topic.name for topic in topics],
        "topic_id": [topic.topic_id for topic in topics],
        "czxid": [topic.czxid for topic in topics],
        "mzxid": [topic.mzxid for topic in topics],
        "partitions": [row.partitions for row in rows],
        "replication_factor_min": [row.replication_factor_min for row in rows],
        "replication_factor_max": [row.replication_factor_max for row in rows],
        "lowest_partition": [min(topic.assignment, default=0) for topic in topics],
        "highest_partition": [max(topic.assignment, default=-1) for topic in topics],
        "empty_partitions": [sum(not row for row in topic.assignment.values()) for topic in topics],
        "assignment_digest": [row.assignment_digest for row in rows],
        "configs": [row.configs for row in rows],
        "min_insync_replicas": [own_min_insync_replicas(topic.overrides) for topic in topics],
        "overrides": [list(topic.overrides.items()) for topic in topics],
        "config_problems": [problems_of(topic.overrides, partial(config_problem, release=release)) for topic in topics],
        "is_reassigning": [topic.is_reassigning for topic in topics],
        "is_unstable": [topic.unstable for topic in topics],
        "has_states": [topic.states is not None for topic in topics],
    }
    return record_batch(columns, TOPICS)


def partitions_batch(topics: Sequence[LiveTopic]) -> pa.RecordBatch:
    """A row for each partition of each topic, and for each that only a reassignment or a state names."""
    keys = [(topic, partition) for topic in topics for partition in _partitions(topic)]
    states = [(topic.states or {}).get(partition) for topic, partition in keys]

    def of_state(field: Callable[[PartitionState], object]) -> list[object]:
        return [None if state is None else field(state) for state in states]

    columns: Mapping[str, Sequence[object]] = {
        "topic": [topic.name for topic, _ in keys],
        "partition": [partition for _, partition in keys],
        "replicas": [topic.assignment.get(partition) for topic, partition in keys],
        "adding": [topic.adding.get(partition) for topic, partition in keys],
        "removing": [topic.removing.get(partition) for topic, partition in keys],
        "leader": of_state(lambda state: state.leader),
        "isr": of_state(lambda state: state.isr),
        "leader_epoch": of_state(lambda state: state.leader_epoch),
        "controller_epoch": of_state(lambda state: state.controller_epoch),
        "version": of_state(lambda state: state.version),
    }
    return record_batch(columns, PARTITIONS)


def _partitions(topic: LiveTopic) -> Sequence[int]:
    return sorted({*topic.assignment, *topic.adding, *topic.removing, *(topic.states or ())})


def _topics_of(folder: TableFolder, names: Collection[str]) -> Iterator[tuple[str, LiveTopic]]:
    wanted = sorted(names)
    partitions: dict[str, list[Mapping[str, Any]]] = {name: [] for name in wanted}
    for row in folder.read("partitions", topics=wanted).to_pylist():
        partitions[row["topic"]].append(row)
    for row in folder.read("topics", topics=wanted).to_pylist():
        yield row["topic"], _topic(row, partitions[row["topic"]])


def _topic(row: Mapping[str, Any], partitions: Sequence[Mapping[str, Any]]) -> LiveTopic:
    return LiveTopic(
        name=row["topic"],
        topic_id=row["topic_id"],
        czxid=row["czxid"],
        mzxid=row["mzxid"],
        assignment=_replicas(partitions, "replicas"),
        adding=_replicas(partitions, "adding"),
        removing=_replicas(partitions, "removing"),
        overrides=dict(row["overrides"]),
        unstable=row["is_unstable"],
        states=_states(partitions) if row["has_states"] else None,
    )


def _replicas(partitions: Sequence[Mapping[str, Any]], column: str) -> Assignment:
    return {row["partition"]: tuple(row[column]) for row in partitions if row[column] is not None}


def _states(partitions: Sequence[Mapping[str, Any]]) -> dict[int, PartitionState]:
    return {
        row["partition"]: PartitionState(
            leader=row["leader"],
            isr=tuple(row["isr"]),
            leader_epoch=row["leader_epoch"],
            controller_epoch=row["controller_epoch"],
            version=row["version"],
        )
        for row in partitions
        if row["leader"] is not None
    }
