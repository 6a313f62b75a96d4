"""GitLab's REST API (version 4), as far as merge requests of topics need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from urllib.parse import quote

import msgspec

from topicops.edges.forge.rest import Rest
from topicops.model.pull_requests.forge import Check, CheckResult, Comment, PullRequest, Review, ReviewVerdict

_STATES = {CheckResult.SUCCESS: "success", CheckResult.NEUTRAL: "success", CheckResult.FAILURE: "failed"}
"""GitLab knows no neutral status: the text says what waits."""
_MOST_DESCRIPTION = 255
_APPROVED, _UNAPPROVED = "approved this merge request", "unapproved this merge request"
"""What GitLab's own notes say; they alone have the time of an approval."""
_WANTS_CHANGES = "requested changes"


class _User(msgspec.Struct):
    username: str


class _MergeRequest(msgspec.Struct):
    iid: int
    web_url: str
    title: str
    state: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    sha: str | None = None
    author: _User | None = None
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    labels: list[str] = []


class _Note(msgspec.Struct):
    id: int
    body: str
    updated_at: datetime
    created_at: datetime
    author: _User
    system: bool = False


class _Diff(msgspec.Struct):
    old_path: str
    new_path: str


class GitLab:
    """One project on GitLab.

    Args:
        url: ``https://gitlab.com/api/v4``.
        repository: Path of the project, ``acme/topics``, or its number.
    """

    mark = "!"

    def __init__(self, url: str, repository: str, token: str) -> None:
        self.repository = repository
        self._rest = Rest(url, {"PRIVATE-TOKEN": token})
        self._project = f"/projects/{quote(repository, safe='')}"

    def pull_request(self, number: int) -> PullRequest:
        return _pull_request(self._rest.get(f"{self._project}/merge_requests/{number}", _MergeRequest))

    def pull_request_of(self, merge_commit: str) -> PullRequest | None:
        path = f"{self._project}/repository/commits/{merge_commit}/merge_requests"
        found = map(_pull_request, self._rest.pages(path, _MergeRequest))
        return next((request for request in found if request.merge_commit == merge_commit), None)

    def open_pull_requests(self, base_branch: str) -> Sequence[PullRequest]:
        path = f"{self._project}/merge_requests"
        found = self._rest.pages(path, _MergeRequest, state="opened", target_branch=base_branch)
        return sorted(map(_pull_request, found), key=lambda request: request.number)

    def changed_files(self, number: int) -> frozenset[str]:
        diffs = list(self._rest.pages(f"{self._project}/merge_requests/{number}/diffs", _Diff))
        return frozenset(path for diff in diffs for path in (diff.old_path, diff.new_path))

    def authors(self, number: int) -> frozenset[str]:
        """The opener, and who pushed to the branch: commits have names and addresses, and no logins."""
        pushers = (
            note.author.username
            for note in self._notes(number)
            if note.system and note.body.startswith("added ") and "commit" in note.body.partition("\n")[0]
        )
        return frozenset({self.pull_request(number).author, *pushers})

    def own_comments(self, number: int) -> Sequence[Comment]:
        notes = self._notes(number)
        return [_comment(note) for note in notes if not note.system and note.author.username == self._login]

    def add_comment(self, number: int, body: str) -> Comment:
        path = f"{self._project}/merge_requests/{number}/notes"
        return _comment(self._rest.send("POST", path, _Note, {"body": body}))

    def edit_comment(self, number: int, comment_id: str, body: str) -> Comment:
        path = f"{self._project}/merge_requests/{number}/notes/{comment_id}"
        return _comment(self._rest.send("PUT", path, _Note, {"body": body}))

    def remove_comment(self, number: int, comment_id: str) -> None:
        self._rest.remove(f"{self._project}/merge_requests/{number}/notes/{comment_id}")

    def reviews(self, number: int) -> Sequence[Review]:
        return list(_reviews(self._notes(number)))

    def members(self, team: str) -> frozenset[str]:
        path = f"/groups/{quote(team, safe='')}/members/all"
        return frozenset(user.username for user in self._rest.pages(path, _User))

    def set_check(self, commit: str, check: Check) -> None:
        body: dict[str, object] = {
            "state": _STATES[check.result],
            "name": check.name,
            "description": check.title[:_MOST_DESCRIPTION],
        }
        if check.url:
            body["target_url"] = check.url
        self._rest.send("POST", f"{self._project}/statuses/{commit}", type(None), body)

    def set_labels(self, number: int, wanted: Mapping[str, bool]) -> None:
        body = {
            "add_labels": ",".join(label for label, is_wanted in wanted.items() if is_wanted),
            "remove_labels": ",".join(label for label, is_wanted in wanted.items() if not is_wanted),
        }
        path = f"{self._project}/merge_requests/{number}"
        self._rest.send("PUT", path, type(None), {name: value for name, value in body.items() if value})

    @cached_property
    def _login(self) -> str:
        return self._rest.get("/user", _User).username

    def _notes(self, number: int) -> list[_Note]:
        """Oldest first."""
        path = f"{self._project}/merge_requests/{number}/notes"
        return list(self._rest.pages(path, _Note, sort="asc", order_by="created_at"))


def _pull_request(request: _MergeRequest) -> PullRequest:
    is_merged = request.state == "merged"
    # A fast-forward makes no commit of its own: the branch's newest commit is on the target branch then.
    merge_commit = request.merge_commit_sha or request.squash_commit_sha or request.sha
    return PullRequest(
        number=request.iid,
        url=request.web_url,
        title=request.title,
        author=request.author.username if request.author else "",
        state="merged" if is_merged else "open" if request.state in ("opened", "locked") else "closed",
        base_branch=request.target_branch,
        head_commit=request.sha or "",
        is_from_fork=request.source_project_id is None or request.source_project_id != request.target_project_id,
        merge_commit=merge_commit if is_merged else None,
        labels=tuple(request.labels),
    )


def _comment(note: _Note) -> Comment:
    return Comment(id=str(note.id), author=note.author.username, body=note.body, updated_at=note.updated_at)


def _reviews(notes: Sequence[_Note]) -> Iterator[Review]:
    verdicts = {_APPROVED: ReviewVerdict.APPROVED, _UNAPPROVED: ReviewVerdict.DISMISSED}
    for note in notes:
        verdict = verdicts.get(note.body.strip())
        if verdict is None and note.body.strip().startswith(_WANTS_CHANGES):
            verdict = ReviewVerdict.CHANGES_REQUESTED
        if note.system and verdict is not None:
            yield Review(reviewer=note.author.username, verdict=verdict, submitted_at=note.created_at)
