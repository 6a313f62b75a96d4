"""Fakes for time, lease, journal and audit log that record their calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from topicops.model.errors import ArtifactError, LeaseLostError
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Begun
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus


class FakeClock:
    """Time that passes only in ``sleep``; ``at`` plans an action for a moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        """How long each sleep was."""
        self._planned: list[tuple[float, Callable[[], object]]] = []

    def __call__(self) -> float:
        return self.now

    def at(self, second: float, action: Callable[[], object]) -> None:
        """Do ``action`` when the clock reaches ``second``."""
        self._planned.append((second, action))

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        end = self.now + seconds
        for second, action in sorted((p for p in self._planned if p[0] <= end), key=lambda planned: planned[0]):
            self._planned.remove((second, action))
            self.now = max(self.now, second)
            action()
        self.now = end


@dataclass(slots=True)
class FakeLease:
    """A lease that is ours until ``lose`` is called, or for a number of confirmations."""

    confirmations_left: int | None = None
    """None: any number."""
    confirmations: int = 0
    newest_zxid: int | None = None
    """None: a lease that is not in ZooKeeper."""

    def confirm(self) -> None:
        self.confirmations += 1
        if self.confirmations_left is not None:
            self.confirmations_left -= 1
            if self.confirmations_left < 0:
                raise LeaseLostError("the lease of this cluster is no longer ours; run again")

    def zxid(self) -> int | None:
        return self.newest_zxid

    def server_time(self) -> None:
        """None: no server keeps it."""

    def lose(self) -> None:
        self.confirmations_left = 0


@dataclass(slots=True)
class FakeJournal:
    """Remembers its lines in order; ``disk_full`` makes every further one fail."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    """``("intent", digest)`` or ``("outcome", digest)``."""
    disk_full: bool = False

    def intend(self, changes: Sequence[GatedChange]) -> None:
        self._append("intent", [gated.digest for gated in changes])

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self._append("outcome", [outcome.digest for outcome in outcomes])

    def _append(self, kind: str, digests: Sequence[str]) -> None:
        if self.disk_full:
            raise ArtifactError("journal.jsonl: the journal cannot be written: No space left on device")
        self.lines += [(kind, digest) for digest in digests]


@dataclass(slots=True)
class FakeAuditLog:
    """Remembers its lines in order; ``disk_full`` makes every further one fail."""

    mutations: list[Mutation] = field(default_factory=list)
    disk_full: bool = False

    def append(self, mutations: Sequence[Mutation]) -> None:
        if self.disk_full:
            raise ArtifactError("local.jsonl: the audit log cannot be written: No space left on device")
        self.mutations += mutations


@dataclass(slots=True)
class FakeMover:
    """Takes reassignments, which then move, or whatever else ``answers`` says of their topics."""

    answers: Mapping[str, Begun] = field(default_factory=dict)
    error: Exception | None = None
    begun: list[tuple[str, ...]] = field(default_factory=list)
    """Topics of each call."""
    when_begun: Callable[[], object] = lambda: None

    def begin(self, changes: Sequence[GatedChange]) -> Mapping[str, Begun]:
        self.begun.append(tuple(gated.change.topic for gated in changes))
        self.when_begun()
        if self.error:
            raise self.error
        moving = Begun(OutcomeStatus.MOVING, "moving 1 of 1 partition", sent=True)
        return {gated.digest: self.answers.get(gated.change.topic, moving) for gated in changes}
