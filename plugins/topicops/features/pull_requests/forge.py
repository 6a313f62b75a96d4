"""What a forge (GitHub, GitLab) knows of a pull request, and the port through which it is asked.

A merge request of GitLab is a pull request here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """An earlier review was ended, by another account or a new commit."""
    COMMENTED = "commented"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    number: int
    """Number as people write it: ``#12``, GitLab's ``!12``."""
    url: str
    """Page that people open."""
    author: str
    """Login of the account that opened it."""
    state: Literal["open", "merged", "closed"]
    base_branch: str
    head_commit: str
    """Newest commit of the branch."""
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
    """Login."""
    verdict: ReviewVerdict
    submitted_at: datetime
    """UTC."""
    commit: str | None = None
    """Newest commit on the page that the reviewer saw; empty if not told. None means that this forge never tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """Who made a pull request."""

    logins: frozenset[str] = frozenset()
    """Logins of who opened it, and of who wrote or committed its commits."""
    unknown_commit: str = ""
    """Commit that no account wrote or committed, as far as the forge knows: anybody may have made it. Empty: none."""


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
    """Address where to read more; may be empty."""


class Forge(Protocol):
    """One repository of a forge. Every request raises ``ForgeError`` when the forge refuses it, or does not answer."""

    repository: str
    """Name as the forge writes it: ``acme/topics``."""
    mark: str
    """Sign before the number of a pull request: ``#`` or ``!``."""

    def pull_request(self, number: int) -> PullRequest: ...

    def pull_requests_with(self, commit: str) -> Iterable[PullRequest]:
        """Find those that have this commit, on their branch or by their merge, open or not, into any branch."""
        ...

    def pull_request_of(self, merge_commit: str) -> PullRequest | None:
        """Find the merged one that put this commit on its base branch. None means that the commit came another way."""
        return next((pull for pull in self.pull_requests_with(merge_commit) if pull.merge_commit == merge_commit), None)

    def open_pull_requests(self, base_branch: str) -> Sequence[PullRequest]:
        """List them in rising order of their numbers."""
        ...

    def open_pull_requests_of(self, head_commit: str) -> Sequence[PullRequest]:
        """List those whose branch has this commit as its newest one, into any branch."""
        found = self.pull_requests_with(head_commit)
        return [pull for pull in found if pull.state == "open" and pull.head_commit == head_commit]

    def changed_files(self, number: int) -> frozenset[str]:
        """List paths from the repository's root; of a renamed file both."""
        ...

    def authors(self, number: int) -> Authors: ...

    def own_comments(self, number: int) -> Sequence[Comment]:
        """List those of the account that asks, oldest first. Anybody can write a marker into another comment."""
        ...

    def add_comment(self, number: int, body: str) -> Comment: ...

    def edit_comment(self, number: int, comment_id: str, body: str) -> Comment: ...

    def remove_comment(self, number: int, comment_id: str) -> None: ...

    def reviews(self, number: int) -> Sequence[Review]:
        """List all of them, oldest first; a reviewer may have several."""
        ...

    def members(self, team: str) -> frozenset[str]:
        """List the logins of a team (``acme/payments``). Raises ``ForgeError`` where the token may not read it."""
        ...

    def set_check(self, commit: str, check: Check) -> None:
        """Replace the check of this name."""
        ...

    def set_labels(self, number: int, wanted: Mapping[str, bool]) -> None:
        """Add the labels that are true and remove those that are false; all others stay."""
        ...
