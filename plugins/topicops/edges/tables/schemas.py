"""The columns of a run's tables, as Arrow schemas. ``docs/reference/artifacts.md`` says what each column means.

Every column may be null: a comparison puts the columns of a side that lacks a topic into a null struct, and Arrow
allows no required field there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from topicops.model.plans.delta import DesiredRow, LiveRow

FORMAT_VERSION = "1.0"
FORMAT_KEY = "topicops.format_version"
"""Where a file's footer has the version."""

_BROKERS = pa.list_(pa.int32())
_TEXTS = pa.map_(pa.string(), pa.string())
_TEXT_LIST = pa.list_(pa.string())

TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("czxid", pa.int64()),
        ("mzxid", pa.int64()),
        ("partitions", pa.int32()),
        ("replication_factor_min", pa.int32()),
        ("replication_factor_max", pa.int32()),
        ("lowest_partition", pa.int32()),
        ("highest_partition", pa.int32()),
        ("empty_partitions", pa.int32()),
        ("assignment_digest", pa.string()),
        ("configs", pa.string()),
        ("min_insync_replicas", pa.int32()),
        ("overrides", _TEXTS),
        ("config_problems", _TEXTS),
        ("is_reassigning", pa.bool_()),
        ("is_unstable", pa.bool_()),
        ("has_states", pa.bool_()),
    ]
)
PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", _BROKERS),
        ("adding", _BROKERS),
        ("removing", _BROKERS),
        ("leader", pa.int32()),
        ("isr", _BROKERS),
        ("leader_epoch", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("version", pa.int32()),
    ]
)
DESIRED = pa.schema(
    [
        ("topic", pa.string()),
        ("lifecycle", pa.string()),
        ("partitions", pa.int32()),
        ("replication_factor", pa.int32()),
        ("assignment_digest", pa.string()),
        ("configs", pa.string()),
        ("config_problems", _TEXTS),
        ("owner", pa.string()),
        ("domain", pa.string()),
        ("file", pa.string()),
        ("line", pa.int32()),
        ("spec", pa.string()),
    ]
)
BROKERS = pa.schema([("broker", pa.int32()), ("rack", pa.string()), ("endpoints", _TEXT_LIST), ("epoch", pa.int64())])
CLUSTER = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("chroot", pa.string()),
        ("source", pa.string()),
        ("controller_id", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("deleting", pa.map_(pa.string(), pa.int64())),
        ("reassigning", _TEXT_LIST),
        ("orphan_configs", _TEXT_LIST),
    ]
)
DELTA = pa.schema(
    [
        ("topic", pa.string()),
        ("presence", pa.string()),
        ("topic_class", pa.string()),
        ("changed", _TEXT_LIST),
        ("desired", pa.struct([DESIRED.field(name) for name in DesiredRow._fields])),
        ("live", pa.struct([TOPICS.field(name) for name in LiveRow._fields])),
    ]
)
CLASSES = pa.schema(
    [("owner", pa.string()), ("domain", pa.string()), ("topic_class", pa.string()), ("topics", pa.int64())]
)
RULE_COUNTS = pa.schema(
    [
        ("rule", pa.string()),
        ("title", pa.string()),
        ("severity", pa.string()),
        ("success", pa.bool_()),
        ("rows_checked", pa.int64()),
        ("rows_failed", pa.int64()),
        ("rows_failed_before", pa.int64()),
    ]
)
BAD_ROWS = pa.schema(
    [
        ("rule", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("broker", pa.int32()),
        ("row", pa.string()),
        ("was_so_before", pa.bool_()),
    ]
)
LOAD = pa.schema(
    [
        ("broker", pa.int32()),
        ("rack", pa.string()),
        ("is_live", pa.bool_()),
        ("partitions", pa.int64()),
        ("replicas", pa.int64()),
        ("preferred_leaders", pa.int64()),
        ("leaders", pa.int64()),
    ]
)
UNHEALTHY = pa.schema(
    [
        ("broker", pa.int32()),
        ("rack", pa.string()),
        ("rule", pa.string()),
        ("cause", pa.string()),
        ("partitions", pa.int64()),
    ]
)
SCHEMAS: Mapping[str, pa.Schema] = {
    "desired": DESIRED,
    "topics": TOPICS,
    "partitions": PARTITIONS,
    "brokers": BROKERS,
    "cluster": CLUSTER,
    "delta": DELTA,
    "classes": CLASSES,
    "rule_counts": RULE_COUNTS,
    "bad_rows": BAD_ROWS,
    "load": LOAD,
    "unhealthy": UNHEALTHY,
}
"""By the name of the table."""
