"""The topics of a run, in tables: the desired ones in ``desired``, the live ones in ``topics`` and ``partitions``.

Of many topics a step needs few: the values of a table are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import partial
from itertools import chain, islice, pairwise, repeat
from operator import not_
from typing import Any, Generic, Self, TypeVar, cast

import msgspec
import pyarrow as pa

from topicops.edges.tables.schemas import DESIRED, PARTITIONS, TOPICS
from topicops.edges.tables.table_folder import NewTable, TableFolder
from topicops.model.cluster.snapshot import Assignment, LiveTopic, PartitionState, Tally, Totals, identity_of
from topicops.model.errors import ArtifactError
from topicops.model.json_types import known
from topicops.model.plans.delta import DesiredRow, LiveRow, desired_row, live_row
from topicops.model.release import Release
from topicops.model.specs.config_checks import config_problem, value_problem
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.topic_config import own_min_insync_replicas

ROWS_AT_ONCE = 2_000
OF_STATE = ("leader", "isr", "leader_epoch", "controller_epoch", "version")
"""Columns of a partition's state; all null where it has none."""
Value = TypeVar("Value")
ReadTopics = Callable[[Collection[str]], Iterable[tuple[str, Value]]]
"""Reads these topics from the tables, each with its name."""


class RowsByTopic(Mapping[str, Value], Generic[Value]):
    """A mapping by name, in order. It holds all names, and the values that were asked for.

    The tables must stay as they are. ``hold`` reads many at once, and whoever asks for all values gets all of them
    read; for one name alone the file is opened again. Raises ``ArtifactError`` for a name that is there twice.
    """

    def __init__(self, names: Iterable[str], read: ReadTopics[Value]) -> None:
        rows = sorted(names)
        self._found: dict[str, Value | None] = dict.fromkeys(rows)
        if twice := next((one for one, other in pairwise(rows) if one == other), None):
            raise ArtifactError(f"a table of this run has {twice} twice; start a new run")
        self._read = read

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Value:
        if self._found[name] is None:
            self.hold([name])
        return cast("Value", self._found[name])

    def values(self) -> ValuesView[Value]:
        self.hold(self._found)
        return super().values()

    def items(self) -> ItemsView[str, Value]:
        self.hold(self._found)
        return super().items()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """Do as ``model.topics_in_files.InFile``."""
        wanted = [name for name in names if name in self._found]
        return dict(self._read(wanted)) if wanted else {}

    def hold(self, names: Collection[str]) -> None:
        """Do as ``model.topics_in_files.InFile``."""
        missing = [name for name in names if name in self._found and self._found[name] is None]
        if missing:
            self._found.update(self._read(missing))


def write_desired_topics(folder: TableFolder, topics: Mapping[str, DesiredTopic], release: Release) -> None:
    """Write the table, by name; brokers of ``release`` judge the configs."""
    rest = (topics[name] for name in sorted(topics))
    parts = iter(lambda: list(islice(rest, ROWS_AT_ONCE)), [])
    folder.write("desired", DESIRED, (desired_batch(part, release) for part in parts))


def read_desired_topics(folder: TableFolder) -> RowsByTopic[DesiredTopic]:
    names = folder.read("desired", columns=["topic"])["topic"].to_pylist()
    return RowsByTopic(names, partial(_desired_of, folder))


def desired_batch(topics: Sequence[DesiredTopic], release: Release) -> pa.RecordBatch:
    """Return a row for each topic; brokers of ``release`` judge the configs."""
    rows = [desired_row(topic) for topic in topics]
    columns: Mapping[str, Sequence[object]] = _columns(rows, DesiredRow._fields) | {
        "config_problems": [_problems(topic.configs, partial(value_problem, release=release)) for topic in topics],
        "domain": [topic.domain for topic in topics],
        "file": [topic.location.file for topic in topics],
        "line": [topic.location.line for topic in topics],
        "spec": [msgspec.json.encode(topic).decode() for topic in topics],
    }
    return _batch(columns, DESIRED)


def _desired_of(folder: TableFolder, names: Collection[str]) -> Iterator[tuple[str, DesiredTopic]]:
    found = folder.read("desired", columns=["topic", "spec"], topics=names)
    for name, spec in zip(found["topic"].to_pylist(), found["spec"].to_pylist(), strict=True):
        yield name, msgspec.json.decode(spec, type=known(DesiredTopic))


class LiveTables:
    """Fills ``model.ports.TopicSink``: writes topics and partitions while they are read.

    A context manager; tables that are not finished when it ends leave nothing behind.
    """

    def __init__(self, folder: TableFolder, release: Release) -> None:
        """Take the ``release`` whose brokers judge the overrides."""
        self._folder = folder
        self._release = release
        self._new: tuple[NewTable, ...] = ()
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
    names = folder.read("topics", columns=["topic"])["topic"].to_pylist()
    return RowsByTopic(names, partial(_live_of, folder))


def read_identities(folder: TableFolder) -> Iterator[tuple[str, str]]:
    """Yield each topic with its identity, as ``LiveTopic.identity``."""
    for batch in folder.read("topics", columns=["topic", "topic_id", "czxid"]).to_batches():
        columns = batch.to_pydict()
        for topic, topic_id, czxid in zip(columns["topic"], columns["topic_id"], columns["czxid"], strict=True):
            yield topic, identity_of(topic_id, czxid)


def topics_batch(topics: Sequence[LiveTopic], release: Release) -> pa.RecordBatch:
    """Return a row for each topic; brokers of ``release`` judge the overrides."""
    columns = _columns([live_row(topic) for topic in topics], LiveRow._fields)
    columns |= _columns(topics, ("topic_id", "czxid", "mzxid", "is_reassigning"))
    columns |= {
        "lowest_partition": [min(topic.assignment, default=0) for topic in topics],
        "highest_partition": [max(topic.assignment, default=-1) for topic in topics],
        "empty_partitions": [sum(map(not_, topic.assignment.values())) for topic in topics],
        "min_insync_replicas": [own_min_insync_replicas(topic.overrides) for topic in topics],
        "overrides": [list(topic.overrides.items()) for topic in topics],
        "config_problems": [_problems(topic.overrides, partial(config_problem, release=release)) for topic in topics],
        "is_unstable": [topic.unstable for topic in topics],
        "has_states": [topic.states is not None for topic in topics],
    }
    return _batch(columns, TOPICS)


def partitions_batch(topics: Sequence[LiveTopic]) -> pa.RecordBatch:
    """Return a row for each partition of each topic, and for each that only a reassignment or a state names."""
    named = [sorted({*topic.assignment, *topic.adding, *topic.removing, *(topic.states or ())}) for topic in topics]

    def found(field: str) -> list[Any]:
        by_partition = (getattr(topic, field) or {} for topic in topics)
        return list(chain.from_iterable(map(rows.get, ids) for rows, ids in zip(by_partition, named, strict=True)))

    columns: dict[str, Sequence[object]] = {
        "topic": list(chain.from_iterable(map(repeat, (topic.name for topic in topics), map(len, named)))),
        "partition": list(chain.from_iterable(named)),
        "replicas": found("assignment"),
        "adding": found("adding"),
        "removing": found("removing"),
    }
    states = found("states")
    of_state = _columns(states, OF_STATE) if any(states) else dict.fromkeys(OF_STATE, states)
    return _batch(columns | of_state, PARTITIONS)


def _live_of(folder: TableFolder, names: Collection[str]) -> Iterator[tuple[str, LiveTopic]]:
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
        row["partition"]: PartitionState(**{name: row[name] for name in OF_STATE} | {"isr": tuple(row["isr"])})
        for row in partitions
        if row["leader"] is not None
    }


def _columns(values: Sequence[object], names: Iterable[str]) -> dict[str, Sequence[object]]:
    """Return the columns that have the names of fields; null where there is no value."""
    return {name: [getattr(value, name, None) for value in values] for name in names}


def _batch(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _problems(configs: Mapping[str, str | None], problem_of: Callable[[str, str], str]) -> list[tuple[str, str]]:
    """Return why brokers would refuse a value, by config; only those that they would refuse."""
    return [
        (name, problem) for name, text in configs.items() if text is not None and (problem := problem_of(name, text))
    ]
