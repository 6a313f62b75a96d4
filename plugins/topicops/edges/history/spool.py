"""The rows that wait as JSON. Without pyarrow they are all of the history, and this module reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from topicops.edges.extras import require_extra
from topicops.edges.history.places import spool_folder, table_folder
from topicops.edges.home.artifacts import folders_in
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.model.json_errors import JsonError, json_errors
from topicops.model.json_types import known
from topicops.model.printable import first_line
from topicops.model.runs.history import ROW_TYPES, HistoryEntry, TableName
from topicops.model.times import in_utc

LARGEST = 2**31 - 1
"""The largest number of the tables' narrowest column; counts of a cluster are far below it."""


@dataclass(frozen=True, slots=True)
class SpooledHistory:
    """The history of one environment of which no run is in a table. ``warnings`` names what is left out."""

    home: Path
    environment: str
    warnings: list[str] = field(default_factory=list)

    def rows(self, table: TableName, columns: Sequence[str], *, topic: str | None = None) -> list[tuple[Any, ...]]:
        """As ``History.rows``.

        Raises:
            ArtifactError: The folder cannot be read.
            MissingExtraError: There are tables, which only pyarrow reads.
        """
        folder = table_folder(self.home, table, self.environment)
        with as_artifact_error(folder, "cannot be read"):
            if any(folders_in(folder)):
                require_extra("spark")
            entries = spooled(self.home, self.environment, self._warn)
            return [
                tuple(getattr(entry if name in ("run", "recorded_at") else row, name) for name in columns)
                for entry in entries
                for row in entry.rows(table)
                if topic is None or getattr(row, "topic", None) == topic
            ]

    def _warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)


def spooled(home: Path, environment: str, warn: Callable[[str], None]) -> Iterator[HistoryEntry]:
    """The runs that wait; ``warn`` takes a sentence for each file that cannot be read."""
    for path in spool_files(home, environment):
        try:
            yield read_spooled(path)
        except FileNotFoundError:
            continue  # it is in the tables by now
        except (OSError, JsonError) as error:
            warn(f"{path}: left out: {first_line(error)}; move it away")


def spool_files(home: Path, environment: str) -> list[Path]:
    """Files of runs that are in no table yet, sorted; hidden ones are being written."""
    return sorted(path for path in spool_folder(home, environment).glob("*.json") if not path.name.startswith("."))


def read_spooled(path: Path) -> HistoryEntry:
    """Raises ``JsonError`` or ``OSError``; ``JsonError`` also for a number or a time that no table can hold."""
    with json_errors():
        entry = msgspec.json.decode(path.read_bytes(), type=known(HistoryEntry))
        for row in (row for table in ROW_TYPES for row in entry.rows(table)):
            for field in fields(row):
                _require_a_place(getattr(row, field.name))
        return replace(entry, recorded_at=in_utc(entry.recorded_at))


def _require_a_place(value: object) -> None:
    """Raises ``ValueError`` for a value that the columns of the tables do not take."""
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"a number is larger than {LARGEST}")
    if isinstance(value, datetime):
        in_utc(value)
