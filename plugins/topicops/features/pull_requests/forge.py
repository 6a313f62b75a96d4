"""What a forge (GitHub, GitLab) knows of a pull request, and the port through which it is asked.

A merge request of GitLab is a pull request here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol

from topicops.model.errors import TopicopsError


class ForgeError(TopicopsError):
    """GitHub or GitLab refused a request, or did not answer."""


class ReviewVerdict(StrEnum):
    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    DISMISSED = "dismissed"
    """Somebody else, or a new commit, ended an earlier review."""
    COMMENTED = "commented"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    number: int
    """As people write it: ``#12``, GitLab's ``!12``."""
    url: str
    """The page that people open."""
    author: str
    """Login of the account that opened it."""
    state: Literal["open", "merged", "closed"]
    base_branch: str
    head_commit: str
    """Newest commit of the branch."""
    is_from_fork: bool
    merge_commit: str | None = None
    """The commit on the base branch that the merge made; None until it is merged."""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    id: str
    body: str
    updated_at: datetime
    """Of its newest edit, by the forge's clock; UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    reviewer: str
    """Login."""
    verdict: ReviewVerdict
    submitted_at: datetime
    """UTC."""
    commit: str | None = None
    """The newest commit on the page that the reviewer saw; None: this forge never tells it; empty: not told of this
    review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """Who made a pull request."""

    logins: frozenset[str]
    """Of who opened it, and of who wrote or committed its commits."""
    unknown_commit: str = ""
    """A commit that no account wrote or committed, as far as the forge knows: anybody may have made it. Empty: none."""


class CheckResult(StrEnum):
    SUCCESS = "success"
    NEUTRAL = "neutral"
    """Nothing is wrong, and something waits for a person. A forge without this word takes it for a success."""
    FAILURE = "failure"
    PENDING = "pending"
    """A job is at work on it; until it ends, a required check lets nobody merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The line about a commit that a forge shows beside its merge button."""

    name: str = "topicops"
    result: CheckResult
    title: str
    """One sentence."""
    summary: str = ""
    """Markdown."""
    url: str = ""
    """Where to read more; empty: nowhere."""


class Forge(Protocol):
    """One repository of a forge. Every request raises ``ForgeError`` when the forge refuses it, or does not answer."""

    @property
    def repository(self) -> str:
        """``acme/topics``, as the forge names it."""
        ...

    @property
    def mark(self) -> str:
        """What stands before the number of a pull request: ``#`` or ``!``."""
        ...

    def pull_request(self, number: int) -> PullRequest: ...

    def pull_request_of(self, merge_commit: str) -> PullRequest | None:
        """The merged one that put this commit on its base branch; None: the commit came another way."""
        ...

    def open_pull_requests(self, base_branch: str) -> Sequence[PullRequest]:
        """In rising order of their numbers."""
        ...

    def open_pull_requests_of(self, head_commit: str) -> Sequence[PullRequest]:
        """Those whose branch has this commit as its newest one, into any branch."""
        ...

    def changed_files(self, number: int) -> frozenset[str]:
        """Paths from the repository's root; of a renamed file both."""
        ...

    def authors(self, number: int) -> Authors: ...

    def own_comments(self, number: int) -> Sequence[Comment]:
        """Those of the account that asks, oldest first. Nobody else's: anybody can write a marker into a comment."""
        ...

    def add_comment(self, number: int, body: str) -> Comment: ...

    def edit_comment(self, number: int, comment_id: str, body: str) -> Comment: ...

    def remove_comment(self, number: int, comment_id: str) -> None: ...

    def reviews(self, number: int) -> Sequence[Review]:
        """All of them, oldest first; a reviewer may have several."""
        ...

    def members(self, team: str) -> frozenset[str]:
        """Logins of a team (``acme/payments``). Raises ``ForgeError`` where the token may not read it."""
        ...

    def set_check(self, commit: str, check: Check) -> None:
        """Replaces the check of this name."""
        ...

    def set_labels(self, number: int, wanted: Mapping[str, bool]) -> None:
        """Add the labels that are true and remove those that are false; all others stay."""
        ...
