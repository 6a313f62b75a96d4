"""Which pull request, which commits, which forge and which Airflow a ``topicops ci`` command is about."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from topicops.edges.airflow_client import AirflowClient
from topicops.features.pull_requests.commenting import Conversation
from topicops.features.pull_requests.edges.surroundings import Surroundings, open_forge, surroundings_of
from topicops.features.pull_requests.triggering import Patience, Trigger
from topicops.model.errors import UsageError
from topicops.model.runs.review import REVIEW_KEY
from topicops.model.specs.topic_config import read_duration_ms
from topicops.steps.planning.signing import checked_key

AIRFLOW_URL, AIRFLOW_USER = "TOPICOPS_AIRFLOW_URL", "TOPICOPS_AIRFLOW_USER"
AIRFLOW_PASSWORD, AIRFLOW_TOKEN = "TOPICOPS_AIRFLOW_PASSWORD", "TOPICOPS_AIRFLOW_TOKEN"


AIRFLOW_PATIENCE_S = 60.0
"""How long Airflow may give no answer, as while its API server is started again, before a run is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two commits, and the pull request that they are of."""

    base: str
    head: str
    number: int | None


def change_to_plan(*, base: str | None, head: str | None, number: int | None) -> Change:
    """What the options say, else the CI; the base is the checkout's own commit, else.

    Raises:
        UsageError: Neither names the branch's commit.
    """
    found = surroundings_of(os.environ)
    head = head or (found.head_commit if found else None)
    if head is None:
        raise UsageError("name the branch's newest commit: --head; this is no job of GitHub Actions or GitLab CI")
    return Change(base=base or "HEAD", head=head, number=number or (found.number if found else None))


def merge_to_trigger(*, commit: str | None, before: str | None) -> Change:
    """As ``change_to_plan``, of a merge that is on the base branch."""
    found = surroundings_of(os.environ)
    commit = commit or (found.head_commit if found else None) or "HEAD"
    return Change(base=before or (found.base_commit if found else None) or f"{commit}^1", head=commit, number=None)


def base_of_the_branch() -> str:
    """The base's commit, as the CI names it. Raises ``UsageError`` where it does not."""
    found = surroundings_of(os.environ)
    if found is None or found.base_commit is None:
        raise UsageError("name what the branch began from, as in: --since origin/main")
    return found.base_commit


def default_format() -> Literal["text", "github"]:
    """Annotations where GitHub shows them."""
    return "github" if os.environ.get("GITHUB_ACTIONS") == "true" else "text"


def job_page() -> str:
    """Where people see this job; empty outside of a CI."""
    found = surroundings_of(os.environ)
    return found.job_url if found else ""


def conversation_about(number: int | None, repository: str | None, *, progress: Callable[[str], None]) -> Conversation:
    """The pull request that the command names, else the CI's.

    Raises:
        UsageError: Neither is known, or there is no token.
    """
    found = _surroundings(repository)
    number = number or found.number
    if number is None:
        raise UsageError("name the pull request: --number; the CI's variables do not")
    return Conversation(forge=open_forge(found, os.environ), number=number, key=_key(), progress=progress)


def trigger_of(
    topics: Path, repository: str | None, *, wait_commit: str, wait_run: str, progress: Callable[[str], None]
) -> Trigger:
    """Raises ``UsageError`` if forge or Airflow are not named."""
    return Trigger(
        topics=topics,
        airflow=_airflow(),
        forge=open_forge(_surroundings(repository), os.environ),
        key=_key(),
        patience=Patience(
            for_commit_s=_seconds(wait_commit, "--wait-commit"), for_run_s=_seconds(wait_run, "--wait-run")
        ),
        progress=progress,
    )


def _surroundings(repository: str | None) -> Surroundings:
    found = surroundings_of(os.environ)
    if found is None and repository is None:
        raise UsageError("this is no job of GitHub Actions or GitLab CI: give --repository organisation/name")
    if found is None:
        url = os.environ.get("GITHUB_API_URL") or "https://api.github.com"
        found = Surroundings(kind="github", api_url=url, repository=repository or "")
    return replace(found, repository=repository) if repository else found


def _key() -> bytes | None:
    return checked_key(os.environ.get(REVIEW_KEY))


class _Login(NamedTuple):
    user: str
    password: str
    token: str


def _airflow() -> AirflowClient:
    """Signed in. Raises ``UsageError`` for what is missing, ``AirflowError`` if it refuses."""
    url = os.environ.get(AIRFLOW_URL, "").strip()
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{AIRFLOW_URL} is not set: the address of Airflow's API server, https://airflow.example.com")
    login = _Login(*(os.environ.get(name, "").strip() for name in (AIRFLOW_USER, AIRFLOW_PASSWORD, AIRFLOW_TOKEN)))
    if not all(text.isascii() and text.isprintable() and " " not in text for text in (login.token, login.user)):
        raise UsageError(f"{AIRFLOW_TOKEN} or {AIRFLOW_USER} has characters that none has: copy it again")
    if login.token:
        return AirflowClient(url, token=login.token, through_proxies=True, patience_s=AIRFLOW_PATIENCE_S)
    if not (login.user and login.password):
        raise UsageError(f"{AIRFLOW_TOKEN} is not set, and neither are {AIRFLOW_USER} and {AIRFLOW_PASSWORD}")
    client = AirflowClient(url, login.user, login.password, through_proxies=True, patience_s=AIRFLOW_PATIENCE_S)
    client.sign_in()
    return client


def _seconds(text: str, option: str) -> float:
    try:
        return read_duration_ms(text) / 1000
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option} {text!r}: {error}; write 90s, 15m or 2h") from error
