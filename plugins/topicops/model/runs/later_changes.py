"""What was sent to a cluster after somebody read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from topicops.model.runs.results import OutcomeStatus

AuditMarks = Mapping[str, int]
"""By environment: how many lines its audit log had when a reading began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterRun:
    """A run that has sent changes after a reading began, of this environment or another one of the same cluster."""

    run: str
    """``<DAG>/<run id>``."""
    environment: str
    last_at: datetime | None = None
    """Of its last answer, by the clock of the host that sent; None: no answer is known."""
    outcomes: Mapping[str, OutcomeStatus] = field(default_factory=dict)
    """By topic, the newest."""
    is_open: bool = False
    """It sends still, or it ended in the middle: of some requests nobody knows the outcome."""


def outcomes_of(later: Sequence[LaterRun]) -> Mapping[str, OutcomeStatus]:
    """The newest outcome of each topic that a later run may have changed."""
    in_order = sorted(later, key=lambda run: (run.is_open, run.last_at.timestamp() if run.last_at else 0.0))
    return {topic: status for run in in_order for topic, status in run.outcomes.items()}
