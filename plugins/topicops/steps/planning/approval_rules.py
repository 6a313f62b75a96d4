"""Whether an approval counts: by its way, its giver, its age and the risk of the change. Nothing here reads a clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from topicops.model.plans.approval import Approval
from topicops.model.plans.plan import GatedChange
from topicops.model.printable import plural
from topicops.model.specs.environment import Environment, Risk


@dataclass(frozen=True, slots=True)
class Counted:
    """The part of an approval that counts."""

    digests: frozenset[str] = frozenset()
    objections: tuple[str, ...] = ()
    """Why the rest does not count: one sentence for each reason, with the place of the rule."""


def counted(
    approval: Approval | None, changes: Sequence[GatedChange], environment: Environment, *, now: datetime
) -> Counted:
    """Which of the changes the approval lets run, as far as the policy goes; the gate may still hold them."""
    if approval is None:
        return Counted()
    named = [gated for gated in changes if gated.digest in approval.digests]
    if objection := next(objections(approval, environment, now=now), ""):
        return Counted(objections=(f"{_named(approval, named)} does not count: {objection}",) if named else ())
    own = [gated for gated in named if is_own_and_too_risky(approval, gated.change.risk, environment)]
    counting = frozenset(gated.digest for gated in named) - {gated.digest for gated in own}
    if not own:
        return Counted(counting)
    highest = environment.spec.policy.author_approves
    place = environment.place_of("policy.authorApproves")
    reason = f"the author of a change approves alone up to risk {highest} ({place}); another person must approve it"
    return Counted(counting, (f"{_named(approval, own)} does not count: {reason}",))


def objections(approval: Approval, environment: Environment, *, now: datetime) -> Iterator[str]:
    """Yield each reason why the approval counts for no change at all."""
    policy = environment.spec.policy
    if approval.way not in policy.approvals:
        ways = " or ".join(policy.approvals) or "no way"
        place = environment.place_of("policy.approvals")
        yield f"an approval by {approval.way} is not accepted, only by {ways} ({place})"
    if policy.approvers and approval.approver not in policy.approvers:
        place = environment.place_of("policy.approvers")
        yield f"{approval.approver or 'an unknown user'} is not one of the approvers ({place})"
    if now - approval.given_at > policy.approval_lasts:
        place = environment.place_of("policy.approvalLasts")
        hours = policy.approval_lasts.total_seconds() / 3600
        yield f"it was given at {approval.given_at:%Y-%m-%d %H:%M} UTC, and an approval lasts {hours:g} h ({place})"


def is_own_and_too_risky(approval: Approval, risk: Risk, environment: Environment) -> bool:
    """Whether the approver is the author, or may be, and the risk is above what an author approves alone."""
    is_author = approval.approver is None or approval.approver in approval.authors
    return is_author and risk.rank > environment.spec.policy.author_approves.rank


def _named(approval: Approval, changes: Sequence[GatedChange]) -> str:
    return f"The approval of {plural(len(changes), 'change')} by {approval.signature}"
