"""A run's folder: one artifact for each step. Each file is complete, or does not exist."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from topicops.edges.durable_files import as_artifact_error, write_atomically
from topicops.edges.places import AnyPlace, Place, StoredPath, below, remove_folder
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.runs.results import QUIET_FILE

T = TypeVar("T")
_log = logging.getLogger(__name__)

RUNS_KEPT = timedelta(days=90)
QUIET_RUNS_KEPT = timedelta(days=7)
"""Number of kept runs that found nothing new: there are hundreds a day."""
_PLAIN = re.compile(rb"[A-Za-z0-9._-]")
_LONGEST_NAME = 200
"""Most file systems end a name at 255 bytes."""


def runs_folder(home: Place, group: str, run_id: str) -> Place:
    """Return the folder of a run; ``group`` is ``cli`` or a DAG id. Different ids never have the same folder."""
    return home / "runs" / name_on_disk(group) / name_on_disk(run_id)


def prune_runs(home: Place, *, now: datetime, first: Callable[[Place], None] = lambda _: None) -> tuple[Place, ...]:
    """Remove the folders of runs in which nothing was written for ``RUNS_KEPT``; gives the removed folders.

    Those of quiet runs go after ``QUIET_RUNS_KEPT``.

    Folders that another process removes meanwhile, or that this account may not read, are left out.

    Args:
        first: Removes what the run keeps elsewhere. With its ``ArtifactError`` this folder and all others stay.
    """
    limit, quiet_limit = (now - RUNS_KEPT).timestamp(), (now - QUIET_RUNS_KEPT).timestamp()
    old = [
        run
        for run, written, is_quiet in (_runs_on_disk(home) if isinstance(home, Path) else _runs_in_store(home))
        if written < (quiet_limit if is_quiet else limit)
    ]
    for number, run in enumerate(old):
        try:
            first(run)
        except ArtifactError as error:
            _log.warning("%s; so %d old runs are not removed", error, len(old) - number)
            return tuple(old[:number])
        remove_folder(run)
    return tuple(old)


def _runs_on_disk(home: Path) -> Iterator[tuple[Place, float, bool]]:
    """Yield each run with the time of its last write, and whether it is a quiet one."""
    for group in folders_in(home / "runs"):
        for run in folders_in(group):
            if (written := _last_written(run)) is not None:
                yield run, written, (run / QUIET_FILE).exists()


def _runs_in_store(home: StoredPath) -> Iterator[tuple[Place, float, bool]]:
    """Yield as ``_runs_on_disk``, by the store's clock; none if the store does not answer."""
    found: dict[tuple[str, str], float] = {}
    quiet: set[tuple[str, str]] = set()
    try:
        for key, written in home.bucket.keys("runs"):
            if len(parts := key.split("/")) > 3:
                run = (parts[1], parts[2])
                found[run] = max(found.get(run, 0.0), written.timestamp())
                quiet |= {run} if parts[3] == QUIET_FILE else set()
    except OSError as error:
        _log.warning("%s: no old runs are removed: %s", home, error)
        return
    for run, written_at in sorted(found.items()):
        yield home / "runs" / run[0] / run[1], written_at, run in quiet


def folders_in(folder: AnyPlace) -> tuple[AnyPlace, ...]:
    """Return the folders in a folder, sorted, without links; none if it is gone or may not be read."""
    try:
        if isinstance(folder, StoredPath):
            return tuple(below(folder, found.name) for found in folder.glob("[!.]*"))
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
            return tuple(below(folder, name) for name in names)
    except OSError:
        return ()


def readable_json(value: object) -> str:
    """Return JSON that people can read too: keys sorted, indented."""
    return json.dumps(msgspec.to_builtins(value), indent=2, sort_keys=True)


@dataclass(frozen=True, slots=True)
class ArtifactStore:
    """The files of one run. Every write is atomic and durable; every problem is an ``ArtifactError`` with the path."""

    folder: Place

    def path(self, name: str) -> Place:
        return self.folder / name

    def has(self, name: str) -> bool:
        path = self.path(name)
        with as_artifact_error(path, "cannot be read"):
            return path.is_file()

    def remove(self, *names: str) -> None:
        """Remove artifacts; a missing one is no problem."""
        for path in map(self.path, names):
            with as_artifact_error(path, "cannot be removed", "; remove it by hand"):
                path.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> Place:
        return self._write(name, text.encode())

    def read_text(self, name: str) -> str:
        try:
            return self._read(name).decode()
        except UnicodeDecodeError as error:
            raise self._damaged(name, error) from error

    def write_json(self, name: str, value: object) -> Place:
        """Write as ``readable_json``."""
        return self._write(name, f"{readable_json(value)}\n".encode())

    def write_value(self, name: str, value: object) -> Place:
        """Write a value of the model: environment, snapshot, desired topics, delta, outcomes, checks, results."""
        return self._write(name, msgspec.json.encode(value, enc_hook=_as_written))

    def read_value(self, name: str, value_type: type[T]) -> T:
        """Read a value that equals the written one. ``value_type`` may be generic: ``tuple[Outcome, ...]``."""
        try:
            with json_errors():
                return msgspec.json.decode(self._read(name), type=known(value_type), dec_hook=_as_read)
        except JsonError as error:
            raise self._damaged(name, error) from error

    def read_if_there(self, name: str, value_type: type[T]) -> T | None:
        """Read as ``read_value``; None if there is no such file."""
        return self.read_value(name, value_type) if self.has(name) else None

    def _read(self, name: str) -> bytes:
        path = self.path(name)
        with as_artifact_error(path, "cannot be read"):
            try:
                return path.read_bytes()
            except FileNotFoundError as error:
                raise ArtifactError(f"{path}: missing; the step that writes it has not run, or failed") from error

    def _write(self, name: str, content: bytes) -> Place:
        path = self.path(name)
        with as_artifact_error(path, "cannot be written", "; check the disk or the store, then run again"):
            write_atomically(path, content)
        return path

    def _damaged(self, name: str, error: Exception) -> ArtifactError:
        return ArtifactError(f"{self.path(name)}: damaged: {error}; run the step that writes it again")


def _as_written(value: object) -> object:
    """Encode a text of a type of its own, which msgspec cannot."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no value of the model")


def _as_read(_: type, written: object) -> object:
    return written


def name_on_disk(name: str) -> str:
    """Return a name for one file or folder, of any text: different texts never have the same name."""
    if name in (".", ".."):
        return name.replace(".", "%2E")
    encoded = "".join(
        chr(byte) if _PLAIN.match(bytes([byte])) else f"%{byte:02X}" for byte in name.encode("utf-8", "surrogatepass")
    )
    if len(encoded) <= _LONGEST_NAME:
        return encoded or "%"
    return f"{encoded[:_LONGEST_NAME]}%{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _last_written(run: Path) -> float | None:
    """Return seconds since 1970; None if the folder is gone by now, or may not be read."""
    try:
        with os.scandir(run) as entries:
            return max([run.stat().st_mtime, *(entry.stat(follow_symlinks=False).st_mtime for entry in entries)])
    except OSError:
        return None
