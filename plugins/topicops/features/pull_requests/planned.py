"""A pull request as ``topicops ci plan`` found it, and what its comments say beside the plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from topicops.model.plans.plan import Plan


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
