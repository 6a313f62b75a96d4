"""GitLab's REST API (version 4), as far as merge requests of topics need it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from urllib.parse import quote

import msgspec

from topicops.features.pull_requests.edges import forge
from topicops.features.pull_requests.edges.rest import Moment, Rest, checked_length, utc

_STATES = {
    forge.CheckResult.SUCCESS: "success",
    forge.CheckResult.NEUTRAL: "success",
    forge.CheckResult.FAILURE: "failed",
    forge.CheckResult.PENDING: "running",
}
"""GitLab knows no neutral status: the text says what waits."""
MOST_COMMENT = 1_000_000
"""Number of characters of a note."""
_MOST_DESCRIPTION = 255
_WORDS = {
    "approved this merge request": forge.ReviewVerdict.APPROVED,
    "unapproved this merge request": forge.ReviewVerdict.DISMISSED,
}
"""Words of GitLab's own notes. Before 18.5 only they have the time of an approval."""
_WANTS_CHANGES = "requested changes"
_PUSHED = re.compile(r"added \d+ commits?\b")
_QUICK_ACTION = re.compile(r"^([ \t]*)/(?=\w)", re.MULTILINE)
"""A line of a note that GitLab would carry out, such as ``/merge``."""
_COMMITTERS = """
query($project: ID!, $number: String!) {
  project(fullPath: $project) { mergeRequest(iid: $number) {
    committers(first: 100) { nodes { username } pageInfo { hasNextPage } }
  } }
}
"""
"""The REST API has only names and addresses of those who made the commits."""


class _User(msgspec.Struct):
    username: str


class _References(msgspec.Struct):
    full: str
    """``acme/topics!12``."""


class _MergeRequest(msgspec.Struct):
    iid: int
    web_url: str
    state: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    sha: str | None = None
    author: _User | None = None
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    references: _References | None = None


class _Note(msgspec.Struct):
    id: int
    body: str
    updated_at: Moment
    created_at: Moment
    author: _User
    system: bool = False


class _Diff(msgspec.Struct):
    old_path: str
    new_path: str


class _Approval(msgspec.Struct):
    user: _User
    approved_at: Moment | None = None


class _Approvals(msgspec.Struct):
    approved_by: list[_Approval] = []


class _Page(msgspec.Struct, rename="camel"):
    has_next_page: bool


class _Committers(msgspec.Struct, rename="camel"):
    nodes: list[_User | None]
    page_info: _Page


class _RequestNode(msgspec.Struct):
    committers: _Committers | None


class _ProjectNode(msgspec.Struct, rename="camel"):
    merge_request: _RequestNode | None


class _Data(msgspec.Struct):
    project: _ProjectNode | None


class _GraphAnswer(msgspec.Struct):
    data: _Data | None = None


class GitLab:
    """One project on GitLab, with the methods of ``GitHub``.

    Args:
        repository: Path of the project, ``acme/topics``, or its number.
        login: The account of the token, whose notes are ours. Empty: GitLab is asked.
    """

    mark = "!"

    def __init__(
        self, url: str, repository: str, token: str, *, login: str = "", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.repository, self._given_login = repository, login
        self._project = f"/projects/{quote(repository, safe='')}"
        self._requests = f"{self._project}/merge_requests"
        url, headers = url.rstrip("/"), {"PRIVATE-TOKEN": token}
        self._rest = Rest(url, headers, token=token, sleep=sleep)
        self._graph = Rest(url.removesuffix("/v4"), headers, token=token, sleep=sleep)

    def pull_request(self, number: int) -> forge.PullRequest:
        return _pull_request(self._rest.get(f"{self._requests}/{number}", _MergeRequest))

    def pull_requests_with(self, commit: str) -> Iterator[forge.PullRequest]:
        path = f"{self._project}/repository/commits/{commit}/merge_requests"
        return map(_pull_request, self._rest.pages(path, _MergeRequest))

    def open_pull_requests(self, base_branch: str) -> Sequence[forge.PullRequest]:
        found = self._rest.pages(self._requests, _MergeRequest, state="opened", target_branch=base_branch)
        return sorted(map(_pull_request, found), key=lambda request: request.number)

    def changed_files(self, number: int) -> frozenset[str]:
        """List as many as the server shows of one merge request: 1,000, unless its administrator has changed that."""
        diffs = list(self._rest.pages(f"{self._requests}/{number}/diffs", _Diff))
        return frozenset(path for diff in diffs for path in (diff.old_path, diff.new_path))

    def authors(self, number: int) -> forge.Authors:
        """Name the opener, who pushed to the branch since then, and who made its commits."""
        request = self._rest.get(f"{self._requests}/{number}", _MergeRequest)
        pushers = {
            note.author.username for note in self._notes(number) if note.system and _PUSHED.match(note.body.lstrip())
        }
        opener = {request.author.username} if request.author else set()
        return forge.Authors(logins=frozenset(opener | pushers | self._committers(number, request)))

    def _committers(self, number: int, request: _MergeRequest) -> set[str]:
        project = request.references.full.rpartition("!")[0] if request.references else self.repository
        body = {"query": _COMMITTERS, "variables": {"project": project, "number": str(number)}}
        data = self._graph.send("POST", "/graphql", _GraphAnswer, body).data
        found = data.project.merge_request if data and data.project else None
        if found is None or found.committers is None:
            raise forge.ForgeError(
                f"!{number}: GitLab does not say who made its commits; the token needs the scope api"
            )
        if found.committers.page_info.has_next_page:
            raise forge.ForgeError(f"!{number} has commits of more than 100 people: not all of its authors are known")
        return {user.username for user in found.committers.nodes if user}

    def own_comments(self, number: int) -> Sequence[forge.Comment]:
        notes = self._notes(number)
        return [_comment(note) for note in notes if not note.system and note.author.username == self._login]

    def add_comment(self, number: int, body: str) -> forge.Comment:
        return self._write("POST", f"{number}/notes", body)

    def edit_comment(self, number: int, comment_id: str, body: str) -> forge.Comment:
        return self._write("PUT", f"{number}/notes/{comment_id}", body)

    def _write(self, method: str, path: str, body: str) -> forge.Comment:
        text = _QUICK_ACTION.sub(r"\1\\/", checked_length(body, MOST_COMMENT, "GitLab"))
        return _comment(self._rest.send(method, f"{self._requests}/{path}", _Note, {"body": text}))

    def remove_comment(self, number: int, comment_id: str) -> None:
        self._rest.remove(f"{self._requests}/{number}/notes/{comment_id}")

    def reviews(self, number: int) -> Sequence[forge.Review]:
        """List them; an approval that no longer stands, as after a push, is dismissed at its own time."""
        approvals = self._rest.get(f"{self._requests}/{number}/approvals", _Approvals).approved_by
        standing = {entry.user.username: entry.approved_at for entry in approvals}
        found, noted = list[forge.Review](), set[str]()
        for note in self._notes(number):
            said, login = note.body.strip(), note.author.username
            verdict = forge.ReviewVerdict.CHANGES_REQUESTED if said.startswith(_WANTS_CHANGES) else _WORDS.get(said)
            if verdict is forge.ReviewVerdict.APPROVED and login not in standing:
                verdict = forge.ReviewVerdict.DISMISSED
            if note.system and verdict is not None:
                found.append(forge.Review(reviewer=login, verdict=verdict, submitted_at=utc(note.created_at)))
                noted |= {login} if verdict is forge.ReviewVerdict.APPROVED else set()
        found += [
            forge.Review(reviewer=login, verdict=forge.ReviewVerdict.APPROVED, submitted_at=utc(at))
            for login, at in standing.items()
            if at is not None and login not in noted
        ]
        return sorted(found, key=lambda review: review.submitted_at)

    def members(self, team: str) -> frozenset[str]:
        path = f"/groups/{quote(team, safe='')}/members/all"
        return frozenset(user.username for user in self._rest.pages(path, _User))

    def set_check(self, commit: str, check: forge.Check) -> None:
        body = {
            "state": _STATES[check.result],
            "name": check.name,
            "description": check.title[:_MOST_DESCRIPTION],
            **({"target_url": check.url} if check.url else {}),
        }
        self._rest.send("POST", f"{self._project}/statuses/{commit}", type(None), body)

    def set_labels(self, number: int, wanted: Mapping[str, bool]) -> None:
        body = {
            "add_labels": ",".join(label for label, is_wanted in wanted.items() if is_wanted),
            "remove_labels": ",".join(label for label, is_wanted in wanted.items() if not is_wanted),
        }
        path = f"{self._requests}/{number}"
        self._rest.send("PUT", path, type(None), {name: value for name, value in body.items() if value})

    @cached_property
    def _login(self) -> str:
        return self._given_login or self._rest.get("/user", _User).username

    def _notes(self, number: int) -> list[_Note]:
        path = f"{self._requests}/{number}/notes"
        return list(self._rest.pages(path, _Note, sort="asc", order_by="created_at"))


def _pull_request(request: _MergeRequest) -> forge.PullRequest:
    is_merged = request.state == "merged"
    # A fast-forward makes no commit of its own: the branch's newest commit is on the target branch then.
    merge_commit = request.merge_commit_sha or request.squash_commit_sha or request.sha
    return forge.PullRequest(
        number=request.iid,
        url=request.web_url,
        author=request.author.username if request.author else "",
        state="merged" if is_merged else "open" if request.state in ("opened", "locked") else "closed",
        base_branch=request.target_branch,
        head_commit=request.sha or "",
        is_from_fork=request.source_project_id is None or request.source_project_id != request.target_project_id,
        merge_commit=merge_commit if is_merged else None,
    )


def _comment(note: _Note) -> forge.Comment:
    return forge.Comment(id=str(note.id), body=note.body, updated_at=utc(note.updated_at))
