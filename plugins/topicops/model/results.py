"""What came of a plan: outcomes of apply, checks of verify, results of quality rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from topicops.model.changes import Action, Change


class OutcomeStatus(StrEnum):
    DONE = "done"
    ALREADY_SO = "already so"
    """The live topic was as the change would make it; nothing was sent."""
    REFUSED = "refused"
    """Its topic moved since the plan, or is active; nothing was sent."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """A request was sent and no reading could tell whether it took effect."""
    NOT_SENT = "not sent"
    """Something before it stopped the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What apply did with one change; every change that was to run has exactly one."""

    topic: str
    action: Action
    digest: str
    status: OutcomeStatus
    message: str = ""
    """Why, and what next; old and new value field by field when refused. Empty when done."""
    sent: bool = False
    """Whether a mutating request left for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change for which at least one request left, once it is decided: a line of the audit log."""

    change: Change
    digest: str
    requests: int
    """How many left: more than one where a quota or an election was in the way."""
    answer: str
    """The last one: ``accepted``, or ``NAME (code): message``."""
    status: OutcomeStatus
    id_before: str | None
    """Topic id, or ``czxid:<n>``; None: there was no topic."""
    id_after: str | None


class Verdict(StrEnum):
    HEALTHY = "healthy"
    CONVERGING = "converging"
    """On its way, and the deadline passed first."""
    PRE_EXISTING = "pre-existing"
    """Not healthy, and it was so before the run."""
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What verify saw of one topic under one rule."""

    id: str
    """``V01`` to ``V17``: the rule."""
    topic: str
    """Empty for a rule about the whole cluster."""
    verdict: Verdict
    message: str = ""
    """Names partition and broker; empty when healthy."""
    code: str | None = None

    @property
    def is_healthy(self) -> bool:
        return self.verdict is Verdict.HEALTHY


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """What one data-quality rule found."""

    rule: str
    title: str
    severity: str
    """``critical`` or ``warning``."""
    success: bool
    rows_checked: int
    rows_failed: int
    examples: tuple[Mapping[str, object], ...] = ()
    """At most 20 rows that break the rule: topic, and partition where it has one."""

    @property
    def is_critical_failure(self) -> bool:
        return not self.success and self.severity == "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended, in one value: what ``report`` prints and the exit status follows."""

    outcomes: tuple[Outcome, ...]
    checks: tuple[Check, ...]
    held: int
    dropped: int
    blocked: int
    interrupted: bool = False

    def count(self, *statuses: OutcomeStatus) -> int:
        return sum(outcome.status in statuses for outcome in self.outcomes)

    @property
    def unhealthy(self) -> tuple[Check, ...]:
        """Checks that speak against this run; old trouble does not."""
        return tuple(c for c in self.checks if c.verdict not in (Verdict.HEALTHY, Verdict.PRE_EXISTING))
