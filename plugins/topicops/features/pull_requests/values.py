"""What the jobs of a pull request hand on: its plan, what its comments say and showed, the runs after the merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.runs.results import RunResult
from topicops.model.specs.environment import Risk

PULL_REQUEST_FILE, RUNS_FILE, PLAN_FILE = "pull-request.json", "runs.json", "{}.plan.json"
MOST_REVIEWED = 400
"""Number of changes of one environment that a review may approve: each takes sixty characters of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRules:
    """What the policy of an environment, as the base branch has it, says about reviews."""

    counts: bool
    """Whether ``policy.approvals`` has ``review``."""
    place: str
    author_approves: Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEnvironment:
    environment: str
    own: tuple[str, ...] = ()
    """Topics that the pull request changes there, sorted; none where it changes policy alone."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Owner of each topic with a held change: the one that the base branch names, else the branch's own word."""
    rules: ReviewRules | None = None
    problem: str = ""
    """Reason why there is no plan; if empty, the plan is in ``PLAN_FILE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestPlan:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """Number of the pull request. None means that it was planned by hand, for no known one."""
    base_commit: str
    head_commit: str
    topic_files: tuple[str, ...] = ()
    """Files of topics that the pull request touches, by path from the repository's root, sorted."""
    reviewers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Logins, and teams (``acme/payments``), by owner, as ``owners.yaml`` of the base branch has them."""
    remarks: tuple[str, ...] = ()
    """Sentences, such as which files of the branch the plan does not use."""
    environments: tuple[PlannedEnvironment, ...] = ()
    left_out: tuple[str, ...] = ()
    """Environments that the command's options leave out: nothing is known of them."""
    problem: str = ""
    """Reason why nothing could be planned, such as a conflict with the base branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPullRequest:
    """The summary, and the plan of each environment that could be planned."""

    summary: PullRequestPlan
    plans: Mapping[str, Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPullRequest:
    """An open pull request that touches the same topics."""

    mark: str
    """Name such as ``#12``, or GitLab's ``!12``."""
    url: str
    author: str
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """How far one held change is approved in the review."""

    reviewers: tuple[str, ...]
    """Logins and teams that may approve it: those of its owner in ``topics/owners.yaml`` of the base branch."""
    approved_by: str | None = None
    why_not: str = ""
    """Reason why no review covers it although there is one, or why none can; one sentence."""
    can_be_reviewed: bool = True
    """Whether any review can count for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    owner: str
    since: datetime
    """Time in UTC, by the forge's clock. A review that is older is not about the change."""
    heads: tuple[str, ...]
    """Newest commits of the branch, in order, for which it was shown; a review of another one does not count."""


ShownByDigest = Mapping[str, Shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Pull request, base branch and environment of a record, which proves nothing about any other."""

    repository: str
    pull_request: int
    base_branch: str
    """Branch whose files name the owners. People can choose another base for an open pull request."""
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChanges:
    """The record at the end of a comment."""

    format_version: Literal["2.0"] = "2.0"
    about: About
    text: str
    """SHA-256 of the text of the comment, without the record. With another text the record is void."""
    posted_at: datetime
    """Time in UTC when the forge took this text. A later edit is not ours, even if it puts an old text back."""
    groups: tuple[tuple[Shown, bytes], ...]
    """Digests of the changes that are shown alike, 32 bytes each, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentContent:
    pull: PullRequestPlan
    entry: PlannedEnvironment
    plan: Plan | None
    """Plan of the merge of base and branch. None means that it could not be made."""
    reviews: Mapping[str, ReviewState] = field(default_factory=dict)
    """State by the digest of each change that an approval could let run."""
    shown: ShownByDigest = field(default_factory=dict)
    """Changes that our comment has shown all the while until now."""
    others: tuple[OtherPullRequest, ...] = ()
    record: str = ""
    """Hidden line that proves what the comment showed; may be empty."""

    @property
    def own_changes(self) -> tuple[GatedChange, ...]:
        """Changes that the pull request itself brings; those of other topics were pending before it."""
        own = frozenset(self.entry.own)
        return tuple(gated for gated in self.plan.changes if gated.change.topic in own) if self.plan else ()

    @property
    def own_blocked(self) -> tuple[Blocked, ...]:
        return tuple(b for b in self.plan.change_set.blocked if b.topic in self.entry.own) if self.plan else ()

    @property
    def held(self) -> tuple[GatedChange, ...]:
        """Changes that a review of this pull request can be about: what was pending before had its own."""
        return tuple(gated for gated in self.own_changes if gated.approvable)[:MOST_REVIEWED]

    @property
    def owners(self) -> Mapping[str, str]:
        return {gated.digest: self.entry.owners.get(gated.change.topic, "") for gated in self.held}


RunState = Literal["applied", "held", "failed", "waiting", "not started"]
"""``held``: done, but for changes that are held or skipped. ``waiting``: another environment comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRun:
    environment: str
    state: RunState
    sentence: str
    dag_id: str = ""
    run_id: str = ""
    url: str = ""
    commit: str = ""
    result: RunResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRuns:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """Number of the pull request. None means that the commit came another way."""
    merge_commit: str
    environments: tuple[TriggeredRun, ...] = ()
