"""What a forge (GitHub, GitLab) knows of a pull request. A merge request of GitLab is a pull request here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from topicops.model.errors import TopicopsError


class ForgeError(TopicopsError):
    """GitHub or GitLab refused a request, or did not answer."""


class ReviewVerdict(StrEnum):
    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    DISMISSED = "dismissed"
    """An earlier review was ended, by another account or a new commit."""
    COMMENTED = "commented"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    number: int
    """Number as people write it: ``#12``, GitLab's ``!12``."""
    url: str
    author: str
    """Login of the account that opened it."""
    state: Literal["open", "merged", "closed"]
    base_branch: str
    head_commit: str
    is_from_fork: bool
    merge_commit: str | None = None
    """Commit on the base branch that the merge made. None means that it is not merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    body: str
    updated_at: datetime
    """Time of its newest edit, by the forge's clock; UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    reviewer: str
    verdict: ReviewVerdict
    submitted_at: datetime
    commit: str | None = None
    """Newest commit on the page that the reviewer saw; empty if unknown. None means that the forge never gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    logins: frozenset[str] = frozenset()
    """Logins of who opened it, and of who wrote or committed its commits."""
    unknown_commit: str = ""
    """Commit that no account wrote or committed, as far as the forge knows: anybody may have made it. Empty: none."""


class CheckResult(StrEnum):
    SUCCESS = "success"
    NEUTRAL = "neutral"
    """Nothing is wrong, and something waits for a person. A forge without this word treats it as a success."""
    FAILURE = "failure"
    PENDING = "pending"
    """A job works on it; until it ends, a required check blocks the merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The line about a commit that a forge shows beside its merge button."""

    name: str = "topicops"
    result: CheckResult
    title: str
    summary: str = ""
    url: str = ""
