"""The journal of one try to apply: an intent before each request and an outcome after it, each durable at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from topicops.edges.durable_files import DurableLines, as_artifact_error
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known
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
    """Implements ``model.ports.Journal`` with JSON lines; each call returns when its lines are on the disk.

    Raises:
        ArtifactError: The lines could not be made durable; then the request must not be sent.
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
        advice = "; nothing more is sent: check the disk, then run again"
        with as_artifact_error(self.path, "the journal cannot be written", advice):
            self._lines.append([msgspec.json.encode(entry) for entry in entries])


def read_journal(path: Path) -> tuple[JournalEntry, ...]:
    """Read a journal, oldest line first; without the half line that a crash may have left.

    Raises:
        ArtifactError: The file is missing, or a complete line cannot be decoded.
    """
    with as_artifact_error(path, "cannot be read"):
        lines = path.read_bytes().split(b"\n")
    # Half a line may be at the end, or before the lines that were appended after a crash.
    return tuple(entry for number, line in enumerate(lines, 1) if (entry := _journal_entry(path, number, line)))


def intended_topics(folder: Path) -> frozenset[str]:
    """Topics with an intent in any journal of a run, whatever the outcome. Raises as ``read_journal``."""
    return frozenset(entry.topic for entry in journal_entries(folder) if entry.kind == "intent")


def journal_entries(folder: Path) -> list[JournalEntry]:
    """Of all tries of a run, in the order of their times. Raises as ``read_journal``."""
    with as_artifact_error(folder, "cannot be read"):
        journals = sorted(path for path in folder.glob("journal-*.jsonl") if path.is_file())
    return sorted((entry for path in journals for entry in read_journal(path)), key=lambda entry: entry.at)


def has_later_try(path: Path) -> bool:
    """Whether a later try has a journal in the same folder; journals are named ``<name>-<try>.jsonl``.

    False if the folder cannot be read: then the outcomes cannot be written there either, which is reported.
    """
    name, _, own = path.stem.rpartition("-")
    try:
        others = [other.stem.rpartition("-")[2] for other in path.parent.glob(f"{name}-*.jsonl")]
    except OSError:
        return False
    return any(int(other) > int(own) for other in others if other.isdecimal())


def open_intents(entries: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """Intents without an outcome: a crashed run may have sent them, and no later run has checked them."""
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
        with json_errors():
            return msgspec.json.decode(line, type=known(JournalEntry))
    except JsonError as error:
        raise ArtifactError(f"{path}:{number}: not a line of a journal: {error}") from error
