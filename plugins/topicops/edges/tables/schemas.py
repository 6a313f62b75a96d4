"""The columns of a run's tables, as Arrow schemas. ``docs/reference/artifacts.md`` says what each column means.

Every column may be null: a comparison puts the columns of a side that lacks a topic into a null struct, and Arrow
allows no required field there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType
from typing import cast

import pyarrow as pa

from topicops.model.plans.delta import DesiredRow, LiveRow

if "pandas" not in sys.modules:
    # pyarrow imports pandas for its first array: 50 MiB and 0.4 CPU seconds, and nothing here is of pandas. Once that
    # has failed, arrays are made without it; whoever asks pyarrow for a frame of pandas still gets one.
    sys.modules["pandas"] = cast("ModuleType", None)
    with suppress(ImportError, AttributeError):
        pa.array([0])
    del sys.modules["pandas"]

FORMAT_VERSION = "1.0"
FORMAT_KEY = "topicops.format_version"
"""Key of the version in a file's footer."""
DIGEST_KEY = "topicops.digest"
"""Key of the digest of the rows, without the columns of ``OF_RUN``."""

_TYPES: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "day": pa.date32(),
    "time": pa.timestamp("us", tz="UTC"),
    "text": pa.string(),
    "ints": pa.list_(pa.int32()),
    "texts": pa.list_(pa.string()),
    "text_by_name": pa.map_(pa.string(), pa.string()),
    "long_by_name": pa.map_(pa.string(), pa.int64()),
}


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of ``name type, name type``, as SQL writes columns."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


OF_RUN = schema_of("environment text, run text, cluster_id text, began_at time")
"""Columns that each table of a run ends with, so that the tables of many runs are one data set."""
TOPICS = schema_of(
    "topic text, topic_id text, czxid long, mzxid long, partitions int, replication_factor_min int, "
    "replication_factor_max int, lowest_partition int, highest_partition int, empty_partitions int, "
    "assignment_digest text, configs text, min_insync_replicas int, overrides text_by_name, "
    "config_problems text_by_name, is_reassigning bool, is_unstable bool, has_states bool"
)
PARTITIONS = schema_of(
    "topic text, partition int, replicas ints, adding ints, removing ints, leader int, isr ints, leader_epoch int, "
    "controller_epoch int, version int"
)
DESIRED = schema_of(
    "topic text, lifecycle text, partitions int, replication_factor int, assignment_digest text, configs text, "
    "config_problems text_by_name, owner text, domain text, file text, line int, spec text"
)
_COMPARED = {
    "desired": pa.struct([DESIRED.field(name) for name in DesiredRow._fields]),
    "live": pa.struct([TOPICS.field(name) for name in LiveRow._fields]),
}
SCHEMAS: Mapping[str, pa.Schema] = {
    "desired": DESIRED,
    "topics": TOPICS,
    "partitions": PARTITIONS,
    "brokers": schema_of("broker int, rack text, endpoints texts, epoch long"),
    "cluster": schema_of(
        "cluster_id text, chroot text, source text, controller_id int, controller_epoch int, deleting long_by_name, "
        "reassigning texts, orphan_configs texts"
    ),
    "delta": pa.schema([*schema_of("topic text, presence text, topic_class text, changed texts"), *_COMPARED.items()]),
    "owners": schema_of(
        "owner text, domain text, topics long, partitions long, missing long, different long, tombstoned long, "
        "unhealthy long"
    ),
    "rule_counts": schema_of(
        "rule text, title text, severity text, success bool, rows_checked long, rows_failed long, "
        "rows_failed_before long"
    ),
    "bad_rows": schema_of("rule text, topic text, partition int, broker int, row text, was_so_before bool"),
    "load": schema_of(
        "broker int, rack text, is_live bool, partitions long, replicas long, preferred_leaders long, leaders long"
    ),
    "unhealthy": schema_of("broker int, rack text, rule text, cause text, partitions long"),
}
"""Schemas by the name of the table."""
