"""The journal of one try to apply: an intent before each request and an outcome after it, each durable at once.

A journal that may hold open intents has a small file of its own, on which the run that writes it holds a lock. So no
other run takes over the requests of a run that is alive, or only paused.

An object store has no locks. There, whoever holds the cluster's lease takes over every entry: the others were written
under that lease by earlier holders, which have ended or lost it. Such a process, if it was only paused, sends nothing
after its next ``Lease.confirm``, and cannot write its journal after another one has. What no store can prevent: it is
paused between ``confirm`` and the request, for longer than its lease lasts. Then the request comes late, after its
intent was closed. With ``lease: none`` whoever keeps runs apart must also wait for their end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from topicops.edges.durable_files import as_artifact_error, line_appender, write_atomically
from topicops.edges.file_locks import locked, try_lock
from topicops.edges.home.audit_files import content_of
from topicops.edges.home.audit_log import AuditOrigin
from topicops.edges.places import Place, place_of_text
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import Outcome, OutcomeStatus

_TO_LOCK = os.O_RDWR
"""NFS locks a file exclusively only over a descriptor that may write. Source: flock(2), "NFS details"."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a journal."""

    at: datetime
    kind: Literal["intent", "outcome"]
    topic: str
    action: Action
    digest: str
    status: OutcomeStatus | None = None
    """Status of an outcome; None means that the line is no outcome."""
    message: str = ""
    sent: bool = False


class FileJournal:
    """Implements ``model.ports.Journal`` with JSON lines; each call returns when its lines are on the disk.

    Raises ``ArtifactError`` where they could not be made durable; then the request must not be sent.
    """

    def __init__(self, path: Place, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path = path
        self._now = now
        self._append_lines = line_appender(path)

    def intend(self, changes: Sequence[GatedChange]) -> None:
        at = self._now()
        self._append(
            JournalEntry(at=at, kind="intent", topic=g.change.topic, action=g.change.action, digest=g.digest)
            for g in changes
        )

    def record(self, outcomes: Sequence[Outcome]) -> None:
        at = self._now()
        self._append(JournalEntry(at=at, kind="outcome", **asdict(outcome)) for outcome in outcomes)

    def _append(self, entries: Iterable[JournalEntry]) -> None:
        advice = "; nothing more is sent: check the disk or the store, then run again"
        with as_artifact_error(self.path, "the journal cannot be written", advice):
            self._append_lines([msgspec.json.encode(entry) for entry in entries])


def read_journal(path: Place) -> tuple[JournalEntry, ...]:
    """Read a journal, oldest line first; without the half line that a crash may have left.

    Raises ``ArtifactError`` where the file is missing, or a complete line cannot be decoded.
    """
    with as_artifact_error(path, "cannot be read"):
        lines = path.read_bytes().split(b"\n")
    # Half a line may be at the end, or before the lines that were appended after a crash.
    return tuple(entry for number, line in enumerate(lines, 1) if (entry := _journal_entry(path, number, line)))


def intended_topics(folder: Place) -> frozenset[str]:
    """Return topics with an intent in any journal of a run, whatever the outcome. Raises as ``read_journal``."""
    return frozenset(entry.topic for entry in journal_entries(folder) if entry.kind == "intent")


def journal_entries(folder: Place) -> list[JournalEntry]:
    """Return the entries of all tries of a run, by time. Raises as ``read_journal``."""
    with as_artifact_error(folder, "cannot be read"):
        journals = sorted((path for path in folder.glob("journal-*.jsonl") if path.is_file()), key=str)
    return sorted((entry for path in journals for entry in read_journal(path)), key=lambda entry: entry.at)


def has_later_try(path: Place) -> bool:
    """Return whether a later try has a journal in the same folder; journals are named ``<name>-<try>.jsonl``.

    False if the folder cannot be read: then the outcomes cannot be written there either, which is reported.
    """
    name, _, own = path.stem.rpartition("-")
    try:
        others = [other.stem.rpartition("-")[2] for other in path.parent.glob(f"{name}-*.jsonl")]
    except OSError:
        return False
    return any(int(other) > int(own) for other in others if other.isdecimal())


def open_intents(entries: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Return the intents without outcome: a crashed run may have sent them, and no later run has checked them."""
    pending: dict[str, JournalEntry] = {}
    for entry in entries:
        if entry.kind == "intent":
            pending[entry.digest] = entry
        else:
            pending.pop(entry.digest, None)
    return tuple(pending.values())


def _journal_entry(path: Place, number: int, line: bytes) -> JournalEntry | None:
    if not line or not line.endswith(b"}"):
        return None
    try:
        with json_errors():
            return msgspec.json.decode(line, type=known(JournalEntry))
    except JsonError as error:
        raise ArtifactError(f"{path}:{number}: not a line of a journal: {error}") from error


class OpenJournal(msgspec.Struct, frozen=True, kw_only=True):
    journal: str
    """Path of the journal."""
    origin: AuditOrigin
    """Origin for the audit lines of that run."""
    audit_lines: int = 0
    """Number of lines in the audit log before the journal began; 0 in a file of an earlier version."""


def open_journals_folder(home: Place, environment: str) -> Place:
    return home / "unsettled" / environment


@contextmanager
def registered(folder: Place, journal: Place, origin: AuditOrigin, *, audit_lines: int) -> Iterator[None]:
    """Register a journal inside the block, and after it as well if intents are still open then.

    Raises ``ArtifactError`` where the entry cannot be written; then nothing may be sent.
    """
    path = _marker(folder, str(journal))
    entry = OpenJournal(journal=str(journal), origin=origin, audit_lines=audit_lines)
    with ExitStack() as stack:
        with as_artifact_error(path, "cannot be written", "; nothing was sent: check the disk, then run again"):
            write_atomically(path, msgspec.json.encode(entry))
            if isinstance(path, Path):
                stack.enter_context(locked(path, flags=_TO_LOCK))
        try:
            yield
        finally:
            if not _may_have_open_intents(journal):
                with suppress(OSError):  # the next run removes it; what was sent counts all the same
                    path.unlink(missing_ok=True)


@contextmanager
def abandoned(folder: Place) -> Iterator[tuple[OpenJournal, ...]]:
    """Give the entries whose process has ended, locked inside the block; in a store all of them.

    Raises ``ArtifactError``.
    """
    with ExitStack() as locks:
        with as_artifact_error(folder, "cannot be read"):
            paths: list[Place] = sorted(folder.glob("*.json"), key=str)
        yield tuple(entry for path in paths if (entry := _abandoned_entry(path, locks)))


def unsettled(folder: Place) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each run with an open journal, and the topics of its requests without an outcome. Takes no lock.

    Such a run sends now, or ended in the middle. Raises ``ArtifactError``.
    """
    with as_artifact_error(folder, "cannot be read"):
        paths: list[Place] = sorted(folder.glob("*.json"), key=str)
    for text in filter(None, map(content_of, paths)):  # else it was settled meanwhile
        try:
            with json_errors():
                entry = msgspec.json.decode(text, type=known(OpenJournal))
        except JsonError as error:
            raise ArtifactError(f"{folder}: an open journal is damaged: {error}") from error
        journal = place_of_text(folder, entry.journal)
        intents = open_intents(read_journal(journal)) if journal.exists() else ()
        yield entry.origin.run, frozenset(intent.topic for intent in intents)


def unregister(folder: Place, entry: OpenJournal) -> None:
    """Remove the entry of a journal whose intents are all closed. Raises ``ArtifactError``."""
    path = _marker(folder, entry.journal)
    with as_artifact_error(path, "cannot be removed", "; remove it by hand"):
        path.unlink(missing_ok=True)


def _marker(folder: Place, journal: str) -> Place:
    return folder / f"{sha256(journal.encode()).hexdigest()[:32]}.json"


def _may_have_open_intents(journal: Place) -> bool:
    try:
        return journal.exists() and bool(open_intents(read_journal(journal)))
    except (ArtifactError, OSError):
        return True


def _abandoned_entry(path: Place, locks: ExitStack) -> OpenJournal | None:
    """Read the entry and keep its lock in ``locks``; None while the journal's own process holds the lock."""
    with as_artifact_error(path, "cannot be locked and read"):
        try:
            if not isinstance(path, Path):
                with json_errors():
                    return msgspec.json.decode(path.read_bytes(), type=known(OpenJournal))
            handle = os.open(path, _TO_LOCK | os.O_CLOEXEC)
            locks.callback(os.close, handle)
            with json_errors():
                return msgspec.json.decode(path.read_bytes(), type=known(OpenJournal)) if try_lock(handle) else None
        except FileNotFoundError:
            return None  # another run has just unregistered it
        except JsonError as error:
            raise ArtifactError(f"{path}: damaged: {error}; check what that run did, then remove the file") from error
