"""What a forge keeps, in memory: pull requests with their comments and reviews, checks and teams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

from topicops.model.pull_requests.forge import Review, ReviewVerdict

REPOSITORY = "acme/topics"
BOT = "github-actions[bot]"
TOKEN = "token-of-the-job"
PERSON = "topics-account"
PERSONAL_TOKEN = "token-of-a-person"
"""Of ``PERSON``. On GitHub it may write no checks, and alone it may read the members of teams."""
MergeMethod = Literal["merge", "squash", "fast-forward"]


@dataclass(kw_only=True)
class FakeComment:
    id: int
    author: str
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass(kw_only=True)
class FakePullRequest:
    number: int
    author: str
    head: str
    base: str = "main"
    title: str = "A change"
    files: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    """Old path by new path."""
    message: str = ""
    """Of its commits."""
    committers: set[str] = field(default_factory=set)
    unknown_commits: list[str] = field(default_factory=list)
    """Of an address that no account has."""
    pushes: list[tuple[str, datetime]] = field(default_factory=list)
    """Who pushed since it was opened, and when."""
    is_from_fork: bool = False
    merge_commit: str | None = None
    merged_at: datetime | None = None
    merge_method: MergeMethod = "merge"
    is_closed: bool = False
    labels: set[str] = field(default_factory=set)
    comments: list[FakeComment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    """Oldest first, and each as it was given. A dismissal is an entry too, behind what it ends."""
    reset_at: int = 0
    """The approvals before this index do not stand."""

    def reset_approvals(self) -> None:
        """As GitLab does after a push, where the project is set so: no note of the approvers says so."""
        self.reset_at = len(self.reviews)

    @property
    def is_open(self) -> bool:
        return self.merge_commit is None and not self.is_closed

    @property
    def approvers(self) -> dict[str, datetime]:
        """Since when each approval stands that still does, by login."""
        found: dict[str, datetime] = {}
        for review in self.reviews[self.reset_at :]:
            if review.verdict is ReviewVerdict.APPROVED:
                found[review.reviewer] = review.submitted_at
            elif review.verdict is not ReviewVerdict.COMMENTED:
                found.pop(review.reviewer, None)
        return found


@dataclass(frozen=True, kw_only=True)
class FakeCheck:
    id: int
    name: str
    result: str
    title: str
    summary: str = ""
    url: str = ""
    app: str = "github-actions"
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    login: str
    """Of the account that asks."""


class NotFoundError(Exception):
    """There is no such thing; the forge answers 404."""


Answer = tuple[int, Any]
"""Status and body."""
Routes = Mapping[str, Mapping[str, Callable[..., Answer]]]
"""By the pattern of a path and by method. Each gets the request, and what the pattern's groups found."""


class Store:
    """Tests play people by its methods. Its clock moves on by a second with each act."""

    def __init__(self) -> None:
        self.pulls: dict[int, FakePullRequest] = {}
        self.checks: dict[str, dict[str, FakeCheck]] = {}
        """By commit and name."""
        self.teams: dict[str, set[str]] = {}
        self.zone: timedelta | None = timedelta(0)
        """Of the times in answers; None: they name no zone."""
        self.url = ""
        """Where the forge's pages begin."""
        self.lock = threading.RLock()
        self._now = datetime.now(UTC).replace(microsecond=0)
        self._ids = 100

    # ---- what people do ----

    def now(self) -> datetime:
        """The forge's clock; each look moves it on."""
        with self.lock:
            self._now = max(self._now + timedelta(seconds=1), datetime.now(UTC).replace(microsecond=0))
            return self._now

    def let_pass(self, seconds: float) -> None:
        """On the forge's clock."""
        with self.lock:
            self._now = self.now() + timedelta(seconds=seconds)

    def open(self, head: str, files: Sequence[str] = (), *, author: str = "bob", fork: bool = False) -> FakePullRequest:
        with self.lock:
            number = len(self.pulls) + 1
            pull = FakePullRequest(number=number, author=author, head=head, files=set(files), is_from_fork=fork)
            self.pulls[number] = pull
            return pull

    def push(self, number: int, head: str, files: Sequence[str] = (), *, committer: str = "") -> None:
        with self.lock:
            self.pulls[number].head = head
            self.pulls[number].files |= set(files)
            self.pulls[number].committers |= {committer} - {""}
            self.pulls[number].pushes.append((committer or self.pulls[number].author, self.now()))

    def close(self, number: int) -> None:
        with self.lock:
            self.pulls[number].is_closed = True

    def review(
        self, number: int, reviewer: str, verdict: ReviewVerdict = ReviewVerdict.APPROVED, *, seen: str | None = None
    ) -> None:
        """``DISMISSED`` ends what the reviewer said before, whoever dismisses it.

        Args:
            seen: The commit on the reviewer's page; the newest where it is left out.
        """
        with self.lock:
            seen = self.pulls[number].head if seen is None else seen
            review = Review(reviewer=reviewer, verdict=verdict, submitted_at=self.now(), commit=seen)
            self.pulls[number].reviews.append(review)

    def merge(self, number: int, commit: str, *, method: MergeMethod = "merge") -> None:
        """``commit`` is the one on the base branch; a fast-forward makes it the newest of the branch too."""
        with self.lock:
            pull = self.pulls[number]
            pull.merge_commit, pull.merge_method, pull.merged_at = commit, method, self.now()
            if method == "fast-forward":
                pull.head = commit

    def comment(self, number: int, author: str, body: str) -> FakeComment:
        """A comment of a person, or of the bot."""
        with self.lock:
            at = self.now()
            comment = FakeComment(id=self.next_id(), author=author, body=body, created_at=at, updated_at=at)
            self.pulls[number].comments.append(comment)
            return comment

    # ---- what was written ----

    def bodies(self, number: int) -> list[str]:
        """Of the bot's comments, oldest first."""
        return [comment.body for comment in self.pulls[number].comments if comment.author == BOT]

    def check(self, commit: str, name: str = "topicops") -> FakeCheck | None:
        return self.checks.get(commit, {}).get(name)

    def labels(self, number: int) -> set[str]:
        return self.pulls[number].labels

    # ---- what the forge's paths need ----

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def pull(self, number: str) -> FakePullRequest:
        """Raises ``KeyError``."""
        return self.pulls[int(number)]

    def open_pulls(self, base: str | None) -> list[FakePullRequest]:
        """Those into the branch; None: all."""
        return [pull for pull in self.pulls.values() if pull.is_open and base in (None, pull.base)]

    def pulls_of(self, commit: str) -> list[FakePullRequest]:
        return [pull for pull in self.pulls.values() if commit in (pull.merge_commit, pull.head)]

    def edited(self, comment_id: str, body: str) -> FakeComment:
        _, comment = self._comment_of(comment_id)
        comment.body, comment.updated_at = body, self.now()
        return comment

    def remove_comment(self, _: Request, comment_id: str) -> Answer:
        pull, comment = self._comment_of(comment_id)
        pull.comments.remove(comment)
        return 204, None

    def text(self, at: datetime) -> str:
        """A time, as answers have it."""
        if not self.zone:
            return f"{at:%Y-%m-%dT%H:%M:%S}{'' if self.zone is None else 'Z'}"
        return at.astimezone(timezone(self.zone)).isoformat(timespec="milliseconds")

    def _comment_of(self, comment_id: str) -> tuple[FakePullRequest, FakeComment]:
        for pull in self.pulls.values():
            for comment in pull.comments:
                if comment.id == int(comment_id):
                    return pull, comment
        raise NotFoundError
