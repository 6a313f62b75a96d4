"""Whether an approval counts, and what the form beside the buttons of a question asks and answers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase

from topicops.model.plans.changes import Change
from topicops.model.plans.plan import Approval, GatedChange
from topicops.model.printable import plural
from topicops.model.specs.environment import Environment, Risk


@dataclass(frozen=True, slots=True)
class Counted:
    """The part of the approvals that counts."""

    signatures: Mapping[str, str] = field(default_factory=dict)
    """Approver of each change, as the audit log names him; by the digest of the change."""
    objections: tuple[str, ...] = ()
    """Reasons why the rest does not count: a sentence each, with the place of the rule."""

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
    """Say which changes the approvals let run by the policy; the gate may still hold them.

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
    texts = (
        f"The approval of {plural(len(found), 'change')} by {approval.signature} does not count: {why}"
        for approval, found, why in left
        if found
    )
    return Counted(signatures, tuple(texts))


def _uncounted(
    approval: Approval, named: Sequence[GatedChange], environment: Environment, *, now: datetime, clocks: str
) -> tuple[Sequence[GatedChange], str]:
    """Return those of the named changes that the approval does not let run, and why."""
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
    """Return whether the approver is the author, or may be, and the risk is above what an author approves alone."""
    # An author whom a commit's text names may be spelled in other letters than the account.
    authors = {author.casefold() for author in approval.authors}
    is_author = approval.approver is None or approval.approver.casefold() in authors
    return is_author and risk.rank > environment.spec.author_approves.rank


AS_THE_BUTTON, REJECTED = "as the button says", "reject"
"""Values of the field of one change."""
REJECT_FIELD = "reject"
"""The one field of a long question: names or patterns of topics."""
COMMENT = "comment"
MOST_FIELDS = 10
"""A question of more changes has ``REJECT_FIELD`` instead of a field for each."""


def title_of(change: Change) -> str:
    """Return ``delete legacy.orders-v1``: the name of its field."""
    return f"{change.action} {change.topic}"


def fields_of(titles: Mapping[str, str], rejected_before: Collection[str]) -> dict[str, str]:
    """Return the fields of the form without the comment, and what each holds at first.

    Args:
        titles: By digest of the change.
        rejected_before: Digests of changes that are marked from the start.
    """
    if len(titles) < 2:
        return {}
    if len(titles) <= MOST_FIELDS:
        return {title: REJECTED if d in rejected_before else AS_THE_BUTTON for d, title in titles.items()}
    return {REJECT_FIELD: ", ".join(sorted({_topic(titles[d]) for d in titles.keys() & rejected_before}))}


def marked(titles: Mapping[str, str], fields: Mapping[str, str], given: Mapping[str, str]) -> frozenset[str] | str:
    """Return the digests that the form marks as rejected, or why not; a missing field keeps what it held."""
    if unknown := sorted(given.keys() - fields.keys()):
        return f"the answer has a field that the question has not: {unknown[0]!r}"
    chosen = {**fields, **given}
    if REJECT_FIELD in fields:
        return _matching(titles, chosen[REJECT_FIELD])
    return frozenset(d for d, title in titles.items() if chosen.get(title, AS_THE_BUTTON) != AS_THE_BUTTON)


def _matching(titles: Mapping[str, str], written: str) -> frozenset[str] | str:
    found: set[str] = set()
    for pattern in filter(None, re.split(r"[\s,;]+", written)):
        matches = {d for d, title in titles.items() if fnmatchcase(_topic(title), pattern)}
        if not matches:
            return f"the field {REJECT_FIELD} names {pattern!r}, which is no topic of the question"
        found |= matches
    return frozenset(found)


def _topic(title: str) -> str:
    return title.partition(" ")[2]
