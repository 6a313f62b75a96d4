"""The desired topics of a run, in the table ``desired``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
import pyarrow as pa

from topicops.edges.tables.rows_by_topic import RowsByTopic, problems_of, record_batch
from topicops.edges.tables.schemas import DESIRED
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.json_types import known
from topicops.model.plans.delta import desired_row
from topicops.model.release import Release
from topicops.model.specs.config_checks import value_problem
from topicops.model.specs.desired import DesiredTopic

ROWS_AT_ONCE = 2_000


def write_desired_topics(folder: TableFolder, topics: Mapping[str, DesiredTopic], release: Release) -> None:
    """Write the table, by name; brokers of ``release`` judge the configs."""
    rest = (topics[name] for name in sorted(topics))
    table = folder.new_table("desired", DESIRED)
    try:
        while part := list(islice(rest, ROWS_AT_ONCE)):
            table.write(desired_batch(part, release))
        table.keep()
    finally:
        table.discard()


def read_desired_topics(folder: TableFolder) -> RowsByTopic[DesiredTopic]:
    """The topics of the table, by name."""
    names = folder.read("desired", columns=["topic"])["topic"].to_pylist()
    return RowsByTopic(names, partial(_topics_of, folder))


def desired_batch(topics: Sequence[DesiredTopic], release: Release) -> pa.RecordBatch:
    """A row for each topic; brokers of ``release`` judge the configs."""
    rows = [desired_row(topic) for topic in topics]
    columns: Mapping[str, Sequence[object]] = {
        "topic": [row.topic for row in rows],
        "lifecycle": [row.lifecycle for row in rows],
        "partitions": [row.partitions for row in rows],
        "replication_factor": [row.replication_factor for row in rows],
        "assignment_digest": [row.assignment_digest for row in rows],
        "configs": [row.configs for row in rows],
        "config_problems": [problems_of(topic.configs, partial(value_problem, release=release)) for topic in topics],
        "owner": [topic.owner for topic in topics],
        "domain": [topic.domain for topic in topics],
        "file": [topic.location.file for topic in topics],
        "line": [topic.location.line for topic in topics],
        "spec": [msgspec.json.encode(topic).decode() for topic in topics],
    }
    return record_batch(columns, DESIRED)


def _topics_of(folder: TableFolder, names: Collection[str]) -> Iterator[tuple[str, DesiredTopic]]:
    found = folder.read("desired", columns=["topic", "spec"], topics=names)
    for name, spec in zip(found["topic"].to_pylist(), found["spec"].to_pylist(), strict=True):
        yield name, msgspec.json.decode(spec, type=known(DesiredTopic))
