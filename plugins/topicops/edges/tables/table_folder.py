"""Where the tables of a run are: one Parquet file for each, on a disk, an object store or HDFS.

Each run's are in its own folder, or all are below the URI that ``TOPICOPS_TABLES`` gives.

A file is complete, or does not exist: it is written under a hidden name, and takes its own name at the end.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from topicops.edges.durable_files import make_folder, sync_folder
from topicops.edges.tables.schemas import DIGEST_KEY, FORMAT_KEY, FORMAT_VERSION, OF_RUN, SCHEMAS
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.printable import first_line

RUNS = "runs"
"""The folder of all runs."""
OWN_FOLDER = "tables"
"""The place of tables that are in the run's own folder."""
_UNWRITTEN = "cannot be written"
_MAJOR = FORMAT_VERSION.partition(".")[0]


@dataclass(frozen=True, slots=True)
class TableFolder:
    """One folder of tables. Every problem is an ``ArtifactError`` that names the file."""

    filesystem: fs.FileSystem
    path: str
    scheme: str = "file"
    """Scheme of its URI."""
    is_shared: bool = False
    """Other hosts find it under the same URI."""
    of_run: Mapping[str, object] = field(default_factory=dict, compare=False)
    """Values of the columns ``OF_RUN``; empty for tables of no run."""

    @classmethod
    def at(cls, place: Path | str) -> Self:
        """Open a folder of this disk, or a URI that pyarrow knows: ``s3://``, ``hdfs://``, ``gs://``."""
        if isinstance(place, Path):
            return cls(fs.LocalFileSystem(), str(place.absolute()))
        scheme = place.partition("://")[0] if "://" in place else "file"
        filesystem, path = _opened(place)
        return cls(filesystem, path.rstrip("/"), scheme, is_shared=True)

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def make(self) -> None:
        if self.is_local:
            make_folder(Path(self.path))
        else:
            self.filesystem.create_dir(self.path, recursive=True)

    def below(self, *names: str) -> TableFolder:
        return replace(self, path="/".join((self.path, *names)))

    def uri(self, name: str) -> str:
        """Return it as Spark reads it; Hadoop's name of ``s3://`` is ``s3a://``."""
        return f"{'s3a' if self.scheme == 's3' else self.scheme}://{self.file(name)}"

    def copy(self, name: str, into: Path) -> TableFolder:
        """Copy a table into a folder of this disk, which it makes."""
        copy = TableFolder.at(into)
        copy.make()
        with self.errors(name, "cannot be read"):
            source, target = self.filesystem, copy.filesystem
            fs.copy_files(self.file(name), copy.file(name), source_filesystem=source, destination_filesystem=target)
        return copy

    def has(self, name: str) -> bool:
        with self.errors(name, "cannot be read"):
            return bool(self.filesystem.get_file_info(self.file(name)).is_file)

    def digest(self, *names: str) -> str:
        """SHA-256 of the rows of these tables. Any run that writes the same rows in the same parts has the same one."""
        digest = hashlib.sha256()
        for name in names:
            with self._reading(name) as found:
                digest.update(found.metadata.metadata[DIGEST_KEY.encode()])
        return digest.hexdigest()

    def remove(self, *names: str) -> None:
        """Remove tables; a missing one is no problem."""
        for name in names:
            with self.errors(name, "cannot be removed"), suppress(FileNotFoundError):
                self.filesystem.delete_file(self.file(name))

    def remove_all(self) -> None:
        """Remove the folder and all tables in it and below; a missing one is no problem."""
        with self.errors(None, "cannot be removed"), suppress(FileNotFoundError):
            self.filesystem.delete_dir(self.path)

    def write(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a whole table, or leave nothing behind."""
        table = self.new_table(name, schema)
        try:
            for batch in batches:
                table.write(batch)
            table.keep()
        finally:
            table.discard()

    def new_table(self, name: str, schema: pa.Schema) -> NewTable:
        """Return a table to be written; any table of that name stays until the new one is kept."""
        return NewTable(self, name, schema)

    def read(
        self, name: str, *, columns: Sequence[str] | None = None, topics: Collection[str] | None = None
    ) -> pa.Table:
        """Return a table without the columns of ``OF_RUN``, or some of its columns, or its rows of these topics alone.

        Raises ``FormatVersionError`` where another topicops wrote it, with other columns, and ``ArtifactError`` where
        it is missing or damaged.
        """
        wanted = list(SCHEMAS[name].names if columns is None else columns)
        with self._reading(name) as found:
            return found.read(columns=wanted) if topics is None else _rows_of(found, topics, wanted)

    @contextmanager
    def _reading(self, name: str) -> Iterator[pq.ParquetFile]:
        file = self.file(name)
        with self.errors(name, "cannot be read"), self.filesystem.open_input_file(file) as source:
            found = pq.ParquetFile(source)
            written = (found.schema_arrow.metadata or {}).get(FORMAT_KEY.encode(), b"").decode("utf-8", "replace")
            if written.partition(".")[0] != _MAJOR:
                raise FormatVersionError(
                    f"{self._shown(file)}: tables of format {written or 'none'}, and this topicops knows "
                    f"{FORMAT_VERSION}; run the step that writes it again"
                )
            yield found

    def file(self, name: str) -> str:
        """Return the path in its file system."""
        return f"{self.path}/{name}.parquet"

    def _shown(self, path: str) -> str:
        """Return the form that people know: a path of this disk, else the URI."""
        return path if self.is_local else f"{self.scheme}://{path}"

    @contextmanager
    def errors(self, name: str | None, problem: str) -> Iterator[None]:
        """Translate errors of the file system into one sentence about a table, or about the folder."""
        file = self._shown(self.path if name is None else self.file(name))
        try:
            yield
        except FileNotFoundError as error:
            raise ArtifactError(f"{file}: missing; the step that writes it has not run, or failed") from error
        except (pa.ArrowException, OSError) as error:
            advice = f"{'check the store, then ' if '://' in file else ''}run the step that writes it again"
            raise ArtifactError(f"{file}: {problem}: {first_line(error)}; {advice}") from error


def _rows_of(found: pq.ParquetFile, topics: Collection[str], columns: Sequence[str]) -> pa.Table:
    """Return the rows of these topics. Few topics need few row groups, since a large table is sorted by topic.

    ``pyarrow.dataset`` and ``pyarrow.compute`` could do it; to import them costs 60 MiB, pandas among them.
    """
    wanted, in_order = frozenset(topics), sorted(topics)
    parts = [found.schema_arrow.empty_table().select(columns)]
    for number in range(found.num_row_groups):
        if _may_hold(found.metadata.row_group(number).column(0).statistics, in_order):
            parts += _runs_of(wanted, found.read_row_group(number, columns=columns, use_threads=False))
    return pa.concat_tables(parts)


def _runs_of(wanted: Collection[str], rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of the wanted topics, as slices."""
    start = 0
    for is_wanted, run in groupby(topic in wanted for topic in rows["topic"].to_pylist()):
        length = sum(1 for _ in run)
        if is_wanted:
            yield rows.slice(start, length)
        start += length


def _may_hold(statistics: pq.Statistics | None, topics: Sequence[str]) -> bool:
    """Return whether one of the topics may be among rows with these statistics of ``topic``, the first column."""
    if statistics is None or not statistics.has_min_max:
        return True
    first = bisect_left(topics, statistics.min)
    return first < len(topics) and topics[first] <= statistics.max


class NewTable:
    """A table that is being written: record batches, each a row group. It exists once it is kept."""

    def __init__(self, folder: TableFolder, name: str, schema: pa.Schema) -> None:
        self._folder, self._name = folder, name
        self._temporary = f"{folder.path}/.topicops-{secrets.token_hex(8)}"
        self._digest = hashlib.sha256()
        if folder.of_run:
            schema = pa.schema([*schema, *OF_RUN])
        with folder.errors(name, _UNWRITTEN):
            folder.make()
            self._writer = pq.ParquetWriter(
                self._temporary,
                schema.with_metadata({FORMAT_KEY: FORMAT_VERSION}),
                filesystem=folder.filesystem,
                compression="zstd",
            )

    def write(self, batch: pa.RecordBatch) -> None:
        with self._folder.errors(self._name, _UNWRITTEN):
            self._digest.update(batch.serialize())
            for column in OF_RUN if self._folder.of_run else ():
                value = pa.scalar(self._folder.of_run[column.name], type=column.type)
                batch = batch.append_column(column, pa.repeat(value, batch.num_rows))
            self._writer.write_batch(batch)

    def keep(self) -> None:
        """End the table and give it its name, durably on a disk."""
        filesystem = self._folder.filesystem
        with self._folder.errors(self._name, _UNWRITTEN):
            self._writer.add_key_value_metadata({DIGEST_KEY: self._digest.hexdigest()})
            self._writer.close()
            if self._folder.is_local:
                with Path(self._temporary).open("rb") as written:
                    os.fsync(written.fileno())
            filesystem.move(self._temporary, self._folder.file(self._name))
            if self._folder.is_local:
                sync_folder(Path(self._folder.path))

    def discard(self) -> None:
        """Leave nothing behind; safe after ``keep``, which it does not undo."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        with suppress(OSError):
            self._folder.filesystem.delete_file(self._temporary)


@cache
def _opened(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system, and the path in it; opened once, because that may ask the store where a bucket is."""
    shown = without_secret(uri)
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ArtifactError(f"{shown}: no place for tables: {first_line(error).replace(uri, shown)}") from None
    if not path.strip("/"):
        raise ArtifactError(f"{shown}: no place for tables: name a bucket or a folder")
    return filesystem, path


def without_secret(uri: str) -> str:
    """Return the URI without what may be a key: what stands before an ``@``, and the query. A path stays as it is."""
    head, slashes, rest = uri.partition("://")
    return f"{head}{slashes}{rest.partition('?')[0].rpartition('@')[2]}"


def place_of_tables(uri: str | None, run_folder: Path) -> str:
    """Return the place of a run's tables below ``TOPICOPS_TABLES``, as the run records it: without secrets."""
    return "/".join((without_secret(uri).rstrip("/"), *_names(run_folder))) if uri else OWN_FOLDER


def tables_at(place: str, uri: str | None, run_folder: Path) -> TableFolder:
    """Return the tables of a run, by the place that it wrote down.

    Raises ``ArtifactError`` where ``TOPICOPS_TABLES`` names another place by now, or one that cannot be opened.
    """
    if place == OWN_FOLDER:
        return TableFolder.at(run_folder / OWN_FOLDER)
    if uri is None or place != place_of_tables(uri, run_folder):
        raise ArtifactError(
            f"{place}: the run's tables are there, and TOPICOPS_TABLES now names another place, or none; set it back, "
            "or start a new run"
        )
    return _below(uri, run_folder)


def remove_tables(uri: str, run_folder: Path) -> None:
    """Remove a run's tables below the URI. Raises ``ArtifactError`` when the store does not answer, or refuses."""
    _below(uri, run_folder).remove_all()


def _below(uri: str, run_folder: Path) -> TableFolder:
    return TableFolder.at(uri).below(*_names(run_folder))


def _names(run_folder: Path) -> tuple[str, ...]:
    """Group and run id, as their folders are named; and the environment, in a run of many."""
    is_of_many = run_folder.parts[-4:-3] == (RUNS,)
    return run_folder.parts[-3 if is_of_many else -2 :]
