"""The files of an environment's audit log: where they are, what is in them, and the searches that read only a part.

``<environment>.jsonl`` is the current one. A full file is renamed to ``<environment>.jsonl.<number of its last line>``;
the chain of hashes continues from file to file. ``<environment>.head`` holds number and hash of the last line.

In an object store each append is an object ``<environment>.jsonl/<number of its first line>``, which is made only if
there is none: so no two writers have the same line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from topicops.edges.durable_files import as_artifact_error
from topicops.edges.places import AnyPlace, Place, StoredPath, below, contents
from topicops.model.cluster.snapshot import PastDelete
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.plans.changes import Action
from topicops.model.runs.audit import NO_LINES, AuditEntry, AuditFile, AuditHead, AuditLine, hash_of, head_of
from topicops.model.runs.results import IN_PLACE

_CHUNK = 1 << 16
_MOST_AT_ONCE = 2000
"""Lines before the head's line among which an object of a store begins; an append is rarely of more."""
_NAME = re.compile(r"(?P<environment>.+)\.jsonl(?:\.\d+)?")
_IDENTITY: Mapping[str, re.Pattern[bytes]] = {
    "create": re.compile(rb'"topic_id_after":"([^"\\]+)"'),
    "delete": re.compile(rb'"topic_id_before":"([^"\\]+)"'),
}
"""Patterns of the place in a line where each action names its topic."""


def log_path(folder: AnyPlace, environment: str) -> AnyPlace:
    return below(folder, f"{environment}.jsonl")


def head_path(folder: AnyPlace, environment: str) -> AnyPlace:
    return below(folder, f"{environment}.head")


def full_path(folder: AnyPlace, environment: str, last_line: int) -> AnyPlace:
    """Return the name of a full file, by which the files sort in the order of their lines."""
    return below(folder, f"{environment}.jsonl.{last_line:012}")


def torn_path(folder: AnyPlace, environment: str, line: int, content: bytes) -> AnyPlace:
    """Return where the beginning of a line is kept that was never finished."""
    return below(folder, f"{environment}.torn-{line}-{hash_of(content)[:12]}")


def full_files(folder: AnyPlace, environment: str) -> list[AnyPlace]:
    """Return the full files, oldest first; in a store all objects of the log."""
    log = log_path(folder, environment)
    with as_artifact_error(folder, "cannot be read"):
        if isinstance(log, StoredPath):
            return [below(log, part.name) for part in log.parts()]
        found = (below(folder, path.name) for path in folder.glob(f"{log.name}.*"))
        return sorted((path for path in found if path.suffix[1:].isdecimal()), key=str)


def audited_environments(folder: Place) -> tuple[str, ...]:
    """Return the names of the environments that have a log, sorted."""
    with as_artifact_error(folder, "cannot be read"):
        names = [found["environment"] for path in folder.glob("*") if (found := _NAME.fullmatch(path.name))]
    return tuple(sorted(set(names)))


def all_files(folder: AnyPlace, environment: str) -> list[AnyPlace]:
    """Return all files of a log, oldest first; the last one need not be there. In a store: its objects."""
    full = full_files(folder, environment)
    return [*full, log_path(folder, environment)] if isinstance(folder, Path) else full


def read_audit_log(
    folder: Place, environment: str, *, may_begin_with: Callable[[AuditLine], bool] = lambda _: False
) -> AuditFile:
    """Read a log, damaged or not; empty for an environment without one. Raises ``ArtifactError``.

    Args:
        may_begin_with: Whether files before the one that begins with this line are not needed; by default all are read.
    """
    while True:
        head = read_head(head_path(folder, environment))  # before the lines: a writer adds the line first
        files = all_files(folder, environment)
        texts, torn = _texts(files, may_begin_with)
        if not isinstance(folder, Path) or files == all_files(folder, environment):
            break  # else a writer has begun a new file meanwhile
    return AuditFile(
        environment=environment,
        path=str(log_path(folder, environment)),
        entries=tuple(AuditEntry(hash=hash_of(text), line=line_of(text)) for text in texts),
        torn=torn,
        head=head,
    )


def past_deletes(folder: Place, environment: str, topics: Collection[str]) -> Mapping[str, PastDelete]:
    """Return the newest delete of each of these names that was done, by name. Raises ``ArtifactError``."""
    found: dict[str, PastDelete] = {}
    for content in contents_of(all_files(folder, environment) if topics else ()):
        for text in content.split(b"\n"):
            line = line_of(text) if b'"action":"delete"' in text else None
            if line is not None and line.topic in topics and line.outcome in IN_PLACE:
                found[line.topic] = PastDelete(run=line.run, at=f"{line.at:%Y-%m-%dT%H:%M:%SZ}")
    return found


def logged_topics(folder: Place, environment: str, identities: Collection[str], action: Action) -> frozenset[str]:
    """Return those of the identities that belong to topics for which the log has this action, whatever its outcome.

    Reads the newest file first until all are found; nothing if there are none to find.
    """
    wanted, found = set(identities), set[str]()
    for content in contents_of(all_files(folder, environment)[::-1] if wanted else ()):
        found |= {*_logged_in(content, wanted, action)}
        if not wanted - found:
            break
    return frozenset(found)


def line_of(text: bytes) -> AuditLine | None:
    try:
        with json_errors():
            return msgspec.json.decode(text, type=known(AuditLine))
    except JsonError:
        return None


def read_head(path: Place) -> AuditHead | None:
    try:
        return head_of(path.read_bytes().decode("ascii"))
    except (OSError, UnicodeDecodeError):
        return None


def last_line(handle: int) -> AuditHead:
    """Return number and hash of a file's last whole line, by its own number; ``NO_LINES`` if it cannot be decoded."""
    end = os.lseek(handle, 0, os.SEEK_END) - len(unfinished(handle))
    text = _after_last_end(handle, max(0, end - 1), end)[:-1]
    line = line_of(text) if text else None
    return NO_LINES if line is None else AuditHead(line.n, hash_of(text))


def last_line_number(folder: Place, environment: str) -> int:
    """Return the number of the last line of an environment's log; 0 without one. Raises ``ArtifactError``."""
    if not isinstance(folder, Path):
        return last_line_in_store(folder, environment).count
    for path in reversed(all_files(folder, environment)):
        with as_artifact_error(path, "cannot be read"):
            try:
                count = last_line_of_file(path).count
            except FileNotFoundError:
                continue
        if count:
            return count
    return 0


def last_line_in_store(folder: StoredPath, environment: str) -> AuditHead:
    """Return the last line of a log in a store; ``NO_LINES`` without one, or if it cannot be decoded."""
    head = read_head(head_path(folder, environment)) or NO_LINES
    with as_artifact_error(folder, "cannot be read"):
        log = log_path(folder, environment)
        objects = [*log.parts(after=max(0, head.count - _MOST_AT_ONCE))] or [*log.parts()]
        text = objects[-1].read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2] if objects else b""
    line = line_of(text)
    return NO_LINES if line is None else AuditHead(line.n, hash_of(text))


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


def _texts(files: list[Place], may_begin_with: Callable[[AuditLine], bool]) -> tuple[list[bytes], bool]:
    """Return the lines without their ends, and whether bytes that are no line follow them."""
    texts: list[bytes] = []
    torn = False
    for content in contents_of(files[::-1]):
        *whole, rest = content.split(b"\n")
        is_line = bool(rest) and line_of(rest) is not None  # only its line end is missing
        texts[:0] = [*whole, rest] if is_line else whole
        torn |= bool(rest) and not is_line
        first = line_of(texts[0]) if texts else None
        if first is not None and may_begin_with(first):
            break
    return texts, torn


def contents_of(files: Sequence[Place]) -> Iterator[bytes]:
    """Yield the bytes of each file, one after the other; many objects of a store at once. Raises as ``content_of``."""
    if stored := [file for file in files if isinstance(file, StoredPath)]:
        with as_artifact_error(stored[0].parent, "cannot be read"):
            yield from contents(stored)
        return
    yield from map(content_of, files)


def content_of(path: Place) -> bytes:
    """Return the bytes of a file; empty if there is none. Raises ``ArtifactError``."""
    with as_artifact_error(path, "cannot be read"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""


def _logged_in(content: bytes, wanted: Collection[str], action: Action) -> Iterator[str]:
    """Yield those of the identities that a line of this action names; only lines that name one are decoded."""
    for text in content.split(b"\n"):
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
