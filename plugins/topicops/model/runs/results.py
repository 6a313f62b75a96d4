"""Results of a run: outcomes of apply, checks of verify, results of quality rules, reviews, and the result for CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action
from topicops.model.plans.plan import GatedChange

QualitySuite = Literal["before", "after"]
"""``before`` checks the inputs of the plan, ``after`` the result of the changes."""


class OutcomeStatus(StrEnum):
    DONE = "done"
    ALREADY_SO = "already so"
    """The live topic was as the change would make it; nothing was sent."""
    MOVING = "moving"
    """The move of the replicas is accepted, or runs; later steps carry it on. It is no failure."""
    REFUSED = "refused"
    """The topic changed since the plan, or is in use; nothing was sent, or nothing more."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """A request was sent, and no later reading showed whether it took effect."""
    NOT_SENT = "not sent"
    """The run stopped before this change was sent."""


REPLACED = "the set was replaced by that of"
"""Beginning of the message of a change that was approved after a newer set of held changes had come."""
NO_FILE, PAUSED_NOW = "no file of environment", "its file pauses the topic"
NO_TOMBSTONE, OTHER_VALUES = "its tombstone was removed or postponed", "its file asks for something else than the plan"
UNASKED = (NO_FILE, PAUSED_NOW, NO_TOMBSTONE, OTHER_VALUES)
"""Beginning of the message when a change was refused only because the files do not contain it any more."""

IN_PLACE = (OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO)
"""The live topic is as the change would make it."""
NO_FAILURE = (*IN_PLACE, OutcomeStatus.MOVING)
"""The change is in place, or on its way there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What apply did with one change; every change that was to run has exactly one."""

    topic: str
    action: Action
    digest: str
    status: OutcomeStatus
    message: str = ""
    """Reason and next step; old and new value of each field when refused. Empty when done."""
    sent: bool = False
    """Whether a mutating request was sent for it."""

    @property
    def is_unasked(self) -> bool:
        """Refused only because the files do not ask for it any more."""
        return self.status is OutcomeStatus.REFUSED and not self.sent and self.message.startswith(UNASKED)

    @classmethod
    def of(cls, gated: GatedChange, status: OutcomeStatus, message: str = "", *, sent: bool = False) -> Outcome:
        change = gated.change
        return cls(
            topic=change.topic, action=change.action, digest=gated.digest, status=status, message=message, sent=sent
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """What was sent, after its outcome is known: a line of the audit log, which says more of each field."""

    action: Action
    topic: str
    digest: str
    request: Mapping[str, object]
    requests: int
    """Number of requests that were sent: more than one after a quota error or an election."""
    answer: str
    """The last one: ``accepted``, or ``NAME (code): message``."""
    status: OutcomeStatus
    id_before: str | None
    """Topic id, or ``czxid:<n>``; None means that there was no topic."""
    id_after: str | None


class Verdict(StrEnum):
    HEALTHY = "healthy"
    NOT_CHECKED = "not checked"
    """The brokers offer no request that would show it; nothing is known to be wrong."""
    MOVING = "moving"
    """Replicas move, as a plan of topicops asked; later steps carry the move on, and nothing is wrong."""
    CONVERGING = "converging"
    """Getting healthy, but not before the deadline."""
    PRE_EXISTING = "pre-existing"
    """Not healthy, and not healthy before the run either."""
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one rule of verify for one topic."""

    id: Code
    """``V01`` to ``V17``: the rule."""
    topic: str
    """Topic; empty for a rule about the whole cluster."""
    verdict: Verdict
    message: str = ""
    """Names partition and broker; empty when healthy."""
    code: Code | None = None
    brokers: tuple[int, ...] = ()
    """Brokers that are at fault, in order: down, silent, behind, or with a failed log directory."""

    @property
    def is_healthy(self) -> bool:
        return self.verdict is Verdict.HEALTHY

    @property
    def is_problem(self) -> bool:
        """Whether something is wrong; what moves or could not be checked is neither a problem nor healthy."""
        return self.verdict not in (Verdict.HEALTHY, Verdict.NOT_CHECKED, Verdict.MOVING)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRow:
    """One row that breaks a rule, by the columns that name it."""

    row: Mapping[str, object]
    """``topic``, and ``partition`` where it has one, come first; then what is wrong with it."""
    was_so_before: bool | None = None
    """Whether the same row broke the same rule in the snapshot before the changes; None means not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityResult:
    """What one data-quality rule found."""

    rule: str
    """Id of the rule: ``Q11``, or that of a rule of one's own."""
    title: str
    """Sentence that holds when the rule does."""
    severity: str
    """Severity: ``critical`` or ``warning``."""
    success: bool
    """Whether the rule holds; a rule without any row to check does."""
    rows_checked: int
    """Number of all rows, not only of those in ``examples``."""
    rows_failed: int
    """Number of rows that break the rule."""
    rows_failed_before: int | None = None
    """Number of these that broke the rule in the run's ``live.json`` too; None means that it is not known."""
    runbook: str = ""
    """Page that says what to do: one of the repository with its anchor, or what a rule of one's own names."""
    examples: tuple[FailingRow, ...] = ()
    """At most 20 rows that break the rule, new problems first: ``row`` (``topic``, ``partition`` and the wrong values,
    by name) and ``was_so_before`` (null: not known)."""

    @property
    def is_critical_failure(self) -> bool:
        return not self.success and self.severity == "critical"

    @property
    def is_pre_existing(self) -> bool:
        """Every failing row failed before the changes too."""
        return not self.success and self.rows_failed_before == self.rows_failed


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """One suite of rules in one run: ``quality-before.json`` or ``quality-after.json``."""

    suite: QualitySuite
    """Suite: ``before`` or ``after`` the changes."""
    environment: str
    """Name of the environment."""
    cluster_id: str
    """Id of the cluster."""
    run: str
    """``<dag id>/<run id>``, as Airflow has them."""
    checked_at: datetime
    """Time at which the rules were evaluated, UTC."""
    seconds: float
    """Time of Spark and Great Expectations, without reading the cluster."""
    results: tuple[QualityResult, ...]
    """Results in the order of the rules."""
    format_version: FormatVersion = "1.0"
    """Version of the format."""

    @property
    def failed(self) -> tuple[QualityResult, ...]:
        return tuple(result for result in self.results if not result.success)

    @property
    def critical(self) -> tuple[str, ...]:
        """Ids of the critical rules that failed."""
        return tuple(result.rule for result in self.results if result.is_critical_failure)


def quality_file(suite: QualitySuite) -> str:
    """Return the artifact's name in a run's folder."""
    return f"quality-{suite}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended, in one value: what ``report`` prints and the exit status follows."""

    outcomes: tuple[Outcome, ...]
    checks: tuple[Check, ...]
    held: int
    skipped: int
    blocked: int
    interrupted: bool = False

    def count(self, *statuses: OutcomeStatus) -> int:
        return sum(outcome.status in statuses for outcome in self.outcomes)

    @property
    def unhealthy(self) -> tuple[Check, ...]:
        """Checks that fail this run; problems from before the run do not."""
        return tuple(c for c in self.checks if c.is_problem and c.verdict is not Verdict.PRE_EXISTING)


if TYPE_CHECKING:
    from topicops.model.plans.plan import Approval

REVIEW_KEY = "TOPICOPS_REVIEW_KEY"
"""Name of the environment variable that holds the key of CI and Airflow, which signs reviews."""
MOST_REVIEWS = 50
"""Largest number of reviews of one run."""
MOST_DIGESTS = 500
"""Largest number in one review, in the conf of a run and in what a task returns; each has 64 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewApprovals:
    """What the reviews that a run was given approve."""

    approvals: tuple[Approval, ...] = ()
    objections: tuple[str, ...] = ()
    """Sentence for each other review, which says why it does not count."""


RESULT_KEY = "result"
"""Names the XCom of the task ``report``."""
MOST_CHANGES = 500
"""Most changes that the result lists."""
MOST_NOTES = 50
LONGEST_TEXT = 300
"""Characters of the headline, of a message and of a note."""
QUIET_FILE = "quiet.json"
"""File with a ``Quiet``; only quiet runs have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    topic: str
    action: Action
    digest: str
    status: str
    """Status of its outcome, such as ``done`` or ``refused``; ``held`` or ``skipped`` if it was not sent."""
    message: str = ""
    """Reason why it is not done; at most ``LONGEST_TEXT`` characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    format_version: Literal["1.0"] = "1.0"
    headline: str
    """``Applied and verified: 3 done.``"""
    success: bool
    """Whether all that was to be sent is in place and verified."""
    commit: str | None
    changes: tuple[ChangeResult, ...]
    """Gravest first; at most ``MOST_CHANGES``."""
    left_out: int = 0
    """Number of changes that are not listed."""
    notes: tuple[str, ...] = ()
    """Such sentences as why an approval does not count; at most ``MOST_NOTES`` of at most ``LONGEST_TEXT`` characters.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Why a run ended after its snapshot: nothing differs from a good one."""

    format_version: FormatVersion = "1.0"
    sentence: str
    run: str
    """Name of the good run."""
    full_check_at: datetime
    """Time from which a run makes every check again, UTC."""
    commit: str | None
    """Commit of the files of this run; None means that they have none."""
