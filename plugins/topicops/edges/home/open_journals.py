"""The journals that may hold open intents, one small file for each.

The run that writes the journal holds a lock on that file. So no other run takes over the requests of a run that is
alive, or only paused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.file_locks import locked, try_lock
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.home.journal import open_intents, read_journal
from topicops.model.errors import ArtifactError


class OpenJournal(msgspec.Struct, frozen=True, kw_only=True):
    journal: str
    """Its path."""
    origin: AuditOrigin
    """For the audit lines of that run."""


@contextmanager
def registered(folder: Path, journal: Path, origin: AuditOrigin) -> Iterator[None]:
    """Register a journal inside the block, and after it as well if intents are still open then.

    Raises:
        ArtifactError: The entry cannot be written; then nothing may be sent.
    """
    path = _marker(folder, str(journal))
    with ExitStack() as stack:
        try:
            write_atomically(path, msgspec.json.encode(OpenJournal(journal=str(journal), origin=origin)))
            stack.enter_context(locked(path, flags=os.O_RDONLY))
        except OSError as error:
            message = f"{path}: cannot be written: {error.strerror}; nothing was sent: check the disk, then run again"
            raise ArtifactError(message) from error
        try:
            yield
        finally:
            if not _may_have_open_intents(journal):
                path.unlink(missing_ok=True)


@contextmanager
def abandoned(folder: Path) -> Iterator[tuple[OpenJournal, ...]]:
    """Give the entries whose process has ended, locked inside the block. Raises ``ArtifactError``."""
    with ExitStack() as locks:
        yield tuple(entry for path in sorted(folder.glob("*.json")) if (entry := _abandoned_entry(path, locks)))


def unregister(folder: Path, entry: OpenJournal) -> None:
    """Remove the entry of a journal whose intents are all closed."""
    _marker(folder, entry.journal).unlink(missing_ok=True)


def _marker(folder: Path, journal: str) -> Path:
    return folder / f"{sha256(journal.encode()).hexdigest()[:32]}.json"


def _may_have_open_intents(journal: Path) -> bool:
    try:
        return journal.exists() and bool(open_intents(read_journal(journal)))
    except ArtifactError:
        return True


def _abandoned_entry(path: Path, locks: ExitStack) -> OpenJournal | None:
    """Read the entry and keep its lock in ``locks``; None while the journal's own process holds the lock."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None  # another run has just unregistered it
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    locks.callback(os.close, handle)
    try:
        return msgspec.json.decode(path.read_bytes(), type=OpenJournal) if try_lock(handle) else None
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: damaged: {error}; check what that run did, then remove the file") from error
