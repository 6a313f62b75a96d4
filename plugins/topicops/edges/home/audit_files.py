"""The files of an environment's audit log: where they are, what is in them, and the searches that read only a part.

``<environment>.jsonl`` is the current one. A full file is renamed to ``<environment>.jsonl.<number of its last line>``;
the chain of hashes continues from file to file. ``<environment>.head`` holds number and hash of the last line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from topicops.edges.durable_files import as_artifact_error
from topicops.model.cluster.snapshot import PastDelete
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.plans.changes import Action
from topicops.model.runs.audit import NO_LINES, AuditEntry, AuditFile, AuditHead, AuditLine, hash_of, head_of
from topicops.model.runs.results import IN_PLACE

_CHUNK = 1 << 16
_NAME = re.compile(r"(?P<environment>.+)\.jsonl(?:\.\d+)?")
_IDENTITY: Mapping[str, re.Pattern[bytes]] = {
    "create": re.compile(rb'"topic_id_after":"([^"\\]+)"'),
    "delete": re.compile(rb'"topic_id_before":"([^"\\]+)"'),
}
"""Patterns of the place in a line where each action names its topic."""


def log_path(folder: Path, environment: str) -> Path:
    return folder / f"{environment}.jsonl"


def head_path(folder: Path, environment: str) -> Path:
    return folder / f"{environment}.head"


def full_path(folder: Path, environment: str, last_line: int) -> Path:
    """Return the name of a full file, by which the files sort in the order of their lines."""
    return folder / f"{environment}.jsonl.{last_line:012}"


def torn_path(folder: Path, environment: str, line: int, content: bytes) -> Path:
    """Return where the beginning of a line is kept that was never finished."""
    return folder / f"{environment}.torn-{line}-{hash_of(content)[:12]}"


def full_files(folder: Path, environment: str) -> list[Path]:
    """Return the full files, oldest first."""
    with as_artifact_error(folder, "cannot be read"):
        return sorted(path for path in folder.glob(f"{environment}.jsonl.*") if path.suffix[1:].isdecimal())


def audited_environments(folder: Path) -> tuple[str, ...]:
    """Return the names of the environments that have a log, sorted."""
    with as_artifact_error(folder, "cannot be read"):
        names = [found["environment"] for path in folder.glob("*") if (found := _NAME.fullmatch(path.name))]
    return tuple(sorted(set(names)))


def read_audit_log(
    folder: Path, environment: str, *, may_begin_with: Callable[[AuditLine], bool] = lambda _: False
) -> AuditFile:
    """Read a log, damaged or not; empty for an environment without one. Raises ``ArtifactError``.

    Args:
        may_begin_with: Whether files before the one that begins with this line are not needed; by default all are read.
    """
    while True:
        full = full_files(folder, environment)
        texts, torn = _texts([*full, log_path(folder, environment)], may_begin_with)
        if full == full_files(folder, environment):  # else a writer has begun a new file meanwhile
            break
    return AuditFile(
        environment=environment,
        path=str(log_path(folder, environment)),
        entries=tuple(AuditEntry(hash=hash_of(text), line=line_of(text)) for text in texts),
        torn=torn,
        head=read_head(head_path(folder, environment)),
    )


def past_deletes(folder: Path, environment: str, topics: Collection[str]) -> Mapping[str, PastDelete]:
    """Return the newest delete of each of these names that was done, by name. Raises ``ArtifactError``."""
    found: dict[str, PastDelete] = {}
    for path in [*full_files(folder, environment), log_path(folder, environment)] if topics else ():
        for text in content_of(path).split(b"\n"):
            line = line_of(text) if b'"action":"delete"' in text else None
            if line is not None and line.topic in topics and line.outcome in IN_PLACE:
                found[line.topic] = PastDelete(run=line.run, at=f"{line.at:%Y-%m-%dT%H:%M:%SZ}")
    return found


def logged_topics(folder: Path, environment: str, identities: Collection[str], action: Action) -> frozenset[str]:
    """Return those of the identities that belong to topics for which the log has this action, whatever its outcome.

    Reads the newest file first, line by line, until all are found; nothing if there are none to find.
    """
    wanted, found = set(identities), set[str]()
    for path in reversed([*full_files(folder, environment), log_path(folder, environment)]):
        if not wanted - found:
            break
        found |= {*_logged_in(path, wanted, action)}
    return frozenset(found)


def line_of(text: bytes) -> AuditLine | None:
    try:
        with json_errors():
            return msgspec.json.decode(text, type=known(AuditLine))
    except JsonError:
        return None


def read_head(path: Path) -> AuditHead | None:
    try:
        return head_of(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None


def last_line(handle: int) -> AuditHead:
    """Return number and hash of a file's last whole line, by its own number; ``NO_LINES`` if it cannot be decoded."""
    end = os.lseek(handle, 0, os.SEEK_END) - len(unfinished(handle))
    text = _after_last_end(handle, max(0, end - 1), end)[:-1]
    line = line_of(text) if text else None
    return NO_LINES if line is None else AuditHead(line.n, hash_of(text))


def last_line_number(folder: Path, environment: str) -> int:
    """Return the number of the last line of an environment's log; 0 without one. Raises ``ArtifactError``."""
    full = full_files(folder, environment)
    for path in (log_path(folder, environment), *reversed(full)):
        with as_artifact_error(path, "cannot be read"):
            try:
                count = last_line_of_file(path).count
            except FileNotFoundError:
                continue
        if count:
            return count
    return 0


def unfinished(handle: int) -> bytes:
    """Return the bytes after the last line end."""
    size = os.lseek(handle, 0, os.SEEK_END)
    return _after_last_end(handle, size, size)


def last_line_of_file(path: Path) -> AuditHead:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return last_line(handle)
    finally:
        os.close(handle)


def _texts(files: list[Path], may_begin_with: Callable[[AuditLine], bool]) -> tuple[list[bytes], bool]:
    """Return the lines without their ends, and whether bytes that are no line follow them."""
    texts: list[bytes] = []
    torn = False
    for path in reversed(files):
        *whole, rest = content_of(path).split(b"\n")
        is_line = bool(rest) and line_of(rest) is not None  # only its line end is missing
        texts[:0] = [*whole, rest] if is_line else whole
        torn |= bool(rest) and not is_line
        first = line_of(texts[0]) if texts else None
        if first is not None and may_begin_with(first):
            break
    return texts, torn


def content_of(path: Path) -> bytes:
    """Return the bytes of a file; empty if there is none. Raises ``ArtifactError``."""
    with as_artifact_error(path, "cannot be read"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""


def _logged_in(path: Path, wanted: Collection[str], action: Action) -> Iterator[str]:
    """Yield those of the identities that a line of this action names; only lines that name one are decoded."""
    with as_artifact_error(path, "cannot be read"):
        if not path.exists():
            return
        with path.open("rb") as file:
            for text in file:
                named = {found.decode() for found in _IDENTITY[action].findall(text)}
                line = line_of(text) if not named.isdisjoint(wanted) else None
                if line is not None and line.action == action:
                    identity = line.topic_id_after if action == "create" else line.topic_id_before
                    yield from {identity or ""} & {*wanted}


def _after_last_end(handle: int, before: int, size: int) -> bytes:
    """Return the bytes up to offset ``size`` after the last line end before offset ``before``; read backwards."""
    start = before
    while start > 0:
        start = max(0, start - _CHUNK)
        text = os.pread(handle, size - start, start)
        if (found := text.rfind(b"\n", 0, before - start)) >= 0:
            return text[found + 1 :]
    return os.pread(handle, size, 0)
