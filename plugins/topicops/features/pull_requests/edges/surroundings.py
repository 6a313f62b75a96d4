"""What the options of a command, else the variables of GitHub Actions and of GitLab CI, say about the pull request.

The event file of GitHub holds text that strangers wrote, so each value is checked before it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from topicops.features.pull_requests.edges.git_trees import COMMIT
from topicops.features.pull_requests.edges.github import ACTIONS, GitHub
from topicops.features.pull_requests.edges.gitlab import GitLab
from topicops.model.choices import ForgeKind
from topicops.model.errors import UsageError
from topicops.model.printable import printable

Forge = GitHub | GitLab
TOKEN, LOGIN, JOB_TOKEN = "TOPICOPS_FORGE_TOKEN", "TOPICOPS_FORGE_USER", "GITHUB_TOKEN"
MERGE_REQUEST = "TOPICOPS_MERGE_REQUEST"
"""Names a merge request to a GitLab pipeline of another branch."""
_ON_GITHUB = re.compile(r"(?!\.+/)[\w.-]+/(?!\.+$)[\w.-]+", re.ASCII)
_ON_GITLAB = re.compile(r"(?!\.+/)[\w.-]+(/(?!\.+(?:/|$))[\w.-]+)+|\d+", re.ASCII)
_REPOSITORY: Mapping[ForgeKind, re.Pattern[str]] = {"github": _ON_GITHUB, "gitlab": _ON_GITLAB}
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_URL = re.compile(r"https?://[\w.:\[\]-]+(/[!-~]*)?", re.ASCII)
_TOKEN = re.compile(r"[!-~]+")
_GITHUB = "https://api.github.com"
_NO_COMMIT = "0" * 40
"""Id that both forges give to the commit before the first one."""
_NO_REPOSITORY = "the CI names the repository {}, which is no organisation/name"
_NO_NUMBER = "{} is no number of a pull request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of this job. None and empty text mean that the CI does not say."""

    kind: ForgeKind
    api_url: str
    repository: str = ""
    number: int | None = None
    base_commit: str | None = None
    """Commit of the branch that a pull request goes to; after a merge the commit before it."""
    head_commit: str | None = None
    """Newest commit of a pull request; after a merge the merge commit."""
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


def surroundings_of(variables: Mapping[str, str]) -> Surroundings:
    """Read the variables of either CI, else suppose GitHub. Raises ``UsageError`` for values that no CI writes."""
    if variables.get("GITHUB_ACTIONS") == "true":
        return _on_github(variables)
    if variables.get("GITLAB_CI") == "true":
        return _on_gitlab(variables)
    return Surroundings(kind="github", api_url=variables.get("GITHUB_API_URL") or _GITHUB)


def _on_github(variables: Mapping[str, str]) -> Surroundings:
    path, event = variables.get("GITHUB_EVENT_PATH", ""), _Event()
    try:
        event = msgspec.json.decode(Path(path).read_bytes(), type=_Event) if path else event
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH: the event of this run cannot be read: {error}") from error
    pull, repository = event.pull_request, variables.get("GITHUB_REPOSITORY", "")
    # Of a pull request, the commit of the job is a trial merge.
    head = pull.head.sha if pull else variables.get("GITHUB_SHA", "")
    url = variables.get("GITHUB_API_URL") or _GITHUB
    server, run = variables.get("GITHUB_SERVER_URL", ""), variables.get("GITHUB_RUN_ID", "")
    return Surroundings(
        kind="github",
        api_url=_checked(url, _URL, "GITHUB_API_URL: {} is no address of an API"),
        repository=_checked(repository, _REPOSITORY["github"], _NO_REPOSITORY),
        number=int(_checked(str(pull.number), _NUMBER, _NO_NUMBER)) if pull else None,
        base_commit=_commit(pull.base.sha if pull else event.before),
        head_commit=_commit(head),
        job_url=f"{server}/{repository}/actions/runs/{run}" if server and run.isdecimal() else "",
    )


def _on_gitlab(variables: Mapping[str, str]) -> Surroundings:
    number = variables.get("CI_MERGE_REQUEST_IID") or variables.get(MERGE_REQUEST)
    url = variables.get("CI_API_V4_URL") or "https://gitlab.com/api/v4"
    repository = variables.get("CI_PROJECT_PATH") or variables.get("CI_PROJECT_ID") or ""
    is_request = "CI_MERGE_REQUEST_IID" in variables
    head = variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or variables.get("CI_COMMIT_SHA", "")
    before = variables.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") if is_request else variables.get("CI_COMMIT_BEFORE_SHA")
    return Surroundings(
        kind="gitlab",
        api_url=_checked(url, _URL, "CI_API_V4_URL: {} is no address of an API"),
        repository=_checked(repository, _REPOSITORY["gitlab"], _NO_REPOSITORY),
        number=int(_checked(number, _NUMBER, _NO_NUMBER)) if number else None,
        base_commit=_commit(before or ""),
        head_commit=_commit(head),
        job_url=variables.get("CI_JOB_URL", ""),
    )


def _commit(text: str) -> str | None:
    has_none = not text or text == _NO_COMMIT
    return None if has_none else _checked(text, COMMIT, "the CI names the commit {}, which is none")


def _checked(text: str, form: re.Pattern[str], problem: str) -> str:
    """Give the text back. Raises ``UsageError`` where it has another form."""
    if not form.fullmatch(text):
        raise UsageError(problem.format(f"'{printable(text)[:80]}'"))
    return text


def surroundings_about(repository: str | None) -> Surroundings:
    """Give those of the job, with this repository where one is named. Raises ``UsageError`` where there is neither."""
    found = surroundings_of(os.environ)
    if not (found.repository or repository):
        raise UsageError("this is no job of GitHub Actions or GitLab CI: give --repository organisation/name")
    return replace(found, repository=repository or found.repository)


def open_forge(surroundings: Surroundings, variables: Mapping[str, str]) -> Forge:
    """Open the forge of this job. Raises ``UsageError`` for a token that is missing, damaged or of no known account.

    On GitHub ``GITHUB_TOKEN`` does everything where it is there, and the other token reads the members of teams alone:
    so that one needs no other right.
    """
    url, kind = surroundings.api_url, surroundings.kind
    no_repository = "{} is no repository: give --repository organisation/name"
    repository = _checked(surroundings.repository, _REPOSITORY[kind], no_repository)
    own, login, of_the_job = _token(TOKEN, variables), variables.get(LOGIN, ""), _token(JOB_TOKEN, variables)
    if kind == "gitlab":
        if not own:
            raise UsageError(f"{TOKEN} is not set: the token of an account that may write notes and statuses")
        return GitLab(url, repository, own, login=login)
    if of_the_job:
        return GitHub(url, repository, of_the_job, login=login or ACTIONS, members_token=own)
    if not own:
        tokens = f"{TOKEN} or {JOB_TOKEN}"
        raise UsageError(f"{tokens} is not set: the token of an account that may write comments and checks")
    if not login:
        raise UsageError(f"{LOGIN} is not set: the login of the account that {TOKEN} belongs to, to find its comments")
    return GitHub(url, repository, own, login=login)


def _token(name: str, variables: Mapping[str, str]) -> str:
    token = variables.get(name, "").strip()
    if token and not _TOKEN.fullmatch(token):
        raise UsageError(f"{name} has characters that no token has, such as blanks or line ends; copy it again")
    return token
