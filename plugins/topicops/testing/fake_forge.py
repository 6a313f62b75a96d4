"""A forge for tests: pull requests in memory, behind the REST paths of GitHub and of GitLab, on the loopback interface.

Tests play the people (``open``, ``push``, ``review``, ``merge``) by its methods, and look at what was written
(``bodies``, ``check``, ``labels``). ``refusals``, ``refused``, ``page`` and ``delay_s`` make it answer badly.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

from topicops.model.pull_requests.forge import Review, ReviewVerdict

REPOSITORY = "acme/topics"
BOT = "github-actions[bot]"
TOKEN = "token-of-the-job"  # noqa: S105 - of the fake alone
PERSON = "topics-account"
PERSONAL_TOKEN = "token-of-a-person"  # noqa: S105
"""Of ``PERSON``. On GitHub it may write no checks."""
MergeMethod = Literal["merge", "squash", "fast-forward"]
_STATES = {
    ReviewVerdict.APPROVED: "APPROVED",
    ReviewVerdict.CHANGES_REQUESTED: "CHANGES_REQUESTED",
    ReviewVerdict.DISMISSED: "DISMISSED",
    ReviewVerdict.COMMENTED: "COMMENTED",
}
_GITLAB_NOTES = {
    ReviewVerdict.APPROVED: "approved this merge request",
    ReviewVerdict.DISMISSED: "unapproved this merge request",
    ReviewVerdict.CHANGES_REQUESTED: "requested changes",
}


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
    committers: set[str] = field(default_factory=set)
    pushes: list[tuple[str, datetime]] = field(default_factory=list)
    """Who pushed since it was opened, and when."""
    is_from_fork: bool = False
    merge_commit: str | None = None
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
class _Request:
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any]
    login: str
    """Of the account that asks."""


class _NotFoundError(Exception):
    pass


class FakeForge:
    """A server, while the ``with`` block lasts. Its clock moves on by a second with each act."""

    def __init__(self, *, page: int = 100) -> None:
        self.page = page
        """The most entries of a page, whatever a request asks for."""
        self.pulls: dict[int, FakePullRequest] = {}
        self.checks: dict[str, dict[str, FakeCheck]] = {}
        """By commit and name."""
        self.teams: dict[str, set[str]] = {}
        self.refusals: list[tuple[int, Mapping[str, str]]] = []
        """Status and headers of the answers to the next requests, instead of true ones."""
        self.refusal: object = {"message": "refused by the test"}
        """The body of each of them."""
        self.answers: list[bytes] = []
        """The bodies of the next answers, instead of true ones."""
        self.refused: dict[str, int] = {}
        """The status of each request whose ``GET /path`` the pattern is found in."""
        self.zone: timedelta | None = timedelta(0)
        """Of the times in its answers; None: they name no zone."""
        self.delay_s = 0.0
        """How long each answer takes."""
        self.requests: list[str] = []
        """``GET /repos/…`` of each request, in order."""
        self.tokens: set[str] = set()
        """Those that came with the requests."""
        self.logins = {TOKEN: BOT, PERSONAL_TOKEN: PERSON}
        """The account of each token that is valid."""
        self._now = datetime.now(UTC).replace(microsecond=0)
        self._ids = 100
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    # ---- what people do ----

    def now(self) -> datetime:
        """The forge's clock; each look moves it on."""
        with self._lock:
            self._now = max(self._now + timedelta(seconds=1), datetime.now(UTC).replace(microsecond=0))
            return self._now

    def open(self, head: str, files: Sequence[str] = (), *, author: str = "bob", fork: bool = False) -> FakePullRequest:
        with self._lock:
            number = len(self.pulls) + 1
            pull = FakePullRequest(number=number, author=author, head=head, files=set(files), is_from_fork=fork)
            self.pulls[number] = pull
            return pull

    def push(self, number: int, head: str, files: Sequence[str] = (), *, committer: str = "") -> None:
        with self._lock:
            self.pulls[number].head = head
            self.pulls[number].files |= set(files)
            self.pulls[number].committers |= {committer} - {""}
            self.pulls[number].pushes.append((committer or self.pulls[number].author, self.now()))

    def close(self, number: int) -> None:
        with self._lock:
            self.pulls[number].is_closed = True

    def review(self, number: int, reviewer: str, verdict: ReviewVerdict = ReviewVerdict.APPROVED) -> None:
        """``DISMISSED`` ends what the reviewer said before, whoever dismisses it."""
        with self._lock:
            review = Review(reviewer=reviewer, verdict=verdict, submitted_at=self.now())
            self.pulls[number].reviews.append(review)

    def merge(self, number: int, commit: str, *, method: MergeMethod = "merge") -> None:
        """``commit`` is the one on the base branch; a fast-forward makes it the newest of the branch too."""
        with self._lock:
            pull = self.pulls[number]
            pull.merge_commit, pull.merge_method = commit, method
            if method == "fast-forward":
                pull.head = commit

    def limit(self, times: int, *, retry_after_s: int = 0) -> None:
        """The next requests are too many."""
        self.refusals += [(429, {"Retry-After": str(retry_after_s)})] * times

    def comment(self, number: int, author: str, body: str) -> FakeComment:
        """A comment of a person, or of the bot."""
        with self._lock:
            at = self.now()
            comment = FakeComment(id=self._next_id(), author=author, body=body, created_at=at, updated_at=at)
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

    # ---- the server ----

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        forge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                """Nothing: tests look at ``requests``."""

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                time.sleep(forge.delay_s)
                status, headers, answer = forge._answered(self.command, self.path, dict(self.headers.items()), text)
                content = b"" if answer is None else json.dumps(answer).encode()
                content = forge.answers.pop(0) if forge.answers else content
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815 - http.server looks for these names

        return Handler

    def _answered(
        self, method: str, target: str, headers: Mapping[str, str], text: bytes
    ) -> tuple[int, Mapping[str, str], Any]:
        with self._lock:
            place = urlsplit(target)
            self.requests.append(f"{method} {target}")
            token = headers.get("Private-Token", headers.get("PRIVATE-TOKEN", ""))
            token = token or headers.get("Authorization", "").removeprefix("Bearer ")
            self.tokens.add(token)
            if self.refusals:
                status, more = self.refusals.pop(0)
                return status, more, self.refusal
            for pattern, status in self.refused.items():
                if re.search(pattern, f"{method} {target}"):
                    return status, {}, self.refusal
            if token not in self.logins:
                return 401, {}, {"message": "Bad credentials"}
            query = {name: values[-1] for name, values in parse_qs(place.query).items()}
            body = json.loads(text) if text else {}
            request = _Request(method, place.path, query, body, self.logins[token])
            try:
                status, answer = self._route(request)
            except (_NotFoundError, KeyError):
                return 404, {}, {"message": "Not Found"}
            if method == "GET" and isinstance(answer, list):
                return self._paged(request, answer)
            return status, {}, answer

    def _paged(self, request: _Request, entries: list[Any]) -> tuple[int, Mapping[str, str], Any]:
        size = min(self.page, int(request.query.get("per_page", "30")))
        number = int(request.query.get("page", "1"))
        shown = entries[(number - 1) * size : number * size]
        headers = {}
        is_gitlab = request.path.startswith(("/projects/", "/groups/"))
        if is_gitlab:
            headers["X-Next-Page"] = str(number + 1) if number * size < len(entries) else ""
        if number * size < len(entries):
            query = "&".join(f"{name}={value}" for name, value in {**request.query, "page": number + 1}.items())
            headers["Link"] = f'<{self.url}{request.path}?{query}>; rel="next"'
        return 200, headers, shown

    def _route(self, request: _Request) -> tuple[int, Any]:
        for pattern, methods in self._routes():
            if match := re.fullmatch(pattern, request.path):
                if request.method not in methods:
                    return 405, {"message": "Method Not Allowed"}
                return methods[request.method](request, *map(unquote, match.groups()))
        raise _NotFoundError

    def _routes(self) -> Iterator[tuple[str, Mapping[str, Callable[..., tuple[int, Any]]]]]:
        repo, project = f"/repos/{re.escape(REPOSITORY)}", "/projects/acme%2Ftopics"
        yield f"{repo}/pulls", {"GET": self._github_pulls}
        yield rf"{repo}/pulls/(\d+)", {"GET": lambda _, n: (200, self._github_whole_pull(self._pull(n)))}
        yield rf"{repo}/pulls/(\d+)/files", {"GET": self._github_files}
        yield rf"{repo}/pulls/(\d+)/commits", {"GET": self._github_commits}
        yield rf"{repo}/pulls/(\d+)/reviews", {"GET": self._github_reviews}
        yield rf"{repo}/commits/(\w+)/pulls", {"GET": self._github_pulls_of}
        yield rf"{repo}/commits/(\w+)/check-runs", {"GET": self._github_checks}
        yield rf"{repo}/check-runs", {"POST": self._github_add_check}
        yield rf"{repo}/check-runs/(\d+)", {"PATCH": self._github_edit_check}
        yield rf"{repo}/issues/(\d+)/comments", {"GET": self._github_comments, "POST": self._github_add_comment}
        yield rf"{repo}/issues/comments/(\d+)", {"PATCH": self._github_edit_comment, "DELETE": self._remove_comment}
        yield rf"{repo}/issues/(\d+)/labels", {"POST": self._github_add_labels}
        yield rf"{repo}/issues/(\d+)/labels/(.+)", {"DELETE": self._github_remove_label}
        yield r"/orgs/([^/]+)/teams/([^/]+)/members", {"GET": self._github_members}
        yield "/user", {"GET": lambda request: (200, _gitlab_user(request.login))}
        yield "/graphql", {"POST": self._gitlab_committers}
        yield f"{project}/merge_requests", {"GET": self._gitlab_requests}
        yield (
            rf"{project}/merge_requests/(\d+)",
            {
                "GET": lambda _, n: (200, self._gitlab_request(self._pull(n))),
                "PUT": self._gitlab_labels,
            },
        )
        yield rf"{project}/merge_requests/(\d+)/approvals", {"GET": self._gitlab_approvals}
        yield rf"{project}/merge_requests/(\d+)/diffs", {"GET": self._gitlab_diffs}
        yield rf"{project}/merge_requests/(\d+)/notes", {"GET": self._gitlab_notes, "POST": self._gitlab_add_note}
        yield (
            rf"{project}/merge_requests/\d+/notes/(\d+)",
            {
                "PUT": self._gitlab_edit_note,
                "DELETE": self._remove_comment,
            },
        )
        yield rf"{project}/repository/commits/(\w+)/merge_requests", {"GET": self._gitlab_requests_of}
        yield rf"{project}/statuses/(\w+)", {"POST": self._gitlab_status}
        yield r"/groups/([^/]+)/members/all", {"GET": self._gitlab_members}

    def _pull(self, number: str) -> FakePullRequest:
        return self.pulls[int(number)]

    def _comment_of(self, comment_id: str) -> tuple[FakePullRequest, FakeComment]:
        for pull in self.pulls.values():
            for comment in pull.comments:
                if comment.id == int(comment_id):
                    return pull, comment
        raise _NotFoundError

    def _edited(self, comment_id: str, body: str) -> FakeComment:
        _, comment = self._comment_of(comment_id)
        comment.body, comment.updated_at = body, self.now()
        return comment

    def _remove_comment(self, _: _Request, comment_id: str) -> tuple[int, Any]:
        pull, comment = self._comment_of(comment_id)
        pull.comments.remove(comment)
        return 204, None

    def _text(self, at: datetime) -> str:
        if not self.zone:
            return f"{at:%Y-%m-%dT%H:%M:%S}{'' if self.zone is None else 'Z'}"
        return at.astimezone(timezone(self.zone)).isoformat(timespec="milliseconds")

    # ---- GitHub ----

    def _github_pulls(self, request: _Request) -> tuple[int, Any]:
        base = request.query.get("base")
        found = [p for p in self.pulls.values() if _is_open(p) and base in (None, p.base)]
        return 200, [self._github_pull(pull) for pull in sorted(found, key=lambda pull: -pull.number)]

    def _github_pulls_of(self, _: _Request, commit: str) -> tuple[int, Any]:
        return 200, [self._github_pull(p) for p in self.pulls.values() if commit in (p.merge_commit, p.head)]

    def _github_pull(self, pull: FakePullRequest) -> dict[str, Any]:
        head_repository = f"{pull.author}/topics" if pull.is_from_fork else REPOSITORY
        return {
            "number": pull.number,
            "html_url": f"{self.url}/{REPOSITORY}/pull/{pull.number}",
            "title": pull.title,
            "state": "open" if _is_open(pull) else "closed",
            "user": _github_user(pull.author),
            "head": {"ref": "change", "sha": pull.head, "repo": {"full_name": head_repository}},
            "base": {"ref": pull.base, "sha": "0" * 40, "repo": {"full_name": REPOSITORY}},
            "merged_at": self._text(self._now) if pull.merge_commit else None,
            # Of an open one this is the trial merge.
            "merge_commit_sha": pull.merge_commit or "f" * 40,
            "labels": [{"id": 1, "name": label} for label in sorted(pull.labels)],
        }

    def _github_files(self, _: _Request, number: str) -> tuple[int, Any]:
        pull = self._pull(number)
        files: list[dict[str, Any]] = [{"filename": name, "status": "modified"} for name in sorted(pull.files)]
        for new, old in pull.renamed.items():
            files.append({"filename": new, "status": "renamed", "previous_filename": old})
        return 200, files

    def _github_whole_pull(self, pull: FakePullRequest) -> dict[str, Any]:
        return {**self._github_pull(pull), "commits": len(self._commits_of(pull))}

    def _github_commits(self, _: _Request, number: str) -> tuple[int, Any]:
        return 200, self._commits_of(self._pull(number))[:250]

    def _commits_of(self, pull: FakePullRequest) -> list[dict[str, Any]]:
        """One of each committer, and two that no account has the address of."""
        people: list[Any] = [_github_user(person) for person in sorted({pull.author, *pull.committers})]
        commits = [{"sha": pull.head, "author": user, "committer": _github_user("web-flow")} for user in people]
        nobody: list[dict[str, Any]] = [
            {"sha": pull.head, "author": None, "committer": None},
            {"sha": pull.head, "author": {}, "committer": {}},
        ]
        return [*commits, *nobody]

    def _github_reviews(self, _: _Request, number: str) -> tuple[int, Any]:
        """A dismissal is no entry here: it changes the review that it ends."""
        shown: list[Review] = []
        for review in self._pull(number).reviews:
            if review.verdict is ReviewVerdict.DISMISSED:
                ended = [index for index, earlier in enumerate(shown) if earlier.reviewer == review.reviewer][-1:]
                for index in ended:
                    shown[index] = replace(shown[index], verdict=ReviewVerdict.DISMISSED)
            else:
                shown.append(review)
        found = [
            {
                "id": index,
                "user": _github_user(review.reviewer),
                "state": _STATES[review.verdict],
                "submitted_at": self._text(review.submitted_at),
                "commit_id": self._pull(number).head,
            }
            for index, review in enumerate(shown, 1)
        ]
        return 200, [*found, {"id": 0, "user": None, "state": "PENDING", "commit_id": None}]

    def _github_comments(self, _: _Request, number: str) -> tuple[int, Any]:
        return 200, [self._github_comment_shown(comment) for comment in self._pull(number).comments]

    def _github_add_comment(self, request: _Request, number: str) -> tuple[int, Any]:
        self._pull(number)
        if len(request.body["body"]) > 65_536:
            return 422, {"message": "Validation Failed"}
        return 201, self._github_comment_shown(self.comment(int(number), request.login, request.body["body"]))

    def _github_edit_comment(self, request: _Request, comment_id: str) -> tuple[int, Any]:
        return 200, self._github_comment_shown(self._edited(comment_id, request.body["body"]))

    def _github_checks(self, request: _Request, commit: str) -> tuple[int, Any]:
        found = [c for c in self.checks.get(commit, {}).values() if request.query.get("check_name") in (None, c.name)]
        return 200, {"total_count": len(found), "check_runs": [_github_check(check) for check in found]}

    def _github_add_check(self, request: _Request) -> tuple[int, Any]:
        if not request.login.endswith("[bot]"):
            return 403, {"message": "You must authenticate via a GitHub App."}
        return 201, self._kept_check(request, request.body["head_sha"], self._next_id())

    def _github_edit_check(self, request: _Request, check_id: str) -> tuple[int, Any]:
        commit, there = next((c, k) for c, kept in self.checks.items() for k in kept.values() if k.id == int(check_id))
        if there.app != request.login.removesuffix("[bot]"):
            return 403, {"message": "Resource not accessible by integration"}
        return 200, self._kept_check(request, commit, int(check_id))

    def _kept_check(self, request: _Request, commit: str, check_id: int) -> dict[str, Any]:
        body, output = request.body, request.body["output"]
        check = FakeCheck(
            id=check_id,
            name=body["name"],
            result=body["conclusion"],
            title=output["title"],
            summary=output["summary"],
            url=body.get("details_url", ""),
            app=request.login.removesuffix("[bot]"),
            external_id=body.get("external_id", ""),
        )
        self.checks.setdefault(commit, {})[check.name] = check
        return _github_check(check)

    def _github_add_labels(self, request: _Request, number: str) -> tuple[int, Any]:
        self._pull(number).labels |= set(request.body["labels"])
        return 200, [{"id": 1, "name": label} for label in sorted(self._pull(number).labels)]

    def _github_remove_label(self, _: _Request, number: str, label: str) -> tuple[int, Any]:
        self._pull(number).labels.remove(label)
        return 200, []

    def _github_members(self, _: _Request, organisation: str, team: str) -> tuple[int, Any]:
        return 200, [_github_user(login) for login in sorted(self.teams[f"{organisation}/{team}"])]

    def _github_comment_shown(self, comment: FakeComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "user": _github_user(comment.author),
            "body": comment.body,
            "created_at": self._text(comment.created_at),
            "updated_at": self._text(comment.updated_at),
        }

    # ---- GitLab ----

    def _gitlab_requests(self, request: _Request) -> tuple[int, Any]:
        branch = request.query.get("target_branch")
        found = [p for p in self.pulls.values() if _is_open(p) and branch in (None, p.base)]
        return 200, [self._gitlab_request(pull) for pull in found]

    def _gitlab_requests_of(self, _: _Request, commit: str) -> tuple[int, Any]:
        return 200, [self._gitlab_request(p) for p in self.pulls.values() if commit in (p.merge_commit, p.head)]

    def _gitlab_request(self, pull: FakePullRequest) -> dict[str, Any]:
        return {
            "id": pull.number + 1000,
            "iid": pull.number,
            "web_url": f"{self.url}/{REPOSITORY}/-/merge_requests/{pull.number}",
            "title": pull.title,
            "state": "merged" if pull.merge_commit else "closed" if pull.is_closed else "opened",
            "target_branch": pull.base,
            "source_project_id": 8 if pull.is_from_fork else 7,
            "target_project_id": 7,
            "sha": pull.head,
            "author": _gitlab_user(pull.author),
            "merge_commit_sha": pull.merge_commit if pull.merge_method == "merge" else None,
            "squash_commit_sha": pull.merge_commit if pull.merge_method == "squash" else None,
            "labels": sorted(pull.labels),
            "references": {
                "short": f"!{pull.number}",
                "relative": f"!{pull.number}",
                "full": f"{REPOSITORY}!{pull.number}",
            },
        }

    def _gitlab_approvals(self, _: _Request, number: str) -> tuple[int, Any]:
        approvers = self._pull(number).approvers.items()
        return 200, {
            "approved_by": [{"user": _gitlab_user(who), "approved_at": self._text(at)} for who, at in approvers]
        }

    def _gitlab_committers(self, request: _Request) -> tuple[int, Any]:
        """The one question of GraphQL that it knows."""
        asked = request.body["variables"]
        pull = self.pulls.get(int(asked["number"])) if asked["project"] == REPOSITORY else None
        if "committers" not in request.body["query"] or pull is None:
            return 200, {"data": {"project": None}}
        people = [{"username": login} for login in sorted(pull.committers)]
        connection = {"nodes": people, "pageInfo": {"hasNextPage": False}}
        return 200, {"data": {"project": {"mergeRequest": {"committers": connection}}}}

    def _gitlab_labels(self, request: _Request, number: str) -> tuple[int, Any]:
        pull = self._pull(number)
        pull.labels |= set(filter(None, request.body.get("add_labels", "").split(",")))
        pull.labels -= set(request.body.get("remove_labels", "").split(","))
        return 200, self._gitlab_request(pull)

    def _gitlab_diffs(self, _: _Request, number: str) -> tuple[int, Any]:
        pull = self._pull(number)
        pairs = [(name, name) for name in sorted(pull.files)] + [(old, new) for new, old in pull.renamed.items()]
        return 200, [{"old_path": old, "new_path": new, "renamed_file": old != new} for old, new in pairs]

    def _gitlab_notes(self, _: _Request, number: str) -> tuple[int, Any]:
        pull = self._pull(number)
        notes = [self._gitlab_note(comment) for comment in pull.comments]
        notes += [
            self._system_note(self._next_id(), review.reviewer, _GITLAB_NOTES[review.verdict], review.submitted_at)
            for review in pull.reviews
            if review.verdict in _GITLAB_NOTES
        ]
        notes += [self._system_note(self._next_id(), p, "added 1 commit", at) for p, at in pull.pushes]
        return 200, sorted(notes, key=lambda note: str(note["created_at"]))

    def _gitlab_add_note(self, request: _Request, number: str) -> tuple[int, Any]:
        self._pull(number)
        return 201, self._gitlab_note(self.comment(int(number), request.login, request.body["body"]))

    def _gitlab_edit_note(self, request: _Request, comment_id: str) -> tuple[int, Any]:
        return 200, self._gitlab_note(self._edited(comment_id, request.body["body"]))

    def _gitlab_status(self, request: _Request, commit: str) -> tuple[int, Any]:
        body = request.body
        if len(body["description"]) > 255:
            return 400, {"message": {"description": ["is too long (maximum is 255 characters)"]}}
        check = FakeCheck(
            id=self._next_id(),
            name=body["name"],
            result=body["state"],
            title=body["description"],
            url=body.get("target_url", ""),
        )
        self.checks.setdefault(commit, {})[check.name] = check
        shown = {"id": check.id, "sha": commit, "status": check.result, "name": check.name}
        return 201, {**shown, "description": check.title}

    def _gitlab_members(self, _: _Request, group: str) -> tuple[int, Any]:
        return 200, [_gitlab_user(login) for login in sorted(self.teams[group])]

    def _gitlab_note(self, comment: FakeComment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "body": comment.body,
            "author": _gitlab_user(comment.author),
            "created_at": self._text(comment.created_at),
            "updated_at": self._text(comment.updated_at),
            "system": False,
        }

    def _system_note(self, note_id: int, author: str, body: str, at: datetime) -> dict[str, Any]:
        return {
            "id": note_id,
            "body": body,
            "author": _gitlab_user(author),
            "created_at": self._text(at),
            "updated_at": self._text(at),
            "system": True,
        }


def _is_open(pull: FakePullRequest) -> bool:
    return pull.merge_commit is None and not pull.is_closed


def _github_user(login: str) -> dict[str, Any]:
    return {"login": login, "id": 1, "type": "Bot" if login.endswith("[bot]") else "User"}


def _github_check(check: FakeCheck) -> dict[str, Any]:
    app = {"id": 15368, "slug": check.app, "name": check.app}
    return {"id": check.id, "name": check.name, "external_id": check.external_id, "app": app}


def _gitlab_user(login: str) -> dict[str, Any]:
    return {"id": 1, "username": login, "name": login, "state": "active"}
