"""Add a run to the history: a Parquet file for each table that has rows, or one JSON file that waits.

Reading pyarrow in takes a quarter of a second, as long as half a plan of a small cluster takes. A process that has not
needed it leaves its rows in ``history/spool``; readers count them, and the next compaction puts them into the tables.
An install without pyarrow leaves all its rows there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.extras import has_extra
from topicops.edges.history.places import spool_path, table_folder
from topicops.edges.home.artifacts import name_on_disk
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.model.runs.history import ROW_TYPES, HistoryEntry

MOST_SPOOLED = 1_000
"""Rows; with more, JSON costs as much as reading pyarrow in."""


def append(home: Path, entry: HistoryEntry) -> None:
    """Add a run, on the disk when this returns. Its earlier entry, if it has one, counts no more.

    Raises:
        ArtifactError: The disk refuses; the run is not in the history.
    """
    rows = sum(len(entry.rows(table)) for table in ROW_TYPES)
    if "pyarrow" in sys.modules or (rows > MOST_SPOOLED and has_extra("spark")):
        append_tables(home, entry)
    else:
        path = spool_path(home, entry)
        with as_artifact_error(path, "cannot be written"):
            write_atomically(path, msgspec.json.encode(entry))


def append_tables(home: Path, entry: HistoryEntry) -> None:
    """Add a run to the tables; ``runs`` comes last, and with it the run counts. Raises ``ArtifactError``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from topicops.edges.history.schemas import entry_table

    for table in ROW_TYPES:
        if not entry.rows(table):
            continue
        folder = table_folder(home, table, entry.environment)
        path = folder / f"day={entry.recorded_at:%Y-%m-%d}" / f"{name_on_disk(entry.run)}.parquet"
        content = pa.BufferOutputStream()
        pq.write_table(entry_table(entry, table), content, compression="zstd", write_page_checksum=True)
        with as_artifact_error(path, "cannot be written"):
            write_atomically(path, content.getvalue().to_pybytes())
