"""Which held changes the reviews of a pull request approve, and the record of what its comment showed.

A review approves the changes that the comment showed when the review was given, of the commit that the reviewer saw, if
the reviewer may approve for their owner. The newest word of a reviewer counts.
"""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain

import msgspec

from topicops.features.pull_requests.edges.forge import Authors, Review, ReviewVerdict
from topicops.features.pull_requests.signed_reviews import is_signed, signature_of
from topicops.features.pull_requests.values import About, ReviewRules, ReviewState, Shown, ShownByDigest, ShownChanges
from topicops.model.json_types import sha256_of
from topicops.model.plans.plan import GatedChange
from topicops.model.runs.results import REVIEW_KEY

PURPOSE = "shown"
_LINE = re.compile(r"<!-- topicops:record ([A-Za-z0-9+/=]+) ([0-9a-f]{64}) -->")
_DIGEST_BYTES = 32
MOST_HEADS = 10
"""Commits that a record names of one change, each with forty characters of the comment."""
SIGNED_WITHIN = timedelta(seconds=30)
"""A text of ours has its record within this time after the forge took it."""


@dataclass(frozen=True, kw_only=True)
class ReviewFacts:
    reviews: Sequence[Review] = ()
    authors: Authors = field(default_factory=Authors)
    reviewers: Mapping[str, tuple[str, ...]]
    members: Callable[[str], frozenset[str] | None]
    """Function that gives the logins of a team. None means that the forge does not say."""
    problem: str = ""
    """Reason why the forge does not say who gave and who wrote what; no review counts then."""

    def may_approve(self, owner: str, login: str) -> bool:
        named, login = self.reviewers.get(owner, ()), login.casefold()
        teams = (self.members(team) or () for team in named if "/" in team)
        return any(login == name.casefold() for name in chain(named, *teams))

    def unknown_team(self, owner: str) -> str:
        """Name a team of the owner whose members are not known: one of them may have said no. Empty: there is none."""
        teams = (team for team in self.reviewers.get(owner, ()) if "/" in team)
        return next((team for team in teams if self.members(team) is None), "")

    def is_author(self, login: str) -> bool:
        """Say whether the account made a part of the pull request, or may have: some commit is of no account."""
        known = {author.casefold() for author in self.authors.logins}
        return bool(self.authors.unknown_commit) or login.casefold() in known

    @cached_property
    def newest(self) -> Mapping[str, Review]:
        """Last review of each reviewer that says yes or no; a mere comment changes nothing."""
        said = [review for review in self.reviews if review.verdict is not ReviewVerdict.COMMENTED]
        return {review.reviewer: review for review in sorted(said, key=lambda review: review.submitted_at)}


def approved_digests(shown: ShownByDigest, facts: ReviewFacts) -> Mapping[str, tuple[datetime, tuple[str, ...]]]:
    """Give, by reviewer, when the review was given and which of the shown changes it approves, sorted.

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
    """Say whether the reviewer saw the change: after the comment showed it, and on the page of a commit that has it.

    The page may be older than the review: somebody can push a change while the reviewer reads.
    """
    return review.submitted_at > entry.since and (review.commit is None or review.commit in entry.heads)


def review_state(
    gated: GatedChange, owner: str, entry: Shown | None, facts: ReviewFacts, rules: ReviewRules, *, has_key: bool
) -> ReviewState:
    """Say how far one held change is approved; ``entry`` is what the comment showed of it, if it is still the same."""
    state = ReviewState(reviewers=facts.reviewers.get(owner, ()))
    if reason := _no_review_counts(owner, state.reviewers, rules, has_key):
        return replace(state, why_not=f"{reason}: approve it in Airflow after the merge", can_be_reviewed=False)
    approver = _approver(entry, facts) if entry else None
    if approver is None:
        return replace(state, why_not=_why_not(owner, entry, facts))
    highest = rules.author_approves
    if not facts.is_author(approver) or gated.change.risk.rank <= highest.rank:
        return replace(state, approved_by=approver)
    if not (commit := facts.authors.unknown_commit):
        return replace(state, why_not=f"{approver} is an author, and above risk {highest} not alone")
    who = f"commit {commit[:12]} is of no account, so {approver} may have made it"
    return replace(state, why_not=f"{who}, and above risk {highest} an author does not approve alone")


def _no_review_counts(owner: str, reviewers: Collection[str], rules: ReviewRules, has_key: bool) -> str:
    if not rules.counts:
        return f"no review counts here ({rules.place})"
    if not has_key:
        return f"{REVIEW_KEY} is not set in this job"
    if not owner:
        return "the base branch names no owner of this topic"
    return "" if reviewers else f"owners.yaml of the base branch names no reviewers of {owner}"


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


def _too_early(review: Review, entry: Shown | None) -> str:
    if entry is None or review.submitted_at <= entry.since or review.commit is None:
        return "before this comment showed the change as it is now"
    if not review.commit:
        return "and the forge does not say of which commit the review is"
    return f"commit {review.commit[:12]}, which did not have the change as it is now"


# ---- the hidden line of a comment that says which changes it shows ----


def record_line(shown: ShownByDigest, key: bytes, about: About, *, text: str, posted_at: datetime) -> str:
    """Write one line of HTML that browsers do not show; its length depends on ``shown`` and ``about`` alone."""
    groups: defaultdict[Shown, bytes] = defaultdict(bytes)
    for digest, entry in shown.items():
        groups[entry] += bytes.fromhex(digest)
    record = ShownChanges(
        about=about, text=_digest(text), posted_at=posted_at.replace(microsecond=0), groups=tuple(groups.items())
    )
    encoded = base64.b64encode(msgspec.json.encode(record)).decode()
    return f"<!-- topicops:record {encoded} {signature_of(record, key, purpose=PURPOSE)} -->"


def read_record(text: str, key: bytes, about: About, *, updated_at: datetime) -> ShownByDigest | None:
    """Read what the comment showed. None means that it ends with no record of this very comment and key."""
    match = _LINE.fullmatch(_lines(text)[-1])
    if match is None:
        return None
    try:
        record = msgspec.json.decode(base64.b64decode(match[1], validate=True), type=ShownChanges)
    except (msgspec.DecodeError, ValueError):
        return None
    if record.about != about or record.text != _digest(text) or updated_at > record.posted_at + SIGNED_WITHIN:
        return None
    shown = {
        digests[first : first + _DIGEST_BYTES].hex(): entry
        for entry, digests in record.groups
        for first in range(0, len(digests), _DIGEST_BYTES)
    }
    return shown if is_signed(record, match[2], key, purpose=PURPOSE) else None


def with_record(text: str, line: str) -> str:
    """Give the text with this record at its end, in the place of an earlier one."""
    lines = _lines(text)
    return "\n".join([*(lines[:-1] if _LINE.fullmatch(lines[-1]) else lines), line]) + "\n"


def _lines(text: str) -> list[str]:
    """Split the text; forges may drop blanks at the ends."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _digest(text: str) -> str:
    return sha256_of("\n".join(line for line in _lines(text) if not _LINE.fullmatch(line)).rstrip())


def shown_from(earlier: ShownByDigest, owners: Mapping[str, str], *, head: str, posted_at: datetime) -> ShownByDigest:
    """Say what the comment shows as of ``posted_at``: a change that it has shown all the while keeps its time.

    Args:
        earlier: The part of its record of before this edit that still holds.
        owners: By digest, whose change it is; of all changes that the comment shows now.
        head: The newest commit of the branch, of which the comment shows the plan.
    """
    return {
        digest: _also_of(head, earlier.get(digest) or Shown(owner=owner, since=posted_at, heads=()))
        for digest, owner in owners.items()
    }


def already_shown(earlier: ShownByDigest, owners: Mapping[str, str]) -> ShownByDigest:
    return {d: shown for d, shown in earlier.items() if owners.get(d) == shown.owner}


def _also_of(head: str, shown: Shown) -> Shown:
    """Add a commit to those that show the change. The first and the newest ones stay where there are many."""
    heads = (*(known for known in shown.heads if known != head), head)
    return replace(shown, heads=heads if len(heads) <= MOST_HEADS else (heads[0], *heads[1 - MOST_HEADS :]))
