"""What the jobs of a pull request hand on: its plan, what its comments say and showed, the runs after the merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from topicops.model.plans.plan import Plan
from topicops.model.runs.run_result import RunResult
from topicops.model.specs.environment import Risk

PULL_REQUEST_FILE, RUNS_FILE = "pull-request.json", "runs.json"


def plan_file_of(environment: str) -> str:
    return f"{environment}.plan.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRules:
    """What the policy of an environment says about reviews; of the base branch."""

    counts: bool
    """Whether ``policy.approvals`` has ``review``."""
    place: str
    """Where the policy says so, for messages."""
    author_approves: Risk
    lasts: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEnvironment:
    """One environment that the pull request touches."""

    environment: str
    own: tuple[str, ...]
    """Topics that the pull request changes there, sorted; none where it changes policy alone."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Owner of each topic with a held change: the one that the base branch names, else the branch's own word."""
    rules: ReviewRules | None = None
    problem: str = ""
    """Why there is no plan; else the plan is in ``plan_file_of``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestPlan:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """None: planned by hand, for no pull request that is known."""
    base_commit: str
    head_commit: str
    topic_files: tuple[str, ...]
    """Files of topics that the pull request touches, by path from the repository's root, sorted."""
    reviewers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By owner, as ``owners.yaml`` of the base branch has them: logins, and teams (``acme/payments``)."""
    remarks: tuple[str, ...] = ()
    environments: tuple[PlannedEnvironment, ...] = ()
    left_out: tuple[str, ...] = ()
    """Environments that the command was told to leave out: nothing is known of them."""
    problem: str = ""
    """Why nothing could be planned, such as a conflict with the base branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPullRequest:
    """An open one that touches the same topics."""

    mark: str
    """``#12``, or GitLab's ``!12``."""
    url: str
    author: str
    topics: tuple[str, ...]
    """Those that both touch, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewState:
    """How far one held change is approved in the review."""

    reviewers: tuple[str, ...]
    """Who may approve it: logins and teams of its owner, as ``topics/owners.yaml`` of the base branch names them."""
    approved_by: str | None = None
    """The login whose review covers it; None: nobody's does."""
    why_not: str = ""
    """Why no review covers it although there is one, or why none can; one sentence."""
    can_be_reviewed: bool = True
    """False: no review counts for it, whoever gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentContent:
    """All that the comments about one environment say."""

    environment: str
    plan: Plan | None
    """Of the merge of base and branch; None: it could not be made."""
    problem: str = ""
    """Why there is no plan."""
    own: frozenset[str] = frozenset()
    """Topics that the pull request changes. Changes of other topics were pending before it."""
    base_commit: str = ""
    head_commit: str = ""
    reviews: Mapping[str, ReviewState] = field(default_factory=dict)
    """By the digest of each change that an approval could let run."""
    shown_since: Mapping[str, datetime] = field(default_factory=dict)
    """By digest: since when the comment shows the change as it is now."""
    others: tuple[OtherPullRequest, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences, such as which files of the branch the plan does not use."""
    record: str = ""
    """The hidden line that proves what the comment showed; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    """Changes of one owner that the comment shows since the same moment."""

    owner: str
    since: datetime
    """UTC, by the forge's clock. A review that is older is not about these changes."""
    heads: tuple[str, ...]
    """Newest commits of the branch of which it has shown these changes; a review of another one is not about them."""
    digests: str
    """Base64 of the digests, 32 bytes each, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a record is of: it proves nothing about any other pull request, base branch or environment."""

    repository: str
    pull_request: int
    base_branch: str
    """Its files name the owners. People can choose another base for an open pull request."""
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChanges:
    format_version: Literal["2.0"] = "2.0"
    about: About
    text: str
    """SHA-256 of the text of all parts of the comment, without the record. With another text the record is void."""
    posted_at: datetime
    """When the forge took this text, UTC. A later edit is not ours, even if it puts an old text back."""
    groups: tuple[ShownGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One change of a record."""

    owner: str
    since: datetime
    heads: tuple[str, ...]
    """In the order in which they were the newest commit."""


ShownByDigest = Mapping[str, Shown]
RunState = Literal["applied", "held", "failed", "waiting", "not started"]
"""``held``: done, but for changes that are held or skipped. ``waiting``: another environment comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRun:
    """One environment after the merge."""

    environment: str
    state: RunState
    sentence: str
    """What happened."""
    dag_id: str = ""
    run_id: str = ""
    url: str = ""
    commit: str = ""
    """The commit on which the run works."""
    reviews: int = 0
    """How many reviews were handed over."""
    result: RunResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggeredRuns:
    format_version: Literal["1.0"] = "1.0"
    number: int | None
    """Of the pull request; None: the commit came another way."""
    merge_commit: str
    environments: tuple[TriggeredRun, ...] = ()
