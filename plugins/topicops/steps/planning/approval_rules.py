"""Whether an approval counts: by its way, its giver, its age and the risk of the change. Nothing here reads a clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from topicops.model.plans.plan import Approval, GatedChange
from topicops.model.printable import plural
from topicops.model.specs.environment import Environment, Risk


@dataclass(frozen=True, slots=True)
class Counted:
    """The part of the approvals that counts."""

    signatures: Mapping[str, str] = field(default_factory=dict)
    """Who approved each change, as the audit log names him; by the digest of the change."""
    objections: tuple[str, ...] = ()
    """Why the rest does not count: one sentence for each reason, with the place of the rule."""

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(self.signatures)


def counted(
    approvals: Sequence[Approval],
    changes: Sequence[GatedChange],
    environment: Environment,
    *,
    now: datetime,
    clocks: str = "",
) -> Counted:
    """Which of the changes the approvals let run, as far as the policy goes; the gate may still hold them.

    One approval that counts is enough; of several the first one is named. ``clocks`` says that two clocks differ.
    """
    signatures: dict[str, str] = {}
    rejected = list[tuple[Approval, Sequence[GatedChange], str]]()
    for approval in approvals:
        named = [gated for gated in changes if gated.digest in approval.digests]
        uncounted, reason = _uncounted(approval, named, environment, now=now, clocks=clocks)
        for digest in {gated.digest for gated in named} - {gated.digest for gated in uncounted}:
            signatures.setdefault(digest, approval.signature)
        rejected.append((approval, uncounted, reason))
    left = [(a, [gated for gated in found if gated.digest not in signatures], why) for a, found, why in rejected]
    return Counted(
        signatures, tuple(f"{_named(approval, found)} does not count: {why}" for approval, found, why in left if found)
    )


def _uncounted(
    approval: Approval, named: Sequence[GatedChange], environment: Environment, *, now: datetime, clocks: str
) -> tuple[Sequence[GatedChange], str]:
    """Those of the named changes that the approval does not let run, and why."""
    if objection := next(objections(approval, environment, now=now, clocks=clocks), ""):
        return named, objection
    own = [gated for gated in named if is_own_and_too_risky(approval, gated.change.risk, environment)]
    highest = environment.spec.author_approves
    place = environment.place_of("policy.authorApproves")
    return own, f"the author of a change approves alone up to risk {highest} ({place}); another person must approve it"


def objections(approval: Approval, environment: Environment, *, now: datetime, clocks: str = "") -> Iterator[str]:
    """Yield each reason why the approval counts for no change at all."""
    policy, accepted = environment.spec.policy, environment.spec.approvals
    if approval.way not in accepted:
        ways = " or ".join(accepted) or "no way"
        place = environment.place_of("policy.approvals")
        yield f"an approval by {approval.way} is not accepted, only by {ways} ({place})"
    # Who may review, owners.yaml of the base branch says, and CI has asked it before it signed.
    is_review = approval.way == "review"
    if policy.approvers and not is_review and approval.approver not in policy.approvers:
        place = environment.place_of("policy.approvers")
        yield f"{approval.approver or 'an unknown user'} is not one of the approvers ({place})"
    if now - approval.given_at > policy.approval_lasts:
        place = environment.place_of("policy.approvalLasts")
        hours = policy.approval_lasts.total_seconds() / 3600
        given = f"it was given at {approval.given_at:%Y-%m-%d %H:%M} UTC, and an approval lasts {hours:g} h ({place})"
        yield "; ".join(filter(None, [given, clocks]))


def is_own_and_too_risky(approval: Approval, risk: Risk, environment: Environment) -> bool:
    """Whether the approver is the author, or may be, and the risk is above what an author approves alone."""
    # An author whom a commit's text names may be spelled in other letters than the account.
    authors = {author.casefold() for author in approval.authors}
    is_author = approval.approver is None or approval.approver.casefold() in authors
    return is_author and risk.rank > environment.spec.author_approves.rank


def _named(approval: Approval, changes: Sequence[GatedChange]) -> str:
    return f"The approval of {plural(len(changes), 'change')} by {approval.signature}"
