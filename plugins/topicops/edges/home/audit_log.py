"""The audit log of an environment: one line for each mutation, chained by hash, and a head that names the last line.

The log only grows; a missing end is found because the head counts the lines. A user who can write both files can forge
both: compare with a head that is kept elsewhere.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from topicops.edges.durable_files import append_whole, as_artifact_error, make_folder, sync_folder, write_atomically
from topicops.edges.file_locks import is_file_at, locked
from topicops.edges.home.audit_files import (
    full_files,
    full_path,
    head_path,
    last_line,
    last_line_in_store,
    last_line_of_file,
    line_of,
    log_path,
    read_audit_log,
    read_head,
    torn_path,
    unfinished,
)
from topicops.edges.object_store import StaleError
from topicops.edges.places import Place, StoredPath, part_name
from topicops.model.errors import ArtifactError, UsageError
from topicops.model.plans.changes import Action
from topicops.model.runs.audit import NO_LINES, AuditHead, AuditLine, chain_problems, hash_of, head_of
from topicops.model.runs.results import Mutation

logger = logging.getLogger(__name__)

_ADVICE = "; nothing more is sent: check the disk or the store, then run again"
_WRITERS = 20
"""Writers that may be faster than this one, one after the other."""
FULL_MIB = 16
"""Size of a file at which the log continues in a new one by default; some 25,000 lines."""


def full_size() -> int:
    """Return the bytes after which a new file begins: ``$TOPICOPS_AUDIT_FILE_MIB``. Raises ``UsageError``."""
    written = os.environ.get("TOPICOPS_AUDIT_FILE_MIB") or str(FULL_MIB)
    if not (written.isascii() and written.isdecimal() and 0 < len(written) < 7 and int(written)):
        raise UsageError(f"TOPICOPS_AUDIT_FILE_MIB={written}: write a whole number of MiB above 0")
    return int(written) << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOrigin:
    """The fields that all lines of one apply have in common."""

    environment: str
    run: str
    plan: str
    commit: str | None
    principals: Mapping[Action, str]
    approvers: Mapping[str, str] = field(default_factory=dict)
    """Approver of each approved change, by digest."""
    comments: Mapping[str, str] = field(default_factory=dict)
    """Comments of the approver, by digest of the change."""
    started_by: str = ""
    """User or cause that started the run; empty means not known."""


class _Chain:
    """The lines of an environment's audit log, wherever they are."""

    def __init__(self, folder: Place, origin: AuditOrigin, now: Callable[[], datetime]) -> None:
        self._home_folder, self.origin, self._now = folder, origin, now

    def _lines(self, mutations: Sequence[Mutation], end: AuditHead) -> tuple[bytes, AuditHead]:
        """Return the lines after the end, and their own end."""
        texts: list[bytes] = []
        for mutation in mutations:
            texts.append(msgspec.json.encode(self._line(mutation, end)))
            end = AuditHead(end.count + 1, hash_of(texts[-1]))
        return b"".join(text + b"\n" for text in texts), end

    def _checked_end(self, head: AuditHead | None) -> AuditHead:
        """Return the end after a check of the lines after the head's: a crash may have come between the two writes."""
        counted = 0 if head is None else head.count
        file = read_audit_log(self._home_folder, self.origin.environment, may_begin_with=lambda line: line.n <= counted)
        if problems := [*chain_problems(file, is_part=True)]:
            raise ArtifactError(
                f"{log_path(self._home_folder, self.origin.environment)}: {problems[0]}; nothing is sent: check with "
                "`topicops audit verify`, then restore the file, or move it away together with "
                f"{head_path(self._home_folder, self.origin.environment).name} to begin a new one"
            )
        return file.end

    def _line(self, mutation: Mutation, end: AuditHead) -> AuditLine:
        origin = self.origin
        return AuditLine(
            n=end.count + 1,
            previous=end.hash,
            at=self._now(),
            environment=origin.environment,
            run=origin.run,
            plan=origin.plan,
            commit=origin.commit,
            approver=origin.approvers.get(mutation.digest),
            principal=origin.principals[mutation.action],
            action=mutation.action,
            topic=mutation.topic,
            digest=mutation.digest,
            request=mutation.request,
            requests=mutation.requests,
            answer=mutation.answer,
            outcome=mutation.status,
            topic_id_before=mutation.id_before,
            topic_id_after=mutation.id_after,
            comment=origin.comments.get(mutation.digest) or msgspec.UNSET,
            started_by=origin.started_by or msgspec.UNSET,
        )


class FileAuditLog(_Chain):
    """Implements ``model.ports.AuditLog``; a lock on the file lets one writer in at a time.

    Args:
        full_at: Size in bytes after which the log goes on in a new file; by default ``full_size()``.

    Raises ``ArtifactError``: the log cannot be written, or was changed since the last write.
    """

    def __init__(
        self,
        folder: Path,
        origin: AuditOrigin,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        full_at: int | None = None,
    ) -> None:
        super().__init__(folder, origin, now)
        self._folder = folder
        self._path = log_path(folder, origin.environment)
        self._head_path = head_path(folder, origin.environment)
        self._full_at = full_size() if full_at is None else full_at

    def check(self) -> AuditHead:
        """Check, before anything is sent, that the log can be continued; gives its end."""
        with self._opened() as handle:
            return self._end(handle)

    def append(self, mutations: Sequence[Mutation]) -> None:
        self._begin_new_file_if_full()
        with self._opened() as handle:
            text, end = self._lines(mutations, self._end(handle))
            append_whole(handle, text)
            # An old head is what a crash between the two leaves: the lines after it are checked, and count.
            write_atomically(self._head_path, f"{end}\n".encode(), may_be_old=True)

    def _begin_new_file_if_full(self) -> None:
        """Rename a full file; the next line goes to a new one. The head stays as it is: it counts the same lines."""
        with self._opened() as handle:
            if os.fstat(handle).st_size < self._full_at:
                return
            full = full_path(self._folder, self.origin.environment, self._end(handle).count)
            if os.fstat(handle).st_size < self._full_at:
                return  # it held no more than the beginning of a line
            if full.exists():
                raise FileExistsError(errno.EEXIST, f"{full.name} exists already")
            self._path.rename(full)
            sync_folder(self._folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open and lock the current file; make it if there is none."""
        with as_artifact_error(self._path, "the audit log cannot be written", _ADVICE), ExitStack() as stack:
            yield self._locked(stack)

    def _locked(self, stack: ExitStack) -> int:
        is_new = not self._path.exists()
        make_folder(self._folder)
        if is_new and not self._head_path.exists() and not full_files(self._folder, self.origin.environment):
            write_atomically(self._head_path, f"{NO_LINES}\n".encode())
        while True:
            handle = stack.enter_context(locked(self._path, flags=os.O_RDWR | os.O_CREAT | os.O_APPEND))
            if is_file_at(self._path, handle):
                break
            stack.close()  # it was renamed while this process waited for its lock
        if is_new:
            sync_folder(self._folder)
        return handle

    def _end(self, handle: int) -> AuditHead:
        """Return the end of the log, after the repair of a line that a crash or an editor left without its end."""
        head = read_head(self._head_path)
        self._repair(handle, head)
        if head is not None and head == self._last_line(handle) and not unfinished(handle):
            return head
        return self._checked_end(head)

    def _last_line(self, handle: int) -> AuditHead:
        """Return the newest whole line; before a new file has one, it is the last one of the full file before."""
        full = full_files(self._folder, self.origin.environment)
        has_line = os.fstat(handle).st_size > len(unfinished(handle))
        return last_line_of_file(full[-1]) if full and not has_line else last_line(handle)

    def _repair(self, handle: int, head: AuditHead | None) -> None:
        """End a last line that lacks only its line end; take off, and keep beside, what no head ever counted."""
        rest = unfinished(handle)
        if not rest:
            return
        last, line = self._last_line(handle), line_of(rest)
        if line is not None and (line.n, line.previous) == (last.count + 1, last.hash):
            append_whole(handle, b"\n")
        elif line is None and head is not None and head.count <= last.count:
            kept = torn_path(self._folder, self.origin.environment, last.count + 1, rest)
            write_atomically(kept, rest)
            os.ftruncate(handle, os.lseek(handle, 0, os.SEEK_END) - len(rest))
            logger.warning("%s: moved %d bytes of an incomplete line to %s", self._path, len(rest), kept.name)


class StoredAuditLog(_Chain):
    """The same log in an object store: each append is a new object, and no object of the chain is written again.

    Its name is the number of its first line, and the store makes it only if there is none. So a second writer, as a
    process that has slept through the end of its lease, cannot write the same line: it reads the end anew.
    """

    def __init__(
        self, folder: StoredPath, origin: AuditOrigin, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__(folder, origin, now)
        self._store, self._end_here = folder, NO_LINES
        self._log, self._head = log_path(folder, origin.environment), head_path(folder, origin.environment)

    def check(self) -> AuditHead:
        with as_artifact_error(self._log, "the audit log cannot be written", _ADVICE):
            self._end_here = self._end_in_store()
        return self._end_here

    def append(self, mutations: Sequence[Mutation]) -> None:
        for _ in range(_WRITERS):
            text, end = self._lines(mutations, self._end_here if self._end_here.count else self.check())
            with as_artifact_error(self._log, "the audit log cannot be written", _ADVICE):
                try:
                    part = self._log / part_name(end.count - len(mutations) + 1)
                    part.bucket.create(part.key, text)
                except FileExistsError:
                    self.check()
                    continue
                self._keep_head(end)
            self._end_here = end
            return
        raise ArtifactError(f"{self._log}: {_WRITERS} other writers were faster{_ADVICE}")

    def _end_in_store(self) -> AuditHead:
        head, last = read_head(self._head), last_line_in_store(self._store, self.origin.environment)
        if head is None and last == NO_LINES and not any(True for _ in self._log.parts()):
            self._keep_head(NO_LINES)
            return NO_LINES
        return last if head == last else self._checked_end(head)

    def _keep_head(self, end: AuditHead) -> None:
        """Write the head, unless a faster writer has written a later one."""
        bucket, text = self._head.bucket, f"{end}\n".encode()
        for _ in range(_WRITERS):
            try:
                now = bucket.read(self._head.key)
            except FileNotFoundError:
                now = None
            found = head_of(now.content.decode("ascii", "replace")) if now else None
            if found is not None and found.count >= end.count:
                return
            with suppress(FileExistsError, StaleError):
                if now is None:
                    bucket.create(self._head.key, text)
                else:
                    bucket.replace(self._head.key, text, now.version)
                return


def audit_log(folder: Place, origin: AuditOrigin) -> FileAuditLog | StoredAuditLog:
    """Return the log of the environment in this folder of a home. Raises ``UsageError`` as ``full_size`` does."""
    return FileAuditLog(folder, origin) if isinstance(folder, Path) else StoredAuditLog(folder, origin)
