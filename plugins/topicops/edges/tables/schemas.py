"""The columns of a run's tables, as Arrow schemas. ``docs/reference/artifacts.md`` says what each column means.

Every column may be null: a comparison puts the columns of a side that lacks a topic into a null struct, and Arrow
allows no required field there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

FORMAT_VERSION = "1.0"
FORMAT_KEY = "topicops.format_version"
"""Where a file's footer has the version."""

_BROKERS = pa.list_(pa.int32())
_TEXTS = pa.map_(pa.string(), pa.string())

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
SCHEMAS: Mapping[str, pa.Schema] = {"desired": DESIRED, "topics": TOPICS, "partitions": PARTITIONS}
"""By the name of the table."""
