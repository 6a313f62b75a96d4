"""The journals that may hold open intents, one small file for each.

The run that writes the journal holds a lock on that file. So no other run takes over the requests of a run that is
alive, or only paused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from topicops.edges.durable_files import as_artifact_error, write_atomically
from topicops.edges.file_locks import locked, try_lock
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.home.journal import open_intents, read_journal
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known

_TO_LOCK = os.O_RDWR
"""NFS locks a file exclusively only over a descriptor that may write. Source: flock(2), "NFS details"."""


class OpenJournal(msgspec.Struct, frozen=True, kw_only=True):
    journal: str
    """Its path."""
    origin: AuditOrigin
    """For the audit lines of that run."""
    audit_lines: int = 0
    """How many the audit log had before the journal began; 0 in a file of an earlier version."""


def open_journals_folder(home: Path, environment: str) -> Path:
    return home / "unsettled" / environment


@contextmanager
def registered(folder: Path, journal: Path, origin: AuditOrigin, *, audit_lines: int) -> Iterator[None]:
    """Register a journal inside the block, and after it as well if intents are still open then.

    Raises:
        ArtifactError: The entry cannot be written; then nothing may be sent.
    """
    path = _marker(folder, str(journal))
    entry = OpenJournal(journal=str(journal), origin=origin, audit_lines=audit_lines)
    with ExitStack() as stack:
        with as_artifact_error(path, "cannot be written", "; nothing was sent: check the disk, then run again"):
            write_atomically(path, msgspec.json.encode(entry))
            stack.enter_context(locked(path, flags=_TO_LOCK))
        try:
            yield
        finally:
            if not _may_have_open_intents(journal):
                with suppress(OSError):  # the next run removes it; what was sent counts all the same
                    path.unlink(missing_ok=True)


@contextmanager
def abandoned(folder: Path) -> Iterator[tuple[OpenJournal, ...]]:
    """Give the entries whose process has ended, locked inside the block. Raises ``ArtifactError``."""
    with ExitStack() as locks:
        with as_artifact_error(folder, "cannot be read"):
            paths = sorted(folder.glob("*.json"))
        yield tuple(entry for path in paths if (entry := _abandoned_entry(path, locks)))


def unsettled(folder: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each run with an open journal, and the topics of its requests without an outcome. Takes no lock.

    Such a run sends now, or ended in the middle. Raises ``ArtifactError``.
    """
    with as_artifact_error(folder, "cannot be read"):
        texts = [text for path in sorted(folder.glob("*.json")) if (text := _content(path))]
    for text in texts:
        try:
            with json_errors():
                entry = msgspec.json.decode(text, type=known(OpenJournal))
        except JsonError as error:
            raise ArtifactError(f"{folder}: an open journal is damaged: {error}") from error
        journal = Path(entry.journal)
        intents = open_intents(read_journal(journal)) if journal.exists() else ()
        yield entry.origin.run, frozenset(intent.topic for intent in intents)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # it was settled meanwhile
        return b""


def unregister(folder: Path, entry: OpenJournal) -> None:
    """Remove the entry of a journal whose intents are all closed. Raises ``ArtifactError``."""
    path = _marker(folder, entry.journal)
    with as_artifact_error(path, "cannot be removed", "; remove it by hand"):
        path.unlink(missing_ok=True)


def _marker(folder: Path, journal: str) -> Path:
    return folder / f"{sha256(journal.encode()).hexdigest()[:32]}.json"


def _may_have_open_intents(journal: Path) -> bool:
    try:
        return journal.exists() and bool(open_intents(read_journal(journal)))
    except (ArtifactError, OSError):
        return True


def _abandoned_entry(path: Path, locks: ExitStack) -> OpenJournal | None:
    """Read the entry and keep its lock in ``locks``; None while the journal's own process holds the lock."""
    with as_artifact_error(path, "cannot be locked and read"):
        try:
            handle = os.open(path, _TO_LOCK | os.O_CLOEXEC)
            locks.callback(os.close, handle)
            with json_errors():
                return msgspec.json.decode(path.read_bytes(), type=known(OpenJournal)) if try_lock(handle) else None
        except FileNotFoundError:
            return None  # another run has just unregistered it
        except JsonError as error:
            raise ArtifactError(f"{path}: damaged: {error}; check what that run did, then remove the file") from error
