"""The columns of the history's tables, as Arrow schemas. ``docs/reference/history.md`` says what each column means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pyarrow as pa

from topicops.edges.tables.columns import record_batch
from topicops.model.runs.history import ROW_TYPES, HistoryEntry, TableName

FORMAT_VERSION = "1.0"
FORMAT_KEY = b"topicops.history.format_version"
"""Where a file's footer has the version."""

TIME = pa.timestamp("us", tz="UTC")
_RUN = [("run", pa.string()), ("recorded_at", TIME)]
_COLUMNS: Mapping[TableName, Mapping[str, pa.DataType]] = {
    "runs": {
        "mode": pa.string(),
        "read_at": TIME,
        "commit": pa.string(),
        "cluster_id": pa.string(),
        "source": pa.string(),
        "topicops": pa.string(),
        "compared": pa.bool_(),
        "checked_before": pa.bool_(),
        "checked_after": pa.bool_(),
        "topics": pa.int64(),
        "partitions": pa.int64(),
        "brokers": pa.int64(),
        "missing": pa.int64(),
        "same": pa.int64(),
        "different": pa.int64(),
        "tombstoned": pa.int64(),
        "retired": pa.int64(),
        "paused": pa.int64(),
        "unmanaged": pa.int64(),
        "changes": pa.int64(),
        "held": pa.int64(),
        "skipped": pa.int64(),
        "blocked": pa.int64(),
        "in_place": pa.int64(),
        "not_in_place": pa.int64(),
        "rules": pa.int64(),
        "rules_failed": pa.int64(),
    },
    "deltas": {
        "topic": pa.string(),
        "topic_class": pa.string(),
        "field": pa.string(),
        "desired": pa.string(),
        "live": pa.string(),
        "owner": pa.string(),
    },
    "quality": {
        "suite": pa.string(),
        "rule": pa.string(),
        "severity": pa.string(),
        "success": pa.bool_(),
        "rows_checked": pa.int64(),
        "rows_failed": pa.int64(),
        "rows_failed_before": pa.int64(),
    },
    "unhealthy": {
        "suite": pa.string(),
        "rule": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "shown": pa.string(),
        "so_before": pa.bool_(),
    },
    "outcomes": {
        "topic": pa.string(),
        "action": pa.string(),
        "status": pa.string(),
        "message": pa.string(),
        "digest": pa.string(),
        "sent": pa.bool_(),
    },
}
SCHEMAS: Mapping[TableName, pa.Schema] = {
    table: pa.schema([*_RUN, *_COLUMNS[table].items()], metadata={FORMAT_KEY: FORMAT_VERSION}) for table in ROW_TYPES
}


def entry_table(entry: HistoryEntry, table: TableName) -> pa.Table:
    """The rows of one run as columns."""
    rows, names = entry.rows(table), [field.name for field in fields(ROW_TYPES[table])]
    columns: dict[str, list[object]] = {name: [getattr(row, name) for row in rows] for name in names}
    columns |= {"run": [entry.run] * len(rows), "recorded_at": [entry.recorded_at] * len(rows)}
    return pa.Table.from_batches([record_batch(columns, SCHEMAS[table])])
