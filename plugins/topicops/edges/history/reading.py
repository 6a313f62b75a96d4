"""Read the history of one environment: the files that count, and the rows that wait in the spool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from topicops.edges.history.files import counted_files
from topicops.edges.history.places import table_folder
from topicops.edges.history.schemas import SCHEMAS, entry_table
from topicops.edges.history.spool import spooled
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.model.printable import first_line
from topicops.model.runs.history import TableName

T = TypeVar("T")
TRIES = 3


@dataclass(frozen=True, slots=True)
class TableFiles:
    """One table of the history."""

    table: TableName
    files: tuple[Path, ...]
    """Compacted ones, with nearly all rows of a long history."""
    others: pa.Table
    """All other rows: of runs that have a file of their own, or wait in the spool."""


@dataclass(slots=True)
class History:
    """The history of one environment. What cannot be read is left out, and named in ``warnings``."""

    home: Path
    environment: str
    warnings: list[str] = field(default_factory=list)
    damaged: set[Path] = field(default_factory=set)

    def table(self, table: TableName, *, compacted_apart: bool = True) -> TableFiles:
        """The compacted files of a table, and its other rows. Raises ``ArtifactError``.

        Args:
            compacted_apart: False: the rows of the compacted files are read too.
        """
        return self._listed_again(table, lambda: self._table(table, compacted_apart=compacted_apart))

    def rows(self, table: TableName, columns: Sequence[str], *, topic: str | None = None) -> list[tuple[Any, ...]]:
        """All rows of a table, each with the values of these columns; those of one topic alone if it is named.

        Raises:
            ArtifactError: The folder cannot be read.
        """
        return self._listed_again(table, lambda: self._rows(table, columns, topic))

    def without_damaged(self) -> bool:
        """Read every file to its end, and leave out from now on what is damaged. False: nothing new was found."""
        known = len(self.damaged)
        for table in SCHEMAS:
            for path in self.table(table).files:
                with suppress(FileNotFoundError):
                    self._read(path, SCHEMAS[table], None)
        return len(self.damaged) > known

    def _table(self, table: TableName, *, compacted_apart: bool) -> TableFiles:
        # The spool first: what a compaction moves meanwhile is there twice then, which changes no answer.
        waiting = self._waiting(table)
        compacted, others = self._files(table)
        if not compacted_apart:
            compacted, others = [], [*compacted, *others]
        rows = pa.concat_tables([waiting, *(self._read(path, SCHEMAS[table], None) for path in others)])
        return TableFiles(table, tuple(compacted), rows)

    def _rows(self, table: TableName, columns: Sequence[str], topic: str | None) -> list[tuple[Any, ...]]:
        waiting = self._waiting(table)
        schema = pa.schema([SCHEMAS[table].field(name) for name in columns])
        files = [path for paths in self._files(table) for path in paths]
        rows = pa.concat_tables(
            [_of_topic(waiting, topic).select(columns), *(self._read(path, schema, topic) for path in files)]
        )
        return list(zip(*(rows[name].to_pylist() for name in columns), strict=True))

    def _waiting(self, table: TableName) -> pa.Table:
        waiting = spooled(self.home, self.environment, lambda sentence: self._warn([sentence]))
        found = [entry_table(entry, table) for entry in waiting]
        return pa.concat_tables([SCHEMAS[table].empty_table(), *found]).replace_schema_metadata()

    def _listed_again(self, table: TableName, read: Callable[[], T]) -> T:
        """What ``read`` gives; again where a file was compacted, and removed, between its listing and its reading."""
        with as_artifact_error(table_folder(self.home, table, self.environment), "cannot be read"):
            for _ in range(TRIES - 1):
                with suppress(FileNotFoundError):
                    return read()
            return read()

    def _files(self, table: TableName) -> tuple[list[Path], list[Path]]:
        """Those that count: compacted ones, and others."""
        found = counted_files(table_folder(self.home, table, self.environment))
        self._warn(found.warnings)
        files = [file for file in found.counted if file.path not in self.damaged]
        return [file.path for file in files if file.is_compacted], [f.path for f in files if not f.is_compacted]

    def _read(self, path: Path, schema: pa.Schema, topic: str | None) -> pa.Table:
        try:
            return _with_columns(path, schema, topic)
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            self.damaged.add(path)
            self._warn([f"{path}: left out: {first_line(error)}; restore the file or move it away"])
            return schema.empty_table()

    def _warn(self, sentences: Sequence[str]) -> None:
        self.warnings.extend(sentence for sentence in sentences if sentence not in self.warnings)


def read_whole(path: Path, table: TableName) -> pa.Table:
    """All rows of a file. Raises ``OSError`` or ``pa.ArrowException``."""
    return _with_columns(path, SCHEMAS[table], None)


def _with_columns(path: Path, schema: pa.Schema, topic: str | None) -> pa.Table:
    """The file's rows in these columns; nulls in those that a file of an older version lacks."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        there = [name for name in schema.names if name in file.schema_arrow.names]
        wanted = there if topic is None or "topic" in there else [*there, "topic"]
        found = file.read(columns=wanted, use_threads=False)
    found = _of_topic(found, topic)
    arrays = [
        found[field.name].cast(field.type) if field.name in there else pa.nulls(len(found), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema.remove_metadata())


def _of_topic(rows: pa.Table, topic: str | None) -> pa.Table:
    """The rows of this topic; all if none is named."""
    if topic is None:
        return rows
    import pyarrow.compute as pc  # every run imports this module, and few ask for a topic

    return rows.filter(pc.field("topic") == topic)
