"""The audit log as values: what its lines say, how they are chained, and whether the chain holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from topicops.model.plans.changes import Action
from topicops.model.runs.results import OutcomeStatus

FIRST = "0" * 64
"""What the first line of a log has in place of the hash of the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One mutation: who sent what, why, and what came of it."""

    n: int
    """Counted from 1."""
    previous: str
    """Hex SHA-256 of the line before, without its end; ``FIRST`` for line 1."""
    at: datetime
    environment: str
    run: str
    """``<dag id or cli>/<run id>`` of the run that sent it."""
    plan: str
    """The plan's fingerprint."""
    commit: str | None
    approver: str | None
    """Who approved the plan's held changes; None where this run had no approval, or its giver is not known."""
    principal: str
    """Whom the brokers saw."""
    action: Action
    topic: str
    digest: str
    """The change's name to an approval."""
    request: Mapping[str, object]
    """``before`` and ``after`` as in the plan file."""
    requests: int
    answer: str
    outcome: OutcomeStatus
    topic_id_before: str | None
    topic_id_after: str | None


@dataclass(frozen=True, slots=True)
class AuditHead:
    """How many lines a log has, and the hash of the last one. Shown as ``12:9f86d081…``."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


NO_LINES = AuditHead(0, FIRST)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A line as it stands in the file."""

    hash: str
    line: AuditLine | None
    """None: it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFile:
    """A whole log, and what its head file says of it."""

    environment: str
    path: str
    entries: tuple[AuditEntry, ...]
    torn: bool
    """Something stands behind the last whole line."""
    head: AuditHead | None
    """None: there is no head file, or it cannot be read."""

    @property
    def lines(self) -> tuple[AuditLine, ...]:
        return tuple(entry.line for entry in self.entries if entry.line is not None)

    @property
    def end(self) -> AuditHead:
        """What the head should say."""
        return AuditHead(len(self.entries), self.entries[-1].hash) if self.entries else NO_LINES


def hash_of(text: bytes) -> str:
    """The hash that the next line carries; ``text`` without the end of the line."""
    return hashlib.sha256(text).hexdigest()


def head_of(text: str) -> AuditHead | None:
    """Read ``12:9f86d081…``; None for anything else."""
    count, colon, found = text.strip().partition(":")
    is_hash = len(found) == len(FIRST) and set(found) <= set("0123456789abcdef")
    return AuditHead(int(count), found) if colon and count.isdecimal() and is_hash else None


def chain_problems(file: AuditFile, noted: AuditHead | None = None) -> Iterator[str]:
    """Where a log is not as it was written, a sentence each; none for a whole one.

    Args:
        noted: A head that somebody kept elsewhere: its line must still stand where it stood.
    """
    yield from _link_problems(file.entries)
    if file.torn:
        yield f"line {len(file.entries) + 1} is torn: a crash, or a hand; the next apply takes it off"
    if file.head is None and file.entries:
        yield "its head file is missing or unreadable: lines may be missing at the end"
    for name, head in (("its head file", file.head), ("the head that was noted", noted)):
        if head is not None:
            yield from _head_problems(file.entries, head, name)


def _link_problems(entries: Sequence[AuditEntry]) -> Iterator[str]:
    previous = FIRST
    for n, entry in enumerate(entries, 1):
        if entry.line is None:
            yield f"line {n} cannot be read: it was changed"
        elif entry.line.previous != previous:
            yield f"line {n} does not follow the line before it: that one was changed, or lines are missing or moved"
        elif entry.line.n != n:
            yield f"line {n} says that it is line {entry.line.n}: lines are missing, or moved"
        previous = entry.hash


def _head_problems(entries: Sequence[AuditEntry], head: AuditHead, name: str) -> Iterator[str]:
    """A log may be longer than its head: a crash between the two, or lines after one that was noted."""
    if head.count > len(entries):
        yield f"it ends with line {len(entries)}, and {name} says {head.count}: the end is missing"
    elif head.count and entries[head.count - 1].hash != head.hash:
        yield f"line {head.count} is not the one that {name} says: it was changed, or the log was written anew"
