"""Which journals may hold intents that nobody has closed: one small file for each, as long as that is so.

Its process holds a lock on it, so that the requests of a run that still lives, or is only paused, are left to it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.home.journal import open_intents, read_journal
from topicops.model.errors import ArtifactError


class OpenJournal(msgspec.Struct, frozen=True, kw_only=True):
    journal: str
    """Its path."""
    origin: AuditOrigin
    """What an audit line of that run says."""


@contextmanager
def registered(folder: Path, journal: Path, origin: AuditOrigin) -> Iterator[None]:
    """Let later runs know of a journal while it may hold open intents, and after that if it still does.

    Raises:
        ArtifactError: It cannot be written; nothing may be sent then.

    """
    path = _marker(folder, str(journal))
    try:
        write_atomically(path, msgspec.json.encode(OpenJournal(journal=str(journal), origin=origin)))
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}; nothing was sent: see to the disk, then run again"
        raise ArtifactError(message) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        if _is_closed(journal):
            path.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def abandoned(folder: Path) -> Iterator[tuple[OpenJournal, ...]]:
    """Give those whose process has ended; no other run takes them up meanwhile. Raises ``ArtifactError``."""
    handles: list[int] = []
    try:
        yield tuple(entry for path in sorted(folder.glob("*.json")) if (entry := _taken(path, handles)))
    finally:
        for handle in handles:
            os.close(handle)


def settled(folder: Path, entry: OpenJournal) -> None:
    """Forget a journal whose intents are all closed."""
    _marker(folder, entry.journal).unlink(missing_ok=True)


def _marker(folder: Path, journal: str) -> Path:
    return folder / f"{sha256(journal.encode()).hexdigest()[:32]}.json"


def _is_closed(journal: Path) -> bool:
    try:
        return not journal.exists() or not open_intents(read_journal(journal))
    except ArtifactError:
        return False


def _taken(path: Path, handles: list[int]) -> OpenJournal | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None  # settled a moment ago
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    handles.append(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return msgspec.json.decode(path.read_bytes(), type=OpenJournal)
    except (BlockingIOError, FileNotFoundError):
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: damaged: {error}; look at that run, then remove the file") from error
