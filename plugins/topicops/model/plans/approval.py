"""An approval: which changes one person approved, in which way and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.specs.environment import ApprovalWay


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One person's word on exactly these changes. Whether it counts, the environment's policy says."""

    digests: frozenset[str]
    way: ApprovalWay
    approver: str | None
    """Airflow's user name, the account that runs the command, or the reviewer's login; None: not known."""
    signature: str
    """The approver as the audit log names him: ``admin (id 1)``, ``carol (by parameter)``, or a review."""
    given_at: datetime
    authors: frozenset[str] = frozenset()
    """Who started the runs that found these changes or asked about them, or who wrote the pull request."""
    comment: str = ""
    """What the approver wrote beside it."""


def may_run(gated: GatedChange, approvals: Sequence[Approval]) -> bool:
    """Whether the gate may let the change run: only an approval can soften the gate's first word."""
    is_named = any(gated.digest in approval.digests for approval in approvals)
    return gated.gate is GateWord.RUN or (gated.approvable and is_named)
