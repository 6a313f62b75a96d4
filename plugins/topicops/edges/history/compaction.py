"""Make one file of the many that a day or a month has left, in a way that a crash or a second compaction never harms.

A new file is complete before it counts. Its inputs are removed an hour or more later, by another compaction, so that no
reader loses a file that it has just listed.
"""

from __future__ import annotations

import os
import secrets
from calendar import monthrange
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from topicops.edges.durable_files import make_folder, write_atomically
from topicops.edges.file_locks import try_lock
from topicops.edges.history.append import append_tables
from topicops.edges.history.files import (
    COMPACTED,
    CountedFiles,
    HistoryFile,
    compacted_metadata,
    counted_files,
)
from topicops.edges.history.places import known_environments, table_folder
from topicops.edges.history.reading import read_whole
from topicops.edges.history.schemas import SCHEMAS
from topicops.edges.history.spool import read_spooled, spool_files
from topicops.edges.home.artifacts import folders_in
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.model.json_errors import JsonError
from topicops.model.runs.history import TableName

KEPT_FOR = timedelta(hours=1)
"""How long inputs stay after their rows are in another file."""
SORTED_BY: dict[TableName, tuple[str, ...]] = {
    "runs": ("recorded_at",),
    "deltas": ("topic", "field", "recorded_at"),
    "quality": ("suite", "rule", "recorded_at"),
    "unhealthy": ("suite", "rule", "topic", "partition", "recorded_at"),
    "outcomes": ("recorded_at",),
}


def is_due(home: Path, today: date) -> bool:
    """Whether no compaction has come to its end today."""
    try:
        return _done_path(home).read_text(encoding="ascii") != today.isoformat()
    except (OSError, UnicodeDecodeError):
        return True


def compact(home: Path, today: date, *, is_late: Callable[[], bool] = lambda: False) -> bool:
    """Compact all tables of all environments. Does nothing while another process does, of whatever host.

    Args:
        today: UTC; files of today are left as they are.
        is_late: Asked before each file that is made; once it says yes, the rest is left to a later run.

    Returns:
        Whether all is compacted.

    Raises:
        ArtifactError: The disk refuses; nothing is lost.
    """
    folder = home / "history"
    with as_artifact_error(folder, "cannot be compacted"):
        make_folder(folder)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            if not try_lock(lock):
                return False
            os.utime(lock)
            # By the clock of the file system, which writes the times of the files too.
            old = os.fstat(lock).st_mtime_ns - int(KEPT_FOR.total_seconds() * 1e9)
            is_done = all(_compact_environment(home, name, today, old, is_late) for name in known_environments(home))
            if is_done:
                write_atomically(_done_path(home), today.isoformat().encode(), is_durable=False)
            return is_done
        finally:
            os.close(lock)


def period_of(day: str, today: date) -> str | None:
    """The period that one file shall hold: the month once it is over, else the day; None: the day is not over.

    Raises:
        ValueError: This is no day.
    """
    found = date.fromisoformat(day)
    if found >= today:
        return None
    return day[:7] if (found.year, found.month) != (today.year, today.month) else day


def _compact_environment(home: Path, name: str, today: date, old: int, is_late: Callable[[], bool]) -> bool:
    for path in spool_files(home, name):
        if is_late():
            return False
        _move_to_tables(home, path)
    return all(_compact_table(home, name, table, today, old, is_late) for table in SCHEMAS)


def _move_to_tables(home: Path, path: Path) -> None:
    with suppress(JsonError, FileNotFoundError):  # a reader names a damaged file
        written = path.stat().st_mtime_ns
        append_tables(home, read_spooled(path))
        if path.stat().st_mtime_ns == written:
            path.unlink()


def _compact_table(home: Path, name: str, table: TableName, today: date, old: int, is_late: Callable[[], bool]) -> bool:
    folder = table_folder(home, table, name)
    found = _without_old_inputs(counted_files(folder), old)
    _remove_leftovers(folder, today, old)
    for period, files in _groups(found, today):
        if is_late():
            return False
        _merge(folder, table, period, files)
    return True


def _without_old_inputs(found: CountedFiles, old: int) -> CountedFiles:
    """What is in the folder once the inputs of old compacted files are removed."""
    done = [made for made in found.covered if made.mtime_ns < old]
    for file in (file for made in done for file in found.covered[made]):
        file.path.unlink(missing_ok=True)
    return replace(found, covered={made: inputs for made, inputs in found.covered.items() if made not in done})


def _remove_leftovers(folder: Path, today: date, old: int) -> None:
    """What killed writers left, and days without files."""
    for day in folders_in(folder):
        for path in day.glob(".topicops-*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < old:
                    path.unlink()
        if day.name < f"day={today}":
            with suppress(OSError):  # not empty
                day.rmdir()


def _groups(found: CountedFiles, today: date) -> Iterator[tuple[str, Sequence[HistoryFile]]]:
    """The periods that have several files, with these. A file whose inputs are still there is left for another day."""
    groups = defaultdict[str, list[HistoryFile]](list)
    for file in found.counted:
        if not found.covered.get(file):
            with suppress(ValueError):
                groups[period_of(file.day, today) or ""].append(file)
    groups.pop("", None)
    return ((period, files) for period, files in sorted(groups.items()) if len(files) > 1)


def _merge(folder: Path, table: TableName, period: str, files: Sequence[HistoryFile]) -> None:
    parts: list[tuple[HistoryFile, pa.Table]] = []
    for file in files:
        with suppress(pa.ArrowException, FileNotFoundError):  # damaged: it stays as it is, and a reader names it
            parts.append((file, read_whole(file.path, table)))
    if len(parts) < 2:
        return
    inputs = [file for file, _ in parts]
    rows = pa.concat_tables([part for _, part in parts]).sort_by([(name, "ascending") for name in SORTED_BY[table]])
    content = pa.BufferOutputStream()
    rows = rows.replace_schema_metadata({**SCHEMAS[table].metadata, **compacted_metadata(inputs)})
    pq.write_table(rows, content, compression="zstd", compression_level=9, write_page_checksum=True)
    path = folder / f"day={_last_day(period)}" / f"{COMPACTED}{period}.{secrets.token_hex(4)}.parquet"
    write_atomically(path, content.getvalue().to_pybytes())


def _last_day(period: str) -> str:
    if len(period) > len("2026-10"):
        return period
    year, month = int(period[:4]), int(period[5:])
    return f"{period}-{monthrange(year, month)[1]}"


def _done_path(home: Path) -> Path:
    return home / "history" / ".compacted"
