"""The audit log of an environment: one line for each mutation, chained by hash, and a head that names the last line.

``<environment>.jsonl`` only grows. ``<environment>.head`` holds number and hash of the last line, so that a missing end
is found as well. A user who can write both files can forge both: compare with a head that is kept elsewhere.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from topicops.edges.durable_files import append_whole, make_folder, sync_folder, write_atomically
from topicops.edges.file_locks import locked
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import Action, before_and_after
from topicops.model.runs.audit import (
    NO_LINES,
    AuditEntry,
    AuditFile,
    AuditHead,
    AuditLine,
    chain_problems,
    hash_of,
    head_of,
)
from topicops.model.runs.results import Mutation

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOrigin:
    """The fields that all lines of one apply have in common."""

    environment: str
    run: str
    plan: str
    commit: str | None
    approver: str | None
    principals: Mapping[Action, str]


class FileAuditLog:
    """Implements ``model.ports.AuditLog``; a lock on the file lets one writer in at a time.

    Raises:
        ArtifactError: The log cannot be written, or was changed since the last write.
    """

    def __init__(
        self, folder: Path, origin: AuditOrigin, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path = log_path(folder, origin.environment)
        self._head_path = head_path(folder, origin.environment)
        self.origin = origin
        self._now = now

    def check(self) -> AuditHead:
        """Check, before anything is sent, that the log can be continued; gives its end."""
        with self._opened() as handle:
            return self._end(handle)

    def append(self, mutations: Sequence[Mutation]) -> None:
        with self._opened() as handle:
            end = self._end(handle)
            texts: list[bytes] = []
            for mutation in mutations:
                text = msgspec.json.encode(self._line(mutation, end))
                end = AuditHead(end.count + 1, hash_of(text))
                texts.append(text)
            append_whole(handle, b"".join(text + b"\n" for text in texts))
            write_atomically(self._head_path, f"{end}\n".encode())

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            is_new = not self._path.exists()
            make_folder(self._path.parent)
            if is_new and not self._head_path.exists():
                write_atomically(self._head_path, f"{NO_LINES}\n".encode())
            with locked(self._path, flags=os.O_RDWR | os.O_CREAT | os.O_APPEND) as handle:
                if is_new:
                    sync_folder(self._path.parent)
                yield handle
        except OSError as error:
            message = f"{self._path}: the audit log cannot be written: {error.strerror}; nothing more is sent"
            raise ArtifactError(f"{message}: check the disk, then run again") from error

    def _end(self, handle: int) -> AuditHead:
        """The end of the log; an incomplete line is removed first, since no head ever counted it."""
        _drop_torn(handle, self._path)
        head = _read_head(self._head_path)
        if head is not None and head == _tail(handle):
            return head
        file = read_audit_log(self._path.parent, self.origin.environment)
        if problems := [*chain_problems(file)]:
            raise ArtifactError(
                f"{self._path}: {problems[0]}; nothing is sent: check with `topicops audit verify`, then restore the "
                f"file, or move it away together with {self._head_path.name} to begin a new one"
            )
        return file.end

    def _line(self, mutation: Mutation, end: AuditHead) -> AuditLine:
        change, origin = mutation.change, self.origin
        before, after = before_and_after(change)
        return AuditLine(
            n=end.count + 1,
            previous=end.hash,
            at=self._now(),
            environment=origin.environment,
            run=origin.run,
            plan=origin.plan,
            commit=origin.commit,
            approver=origin.approver,
            principal=origin.principals[change.action],
            action=change.action,
            topic=change.topic,
            digest=mutation.digest,
            request={"before": before, "after": after},
            requests=mutation.requests,
            answer=mutation.answer,
            outcome=mutation.status,
            topic_id_before=mutation.id_before,
            topic_id_after=mutation.id_after,
        )


def log_path(folder: Path, environment: str) -> Path:
    return folder / f"{environment}.jsonl"


def head_path(folder: Path, environment: str) -> Path:
    return folder / f"{environment}.head"


def audited_environments(folder: Path) -> tuple[str, ...]:
    """Names of the environments that have a log, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.jsonl")))


def read_audit_log(folder: Path, environment: str) -> AuditFile:
    """Read a log, damaged or not; empty for an environment without one. Raises ``ArtifactError``."""
    path = log_path(folder, environment)
    try:
        *whole, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    entries = tuple(AuditEntry(hash=hash_of(text), line=_line_of(text)) for text in whole)
    head = _read_head(head_path(folder, environment))
    return AuditFile(environment=environment, path=str(path), entries=entries, torn=bool(rest), head=head)


def _line_of(text: bytes) -> AuditLine | None:
    try:
        return msgspec.json.decode(text, type=AuditLine)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _read_head(path: Path) -> AuditHead | None:
    try:
        return head_of(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None


def _tail(handle: int) -> AuditHead:
    """Number and hash of the last line, by its own number; ``NO_LINES`` if it cannot be decoded."""
    size = os.lseek(handle, 0, os.SEEK_END)
    text = _after_last_end(handle, max(0, size - 1))[:-1]
    line = _line_of(text) if text else None
    return NO_LINES if line is None else AuditHead(line.n, hash_of(text))


def _drop_torn(handle: int, path: Path) -> None:
    size = os.lseek(handle, 0, os.SEEK_END)
    if torn := len(_after_last_end(handle, size)):
        logger.warning("%s: removed %d bytes of an incomplete line", path, torn)
        os.ftruncate(handle, size - torn)


def _after_last_end(handle: int, before: int) -> bytes:
    """The bytes after the last line end before offset ``before``; read backwards."""
    size, start = os.lseek(handle, 0, os.SEEK_END), before
    while start > 0:
        start = max(0, start - _CHUNK)
        text = os.pread(handle, size - start, start)
        if (found := text.rfind(b"\n", 0, before - start)) >= 0:
            return text[found + 1 :]
    return os.pread(handle, size, 0)
