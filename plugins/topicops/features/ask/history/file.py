"""``$TOPICOPS_HOME/history/<environment>.jsonl``: it only grows, by whole lines, under its own lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from topicops.edges.durable_files import append_whole, as_artifact_error, make_folder, sync_folder
from topicops.edges.file_locks import locked
from topicops.edges.home.audit_files import unfinished
from topicops.edges.object_store import StaleError
from topicops.edges.places import Place, StoredPath, part_name
from topicops.features.ask.history.lines import HistoryLine, Moves
from topicops.model.errors import UsageError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.printable import first_line

FULL_BYTES = 1 << 20
T = TypeVar("T", bound=Moves)


def history_path(home: Place, environment: str) -> Place:
    return home / "history" / f"{environment}.jsonl"


def append(home: Place, environment: str, line_after: Callable[[Sequence[Moves]], HistoryLine]) -> None:
    """Add the line that follows the lines before; it is on the disk when this returns.

    The beginning of a line that a crash has left is removed first.

    Raises ``ArtifactError`` where the disk refuses; then the run is not in the history.
    """
    path = history_path(home, environment)
    with as_artifact_error(path, "cannot be written"):
        if not isinstance(path, Path):
            _append_in_store(path, line_after)
            return
        is_new = not path.exists()
        make_folder(path.parent)
        with locked(path, flags=os.O_RDWR | os.O_CREAT | os.O_APPEND) as handle:
            _remove_torn_line(handle)
            before, _ = _lines_of(path, Moves)
            append_whole(handle, msgspec.json.encode(line_after(before)) + b"\n")
        if is_new:
            sync_folder(path.parent)


def _append_in_store(path: StoredPath, line_after: Callable[[Sequence[Moves]], HistoryLine]) -> None:
    """Add the line to the newest object, or to a new one after ``FULL_BYTES``: a history is read whole, and often."""
    while True:
        parts = [*path.parts()]
        newest = path.bucket.read(parts[-1].key) if parts else None  # before all: a later line makes it stale
        before, _ = _lines_of(path, Moves) if parts else ([], [])
        text = msgspec.json.encode(line_after(before)) + b"\n"
        with suppress(FileExistsError, StaleError):  # another run was faster: its line comes first
            if newest is None or len(newest.content) > FULL_BYTES:
                number = int(parts[-1].name) + 1 if parts else 1
                path.bucket.create((path / part_name(number)).key, text)
            else:
                path.bucket.replace(parts[-1].key, newest.content + text, newest.version)
            return


def read_history(home: Place, environment: str) -> tuple[Sequence[HistoryLine], Sequence[str]]:
    """Read the lines, oldest first, and a sentence about each line that is left out because it cannot be read.

    Raises ``ArtifactError`` where the file cannot be read, and ``UsageError`` where the environment has no history.
    """
    path = history_path(home, environment)
    with as_artifact_error(path, "cannot be read"):
        try:
            return _lines_of(path, HistoryLine)
        except FileNotFoundError:
            there = recorded_environments(home)
    others = f"there is one of {', '.join(there)}" if there else "no run of this TOPICOPS_HOME has left one"
    raise UsageError(f"{path.parent}: no history of {environment}; {others}")


def recorded_environments(home: Place) -> Sequence[str]:
    """Return the names of the environments that have a history."""
    return sorted(found.stem for found in (home / "history").glob("*.jsonl"))


def _lines_of(path: Place, kind: type[T]) -> tuple[list[T], list[str]]:
    """Read the lines, and a sentence about each that cannot be read."""
    content, decoder = path.read_bytes(), msgspec.json.Decoder(known(kind))
    with suppress(JsonError), json_errors():
        return decoder.decode_lines(content), []
    lines, problems = list[T](), list[str]()
    for number, text in enumerate(content.split(b"\n"), 1):
        try:
            with json_errors():
                lines += [decoder.decode(text)] if text else []
        except JsonError as error:
            problems.append(f"{path}:{number}: left out: {first_line(error)}")
    return lines, problems


def _remove_torn_line(handle: int) -> None:
    """Remove the bytes after the last line end; a line that lacks only its end gets it."""
    rest = unfinished(handle)
    try:
        if rest:
            with json_errors():
                msgspec.json.decode(rest, type=known(Moves))
            append_whole(handle, b"\n")
    except JsonError:
        os.ftruncate(handle, os.lseek(handle, 0, os.SEEK_END) - len(rest))
