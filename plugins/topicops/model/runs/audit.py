"""The audit log as values: its lines, the hashes that chain them, and whether the chain is intact."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec import UNSET, UnsetType

from topicops.model.plans.changes import Action
from topicops.model.runs.results import OutcomeStatus

FIRST = "0" * 64
"""The first line of a log has this instead of the previous line's hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One mutation: who sent which change, why, and the outcome."""

    n: int
    """Number of the line, counted from 1."""
    previous: str
    """Hex SHA-256 of the line before, without its end; 64 zeros in line 1."""
    at: datetime
    """Time at which the line was written, UTC."""
    environment: str
    """Name of the environment."""
    run: str
    """``<dag id or cli>/<run id>`` of the run that sent it."""
    plan: str
    """Fingerprint of the plan; empty for a step of moves that no apply makes."""
    commit: str | None
    """Commit of the plan's files; None means that it is not known."""
    approver: str | None
    """User who approved this change; None means that no approval was needed, or that it is not known."""
    principal: str
    """Identity that the brokers saw: ``User:<sasl user, or name in the token>``, ``by certificate <file>``, …."""
    action: Action
    """Kind of the change."""
    topic: str
    """Name of the topic; empty for the throttle rates of a broker, which hold back all moves there."""
    digest: str
    """Digest by which an approval names the change."""
    request: Mapping[str, object]
    """``before`` and ``after``, as in the plan; of a delete also the ``reason`` in the tombstone; of a config also the
    brokers' ``defaults`` that the plan showed for a side without an override. Of a move also ``what`` was sent
    (``start``, ``cancel``, ``entries``, ``rate``, ``elect``; ``end`` for its end) and the run ``accepted_by``."""
    requests: int
    """Number of times that it was sent; 0 for the end of a move."""
    answer: str
    """Last answer of the brokers."""
    outcome: OutcomeStatus
    """Outcome of the change."""
    topic_id_before: str | None
    """Id of the topic before; None means no topic, ``not read`` that the cluster could not be read any more."""
    topic_id_after: str | None
    """Id of the topic after, in the same form."""
    comment: str | UnsetType = UNSET
    """Comment of the approver; only if there is one."""
    started_by: str | UnsetType = UNSET
    """Airflow user who started the run, or ``schedule``; not there for a command of the shell."""

    @property
    def who(self) -> str:
        """Who is to be asked about it: who approved it, or else who started the run, or else Kafka's principal."""
        return self.approver or (self.started_by if isinstance(self.started_by, str) else f"{self.principal} (Kafka)")

    def is_of_run(self, run: str) -> bool:
        """Return whether it is of this run: ``<group>/<run id>``, or the run id alone."""
        return run in (self.run, self.run.partition("/")[2])


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
    """A line of the file, with its hash."""

    hash: str
    line: AuditLine | None
    """Line of the log; None means that it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFile:
    """A log, over all its files, and the content of its head file."""

    environment: str
    path: str
    """Path of the newest file."""
    entries: tuple[AuditEntry, ...]
    torn: bool
    """There are bytes after the last line that are no line."""
    head: AuditHead | None
    """Head file; None means that there is none, or that it cannot be read."""

    @property
    def lines(self) -> tuple[AuditLine, ...]:
        return tuple(entry.line for entry in self.entries if entry.line is not None)

    @property
    def end(self) -> AuditHead:
        """What the head file should hold."""
        return AuditHead(self.missing + len(self.entries), self.entries[-1].hash) if self.entries else NO_LINES

    @property
    def missing(self) -> int:
        """How many lines come before the first one here, by its own number."""
        first = self.entries[0].line if self.entries else None
        return max(0, first.n - 1) if first is not None else 0


def in_order(files: Iterable[AuditFile]) -> list[AuditLine]:
    """Give the lines of several logs, oldest first."""
    return sorted((line for file in files for line in file.lines), key=lambda line: (line.at, line.environment, line.n))


def are_whole(files: Iterable[AuditFile]) -> bool:
    return not any(problem for file in files for problem in chain_problems(file))


def hash_of(text: bytes) -> str:
    """Return the hash that the next line repeats; ``text`` is without its line feed."""
    return hashlib.sha256(text).hexdigest()


def head_of(text: str) -> AuditHead | None:
    """Read ``12:9f86d081…``; None for anything else."""
    count, colon, found = text.strip().partition(":")
    is_hash = len(found) == len(FIRST) and set(found) <= set("0123456789abcdef")
    return AuditHead(int(count), found) if colon and count.isdecimal() and len(count) < 20 and is_hash else None


def chain_problems(file: AuditFile, noted: AuditHead | None = None, *, is_part: bool = False) -> Iterator[str]:
    """Yield one sentence for each place where the log was changed; none if it is intact.

    Args:
        noted: A head that was kept elsewhere; the log must still hold that line at that number.
        is_part: Only the newest files were read.
    """
    if file.missing and not is_part:
        yield f"lines 1 to {file.missing} are missing: put the older files back beside {file.path}"
    yield from _link_problems(file.entries, file.missing)
    if file.torn:
        yield _torn_line(file)
    if file.head is None and file.entries:
        yield "its head file is missing or unreadable: lines may be missing at the end"
    for name, head in (("its head file", file.head), ("the head that was noted", noted)):
        if head is not None:
            yield from _head_problems(file, head, name)


def _torn_line(file: AuditFile) -> str:
    n = file.missing + len(file.entries) + 1
    if file.head is not None and file.head.count < n:
        return f"line {n} is torn: a crash, or a hand; the next apply moves it to a file beside"
    return f"line {n} is torn, and its head file counts it: a hand cut it off, and no apply will touch it"


def _link_problems(entries: Sequence[AuditEntry], missing: int) -> Iterator[str]:
    first = entries[0].line if entries else None
    previous = first.previous if missing and first is not None else FIRST
    for n, entry in enumerate(entries, missing + 1):
        if entry.line is None:
            yield f"line {n} cannot be read: it was changed"
        elif entry.line.previous != previous:
            yield f"line {n} does not follow the line before it: that one was changed, or lines are missing or moved"
        elif entry.line.n != n:
            yield f"line {n} says that it is line {entry.line.n}: lines are missing, or moved"
        previous = entry.hash


def _head_problems(file: AuditFile, head: AuditHead, name: str) -> Iterator[str]:
    """Yield problems. A log may be longer than its head: after a crash between both writes, or after ``noted``."""
    last = file.missing + len(file.entries)
    if head.count > last:
        yield f"it ends with line {last}, and {name} says {head.count}: the end is missing"
    elif head.count <= file.missing and file.missing:
        yield f"line {head.count}, the one that {name} says, is in a file that is not here"
    elif head.count and file.entries[head.count - file.missing - 1].hash != head.hash:
        yield f"line {head.count} is not the one that {name} says: it was changed, or the log was written anew"
