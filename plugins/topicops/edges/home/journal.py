"""The journal of one try to apply: an intent before each request, an outcome after, each on the disk at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from topicops.edges.durable_files import DurableLines
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import Outcome, OutcomeStatus


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a journal."""

    at: datetime
    kind: Literal["intent", "outcome"]
    topic: str
    action: Action
    digest: str
    status: OutcomeStatus | None = None
    """Only of an outcome."""
    message: str = ""
    sent: bool = False


class FileJournal:
    """Fills ``model.ports.Journal`` with JSON lines; what one call writes is on the disk before it returns.

    Raises:
        ArtifactError: The lines could not be made durable. Whoever meant to send a request must not.

    """

    def __init__(self, path: Path, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.path = path
        self._now = now
        self._lines = DurableLines(path)

    def intend(self, changes: Sequence[GatedChange]) -> None:
        at = self._now()
        self._append(
            [
                JournalEntry(at=at, kind="intent", topic=g.change.topic, action=g.change.action, digest=g.digest)
                for g in changes
            ]
        )

    def record(self, outcomes: Sequence[Outcome]) -> None:
        at = self._now()
        self._append(
            [
                JournalEntry(
                    at=at,
                    kind="outcome",
                    topic=outcome.topic,
                    action=outcome.action,
                    digest=outcome.digest,
                    status=outcome.status,
                    message=outcome.message,
                    sent=outcome.sent,
                )
                for outcome in outcomes
            ]
        )

    def _append(self, entries: Sequence[JournalEntry]) -> None:
        try:
            self._lines.append([msgspec.json.encode(entry) for entry in entries])
        except OSError as error:
            raise ArtifactError(
                f"{self.path}: the journal cannot be written: {error.strerror}; nothing more is sent: "
                "see to the disk, then run again"
            ) from error


def read_journal(path: Path) -> tuple[JournalEntry, ...]:
    """Read a journal, oldest line first. A line that a crash tore off is left out: it never took effect.

    Raises:
        ArtifactError: The file is missing, or a line that is not torn cannot be understood.

    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    # Only the end of the file, or the line before a resumed journal's fresh start, can be torn.
    return tuple(entry for number, line in enumerate(lines, 1) if (entry := _journal_entry(path, number, line)))


def intended_topics(folder: Path) -> frozenset[str]:
    """Topics that any journal of a run says are to be changed, whatever came of it. Raises as ``read_journal``."""
    journals = sorted(path for path in folder.glob("journal-*.jsonl") if path.is_file())
    return frozenset(entry.topic for path in journals for entry in read_journal(path) if entry.kind == "intent")


def has_later_try(path: Path) -> bool:
    """Whether a later try has a journal beside this one, ``<name>-<try>.jsonl``."""
    name, _, own = path.stem.rpartition("-")
    others = (other.stem.rpartition("-")[2] for other in path.parent.glob(f"{name}-*.jsonl"))
    return any(int(other) > int(own) for other in others if other.isdecimal())


def open_intents(entries: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Intents without an outcome: what a crashed run may have sent and nobody has looked at since."""
    pending: dict[str, JournalEntry] = {}
    for entry in entries:
        if entry.kind == "intent":
            pending[entry.digest] = entry
        else:
            pending.pop(entry.digest, None)
    return tuple(pending.values())


def _journal_entry(path: Path, number: int, line: bytes) -> JournalEntry | None:
    if not line or not line.endswith(b"}"):
        return None
    try:
        return msgspec.json.decode(line, type=JournalEntry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}:{number}: not a line of a journal: {error}") from error
