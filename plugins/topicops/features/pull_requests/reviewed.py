"""Which held changes the reviews of a pull request approve.

A review approves the changes that the comment showed when the review was given, of the commit that the reviewer saw, if
the reviewer may approve for their owner. The newest word of a reviewer counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain

from topicops.features.pull_requests.forge import Authors, Review, ReviewVerdict
from topicops.features.pull_requests.values import ReviewRules, ReviewState, Shown, ShownByDigest
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import REVIEW_KEY

Members = Callable[[str], frozenset[str] | None]
"""Logins of a team; None: the forge does not tell."""


@dataclass(frozen=True, kw_only=True)
class ReviewFacts:
    """What the forge says about the reviews of one pull request."""

    reviews: Sequence[Review]
    authors: Authors
    reviewers: Mapping[str, tuple[str, ...]]
    """Logins and teams by owner."""
    members: Members
    problem: str = ""
    """Why the forge does not say who gave and who wrote what; no review counts then."""

    def may_approve(self, owner: str, login: str) -> bool:
        named, login = self.reviewers.get(owner, ()), login.casefold()
        teams = (self.members(team) or () for team in named if "/" in team)
        return any(login == name.casefold() for name in chain(named, *teams))

    def unknown_team(self, owner: str) -> str:
        """A team of the owner whose members are not known: one of them may have said no. Empty: there is none."""
        teams = (team for team in self.reviewers.get(owner, ()) if "/" in team)
        return next((team for team in teams if self.members(team) is None), "")

    def is_author(self, login: str) -> bool:
        """Whether the account made a part of the pull request, or may have: nobody knows who made some commit."""
        known = {author.casefold() for author in self.authors.logins}
        return bool(self.authors.unknown_commit) or login.casefold() in known

    @cached_property
    def newest(self) -> Mapping[str, Review]:
        """Last review of each reviewer that says yes or no; a mere comment changes nothing."""
        said = [review for review in self.reviews if review.verdict is not ReviewVerdict.COMMENTED]
        return {review.reviewer: review for review in sorted(said, key=lambda review: review.submitted_at)}


def approved_digests(shown: ShownByDigest, facts: ReviewFacts) -> Mapping[str, tuple[datetime, tuple[str, ...]]]:
    """By reviewer, when the review was given and which of the shown changes it approves, sorted.

    Each change is approved by its first reviewer. Whether an author may, the policy says when the change is sent.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for digest, entry in shown.items():
        if reviewer := _approver(entry, facts):
            found[reviewer].append(digest)
    return {name: (facts.newest[name].submitted_at, tuple(sorted(digests))) for name, digests in sorted(found.items())}


def _approver(entry: Shown, facts: ReviewFacts) -> str | None:
    if facts.unknown_team(entry.owner):
        return None
    owners_words = [review for name, review in facts.newest.items() if facts.may_approve(entry.owner, name)]
    if any(review.verdict is ReviewVerdict.CHANGES_REQUESTED for review in owners_words):
        return None
    counting = [r for r in owners_words if r.verdict is ReviewVerdict.APPROVED and _is_about(r, entry)]
    # Somebody else than an author first, because above a risk an author's own word does not count.
    counting.sort(key=lambda review: (facts.is_author(review.reviewer), review.submitted_at))
    return counting[0].reviewer if counting else None


def _is_about(review: Review, entry: Shown) -> bool:
    """Whether the reviewer saw the change: after the comment showed it, and on the page of a commit that has it.

    The page may be older than the review: somebody can push a change while the reviewer reads.
    """
    return review.submitted_at > entry.since and (review.commit is None or review.commit in entry.heads)


def review_state(
    gated: GatedChange, owner: str, entry: Shown | None, facts: ReviewFacts, rules: ReviewRules, *, has_key: bool
) -> ReviewState:
    """How far one held change is approved.

    Args:
        entry: What the comment showed of it before this plan, where it is still the same.
    """
    reviewers = facts.reviewers.get(owner, ())
    if reason := _no_review_counts(owner, reviewers, rules, has_key):
        return ReviewState(reviewers=reviewers, why_not=reason, can_be_reviewed=False)
    approver = _approver(entry, facts) if entry else None
    if approver is None:
        return ReviewState(reviewers=reviewers, why_not=_why_not(owner, entry, facts))
    if facts.is_author(approver) and gated.change.risk.rank > rules.author_approves.rank:
        return ReviewState(reviewers=reviewers, why_not=_why_not_alone(approver, facts, rules))
    return ReviewState(reviewers=reviewers, approved_by=approver)


def _no_review_counts(owner: str, reviewers: Collection[str], rules: ReviewRules, has_key: bool) -> str:
    if not rules.counts:
        return f"no review counts here ({rules.place}): approve it in Airflow after the merge"
    if not has_key:
        return f"{REVIEW_KEY} is not set in this job: approve it in Airflow after the merge"
    if not owner:
        return "the base branch names no owner of this topic: approve it in Airflow after the merge"
    if not reviewers:
        return f"owners.yaml of the base branch names no reviewers of {owner}: approve it in Airflow after the merge"
    return ""


def _why_not_alone(approver: str, facts: ReviewFacts, rules: ReviewRules) -> str:
    highest = rules.author_approves
    if commit := facts.authors.unknown_commit:
        who = f"commit {commit[:12]} is of no account, so {approver} may have made it"
        return f"{who}, and above risk {highest} an author does not approve alone"
    return f"{approver} is an author, and above risk {highest} not alone"


def _too_early(review: Review, entry: Shown | None) -> str:
    if entry is None or review.submitted_at <= entry.since or review.commit is None:
        return "before this comment showed the change as it is now"
    if not review.commit:
        return "and the forge does not say of which commit the review is"
    return f"commit {review.commit[:12]}, which did not have the change as it is now"


def _why_not(owner: str, entry: Shown | None, facts: ReviewFacts) -> str:
    if team := facts.unknown_team(owner):
        return f"no review counts now: the members of {team} are not known, and one of them may have said no"
    for name, review in facts.newest.items():
        may = facts.may_approve(owner, name)
        if may and review.verdict is ReviewVerdict.CHANGES_REQUESTED:
            return f"{name} wants changes"
        if may and review.verdict is ReviewVerdict.APPROVED and (entry is None or not _is_about(review, entry)):
            return f"{name} approved {_too_early(review, entry)}; a new review is needed"
        if not may and review.verdict is ReviewVerdict.APPROVED:
            return f"{name} approved, and is no reviewer of {owner}"
    return ""
