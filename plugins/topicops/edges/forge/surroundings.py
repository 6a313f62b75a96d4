"""What the variables of GitHub Actions and of GitLab CI say about the pull request of this job.

The event file of GitHub holds text that strangers wrote, so each value is checked before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from topicops.edges.forge.github import GitHub
from topicops.edges.forge.gitlab import GitLab
from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.model.pull_requests.forge import Forge

TOKEN, LOGIN = "TOPICOPS_FORGE_TOKEN", "TOPICOPS_FORGE_USER"
MERGE_REQUEST = "TOPICOPS_MERGE_REQUEST"
"""Names a merge request to a GitLab pipeline of another branch."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)+|\d+", re.ASCII)
_TOKEN = re.compile(r"[!-~]+")
_NO_COMMIT = "0" * 40
"""What both forges call the commit before the first one."""

ForgeKind = Literal["github", "gitlab"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Of this job. None and empty text: the CI does not say."""

    kind: ForgeKind
    api_url: str
    repository: str
    number: int | None = None
    base_commit: str | None = None
    """Of a pull request the branch that it goes to; after a merge the commit before it."""
    head_commit: str | None = None
    """Of a pull request its newest commit; after a merge the merge commit."""
    job_url: str = ""


class _Commit(msgspec.Struct):
    sha: str = ""


class _Pull(msgspec.Struct):
    number: int
    head: _Commit
    base: _Commit


class _Event(msgspec.Struct):
    pull_request: _Pull | None = None
    before: str = ""


def surroundings_of(variables: Mapping[str, str]) -> Surroundings | None:
    """None outside of both CIs. Raises ``UsageError`` for values that no CI writes."""
    if variables.get("GITHUB_ACTIONS") == "true":
        return _on_github(variables)
    if variables.get("GITLAB_CI") == "true":
        return _on_gitlab(variables)
    return None


def _on_github(variables: Mapping[str, str]) -> Surroundings:
    event = _event(variables.get("GITHUB_EVENT_PATH", ""))
    pull, repository = event.pull_request, variables.get("GITHUB_REPOSITORY", "")
    server, run = variables.get("GITHUB_SERVER_URL", ""), variables.get("GITHUB_RUN_ID", "")
    return Surroundings(
        kind="github",
        api_url=variables.get("GITHUB_API_URL") or "https://api.github.com",
        repository=_repository(repository),
        number=pull.number if pull else None,
        base_commit=_commit(pull.base.sha if pull else event.before),
        head_commit=_commit(pull.head.sha if pull else variables.get("GITHUB_SHA", "")),
        job_url=f"{server}/{repository}/actions/runs/{run}" if server and run.isdecimal() else "",
    )


def _event(path: str) -> _Event:
    if not path:
        return _Event()
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=_Event)
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH: the event of this run cannot be read: {error}") from error


def _on_gitlab(variables: Mapping[str, str]) -> Surroundings:
    number = variables.get("CI_MERGE_REQUEST_IID") or variables.get(MERGE_REQUEST) or ""
    is_request = "CI_MERGE_REQUEST_IID" in variables
    head = variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or variables.get("CI_COMMIT_SHA", "")
    before = variables.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") if is_request else variables.get("CI_COMMIT_BEFORE_SHA")
    return Surroundings(
        kind="gitlab",
        api_url=variables.get("CI_API_V4_URL") or "https://gitlab.com/api/v4",
        repository=_repository(variables.get("CI_PROJECT_PATH") or variables.get("CI_PROJECT_ID") or ""),
        number=_number(number) if number else None,
        base_commit=_commit(before or ""),
        head_commit=_commit(head),
        job_url=variables.get("CI_JOB_URL", ""),
    )


def _commit(text: str) -> str | None:
    if not text or text == _NO_COMMIT:
        return None
    if not _COMMIT.fullmatch(text):
        raise UsageError(f"the CI names the commit {printable(text)[:80]!r}, which is none")
    return text


def _repository(text: str) -> str:
    if not _REPOSITORY.fullmatch(text):
        raise UsageError(f"the CI names the repository {printable(text)[:80]!r}, which is no organisation/name")
    return text


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"{printable(text)[:80]!r} is no number of a merge request")
    return int(text)


def open_forge(surroundings: Surroundings, variables: Mapping[str, str]) -> Forge:
    """The forge of this job. Raises ``UsageError`` if there is no token, or one that no header can carry."""
    token = (variables.get(TOKEN) or "").strip()
    is_own = bool(token)
    if not token and surroundings.kind == "github":
        token = (variables.get("GITHUB_TOKEN") or "").strip()
    if not token:
        also = " or GITHUB_TOKEN" if surroundings.kind == "github" else ""
        raise UsageError(f"{TOKEN}{also} is not set: the token of an account that may write comments and checks")
    if not _TOKEN.fullmatch(token):
        raise UsageError(f"{TOKEN} has characters that no token has, such as blanks or line ends; copy it again")
    if surroundings.kind == "gitlab":
        return GitLab(surroundings.api_url, surroundings.repository, token)
    login = variables.get(LOGIN) or "github-actions[bot]"
    if is_own and not variables.get(LOGIN):
        raise UsageError(f"{LOGIN} is not set: the login of the account that {TOKEN} belongs to, to find its comments")
    return GitHub(surroundings.api_url, surroundings.repository, token, login=login)
