"""GitHub's REST API (version 2022-11-28), as far as pull requests of topics need it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import quote

import msgspec

from topicops.features.pull_requests.edges import forge
from topicops.features.pull_requests.edges.rest import PER_PAGE, Moment, Rest, checked_length, utc

MOST_COMMENT = 65_536
"""Number of characters of a comment."""
_MOST_SUMMARY = 65_000
_CO_AUTHOR = re.compile(
    r"^co-authored-by:[^<>\n]{0,200}<(?:\d{1,20}\+)?([A-Za-z0-9-]{1,40})@users\.noreply\.github\.com>",
    re.IGNORECASE | re.MULTILINE,
)
MOST_COMMITS = 250
"""Number of commits of one pull request that GitHub lists."""
ACTIONS = "github-actions[bot]"
"""The account of ``GITHUB_TOKEN``."""
WEB_FLOW = "web-flow"
"""The committer of what people do on GitHub's pages."""
_OURS = "topicops"
"""Marks our check runs: a job of the workflow is a check run too, and may have the same name."""
_VERDICTS = {verdict.upper(): verdict for verdict in forge.ReviewVerdict}
"""Verdicts by GitHub's words. ``PENDING`` is a review that its author has not sent."""


class _User(msgspec.Struct):
    login: str


class _Repository(msgspec.Struct):
    full_name: str


class _Branch(msgspec.Struct):
    ref: str
    sha: str
    repo: _Repository | None = None
    """None means that the fork is gone."""


class _Label(msgspec.Struct):
    name: str = ""


class _Pull(msgspec.Struct):
    number: int
    html_url: str
    state: str
    head: _Branch
    base: _Branch
    user: _User | None = None
    merged_at: Moment | None = None
    merge_commit_sha: str | None = None
    labels: list[_Label] = []


class _WholePull(_Pull):
    """As it is asked for alone."""

    commits: int = 0


class _IssueComment(msgspec.Struct):
    id: int
    updated_at: Moment
    body: str | None = None
    user: _User | None = None


class _Review(msgspec.Struct):
    state: str
    user: _User | None = None
    submitted_at: Moment | None = None
    commit_id: str | None = None


class _File(msgspec.Struct):
    filename: str
    previous_filename: str | None = None


class _Person(msgspec.Struct):
    """Whose address a commit has. Without an account GitHub gives null, or an empty object."""

    login: str = ""


class _Message(msgspec.Struct, frozen=True):
    message: str = ""


class _Commit(msgspec.Struct):
    sha: str = ""
    commit: _Message = _Message()
    author: _Person | None = None
    committer: _Person | None = None

    @property
    def logins(self) -> tuple[str, str]:
        """Who wrote and who committed it; empty where no account has the address."""
        return (self.author.login if self.author else "", self.committer.login if self.committer else "")


class _App(msgspec.Struct):
    slug: str = ""


class _CheckRun(msgspec.Struct):
    id: int
    external_id: str | None = None
    app: _App | None = None


class _CheckRuns(msgspec.Struct):
    check_runs: list[_CheckRun]


class GitHub:
    """One repository on GitHub. Every request raises ``ForgeError`` when GitHub refuses it, or does not answer.

    Args:
        url: ``https://api.github.com``, or that of an Enterprise server.
        repository: ``acme/topics``.
        token: ``GITHUB_TOKEN``, or that of another app: GitHub lets nobody else write checks.
        login: The account of the token, whose comments are ours. ``GITHUB_TOKEN`` may not ask for its own name.
        members_token: May read the members of teams, as ``GITHUB_TOKEN`` may not. Empty: ``token`` reads them.
    """

    mark = "#"

    def __init__(
        self,
        url: str,
        repository: str,
        token: str,
        *,
        login: str = ACTIONS,
        members_token: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.repository, self._login = repository, login
        self._repo = f"/repos/{repository}"
        self._rest = _session(url, token, sleep)
        self._teams = _session(url, members_token, sleep) if members_token else self._rest

    def pull_request(self, number: int) -> forge.PullRequest:
        return _pull_request(self._rest.get(f"{self._repo}/pulls/{number}", _Pull))

    def pull_requests_with(self, commit: str) -> Iterator[forge.PullRequest]:
        """Find those that have this commit, on their branch or by their merge, open or not, into any branch."""
        return map(_pull_request, self._rest.pages(f"{self._repo}/commits/{commit}/pulls", _Pull))

    def open_pull_requests(self, base_branch: str) -> Sequence[forge.PullRequest]:
        """List them in rising order of their numbers."""
        found = self._rest.pages(f"{self._repo}/pulls", _Pull, state="open", base=base_branch)
        return sorted(map(_pull_request, found), key=lambda pull: pull.number)

    def changed_files(self, number: int) -> frozenset[str]:
        """List the paths from the repository's root, of a renamed file both; the first 3,000 that GitHub lists."""
        files = list(self._rest.pages(f"{self._repo}/pulls/{number}/files", _File))
        return frozenset(name for file in files for name in (file.filename, file.previous_filename) if name)

    def authors(self, number: int) -> forge.Authors:
        """Name the authors, and co-authors whose address names their account. Raises ``ForgeError`` if one may lack."""
        pull = self._rest.get(f"{self._repo}/pulls/{number}", _WholePull)
        commits = list(self._rest.pages(f"{self._repo}/pulls/{number}/commits", _Commit))
        if MOST_COMMITS <= len(commits) < pull.commits:
            has = f"#{number} has {pull.commits} commits, and GitHub lists {len(commits)}"
            raise forge.ForgeError(f"{has}: squash them, so that all their authors are known")
        people = {login for commit in commits for login in commit.logins}
        helpers = {login for commit in commits for login in _CO_AUTHOR.findall(commit.commit.message)}
        return forge.Authors(
            logins=frozenset({pull.user.login if pull.user else "", *people, *helpers} - {"", WEB_FLOW}),
            unknown_commit=next((commit.sha or "unknown" for commit in commits if "" in commit.logins), ""),
        )

    def own_comments(self, number: int) -> Sequence[forge.Comment]:
        """List those of the account that asks, oldest first. Anybody can write a marker into another comment."""
        found = self._rest.pages(f"{self._repo}/issues/{number}/comments", _IssueComment)
        own = self._login.casefold()
        return [_comment(comment) for comment in found if comment.user and comment.user.login.casefold() == own]

    def add_comment(self, number: int, body: str) -> forge.Comment:
        return self._write("POST", f"{number}/comments", body)

    def edit_comment(self, number: int, comment_id: str, body: str) -> forge.Comment:  # noqa: ARG002 - GitLab needs it
        return self._write("PATCH", f"comments/{comment_id}", body)

    def _write(self, method: str, path: str, body: str) -> forge.Comment:
        text = checked_length(body, MOST_COMMENT, "GitHub")
        return _comment(self._rest.send(method, f"{self._repo}/issues/{path}", _IssueComment, {"body": text}))

    def remove_comment(self, number: int, comment_id: str) -> None:  # noqa: ARG002
        self._rest.remove(f"{self._repo}/issues/comments/{comment_id}")

    def reviews(self, number: int) -> Sequence[forge.Review]:
        """List all of them, oldest first; a reviewer may have several."""
        return [
            forge.Review(
                reviewer=found.user.login,
                verdict=_VERDICTS[found.state],
                submitted_at=utc(found.submitted_at),
                commit=found.commit_id or "",
            )
            for found in self._rest.pages(f"{self._repo}/pulls/{number}/reviews", _Review)
            if found.user and found.submitted_at and found.state in _VERDICTS
        ]

    def members(self, team: str) -> frozenset[str]:
        """List the logins of a team (``acme/payments``). Raises ``ForgeError`` where the token may not read it."""
        organisation, _, slug = team.partition("/")
        path = f"/orgs/{quote(organisation, safe='')}/teams/{quote(slug, safe='')}/members"
        return frozenset(user.login for user in self._teams.pages(path, _User))

    def set_check(self, commit: str, check: forge.Check) -> None:
        is_pending = check.result is forge.CheckResult.PENDING
        body: dict[str, object] = {
            "name": check.name,
            "external_id": _OURS,
            "output": {"title": check.title, "summary": check.summary[:_MOST_SUMMARY] or check.title},
            **({"status": "in_progress"} if is_pending else {"status": "completed", "conclusion": str(check.result)}),
            **({"details_url": check.url} if check.url else {}),
        }
        path = f"{self._repo}/commits/{commit}/check-runs"
        found = self._rest.get(path, _CheckRuns, check_name=check.name, filter="latest", per_page=PER_PAGE).check_runs
        app = self._login.removesuffix("[bot]")
        if ours := [run.id for run in found if run.external_id == _OURS and run.app and run.app.slug == app]:
            self._rest.send("PATCH", f"{self._repo}/check-runs/{max(ours)}", _CheckRun, body)
        else:
            self._rest.send("POST", f"{self._repo}/check-runs", _CheckRun, {**body, "head_sha": commit})

    def set_labels(self, number: int, wanted: Mapping[str, bool]) -> None:
        """Add the labels that are true and remove those that are false; all others stay."""
        there = {label.name for label in self._rest.get(f"{self._repo}/pulls/{number}", _WholePull).labels}
        path = f"{self._repo}/issues/{number}/labels"
        if missing := [label for label, is_wanted in wanted.items() if is_wanted and label not in there]:
            self._rest.send("POST", path, list[_Label], {"labels": missing})
        for label in (label for label, is_wanted in wanted.items() if not is_wanted and label in there):
            self._rest.remove(f"{path}/{quote(label, safe='')}")


def _session(url: str, token: str, sleep: Callable[[float], None]) -> Rest:
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return Rest(url, {**headers, "Authorization": f"Bearer {token}"}, token=token, sleep=sleep)


def _pull_request(pull: _Pull) -> forge.PullRequest:
    return forge.PullRequest(
        number=pull.number,
        url=pull.html_url,
        author=pull.user.login if pull.user else "",
        state="merged" if pull.merged_at else "open" if pull.state == "open" else "closed",
        base_branch=pull.base.ref,
        head_commit=pull.head.sha,
        is_from_fork=pull.head.repo is None or pull.base.repo is None or pull.head.repo != pull.base.repo,
        # Before the merge the field holds a trial merge, which is on no branch.
        merge_commit=pull.merge_commit_sha if pull.merged_at else None,
    )


def _comment(comment: _IssueComment) -> forge.Comment:
    return forge.Comment(id=str(comment.id), body=comment.body or "", updated_at=utc(comment.updated_at))
