"""What a job of GitHub Actions or GitLab CI says about itself, and that no text of a stranger passes as a value."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.fake_forge import BOT, PERSONAL_TOKEN, TOKEN, FakeForge
from topicops.features.pull_requests.edges.forge import Check, CheckResult
from topicops.features.pull_requests.edges.github import GitHub
from topicops.features.pull_requests.edges.gitlab import GitLab
from topicops.features.pull_requests.edges.surroundings import Surroundings, open_forge, surroundings_of
from topicops.model.errors import UsageError

BASE, HEAD = "a" * 40, "b" * 40
GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://gitlab.example/api/v4",
    "CI_PROJECT_PATH": "acme/platform/topics",
    "CI_COMMIT_SHA": HEAD,
    "CI_JOB_URL": "https://gitlab.example/job/7",
}


def on_github(folder: Path, event: object, **more: str) -> dict[str, str]:
    file = folder / "event.json"
    file.write_text(json.dumps(event), encoding="utf-8")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_REPOSITORY": "acme/topics",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "7",
        "GITHUB_SHA": "c" * 40,
        **more,
    }


def test_outside_of_a_ci_nothing_is_known() -> None:
    assert surroundings_of({"HOME": "/root"}) == Surroundings(kind="github", api_url="https://api.github.com")


def test_a_pull_request_on_github(tmp_path: Path) -> None:
    pull = {"number": 12, "head": {"sha": HEAD}, "base": {"sha": BASE}, "title": "$(touch ran)"}
    event = {"pull_request": pull}

    found = surroundings_of(on_github(tmp_path, event))

    assert found is not None
    assert (found.kind, found.repository, found.number) == ("github", "acme/topics", 12)
    assert (found.base_commit, found.head_commit) == (BASE, HEAD)
    assert (found.api_url, found.job_url) == (
        "https://api.github.com",
        "https://github.example/acme/topics/actions/runs/7",
    )


def test_a_merge_on_github_is_between_two_commits_of_the_base_branch(tmp_path: Path) -> None:
    found = surroundings_of(on_github(tmp_path, {"before": BASE, "after": "c" * 40}))

    assert found is not None
    assert (found.number, found.base_commit, found.head_commit) == (None, BASE, "c" * 40)
    first = surroundings_of(on_github(tmp_path, {"before": "0" * 40}))
    assert first is not None
    assert first.base_commit is None, "the first push has no commit before it"


def test_a_merge_request_on_gitlab_and_the_pipeline_that_plans_it() -> None:
    request = {"CI_MERGE_REQUEST_IID": "12", "CI_MERGE_REQUEST_DIFF_BASE_SHA": BASE}
    found = surroundings_of({**GITLAB, **request})
    assert found is not None
    assert (found.kind, found.repository, found.number) == ("gitlab", "acme/platform/topics", 12)
    assert (found.base_commit, found.head_commit, found.job_url) == (BASE, HEAD, "https://gitlab.example/job/7")

    planning = surroundings_of({**GITLAB, "TOPICOPS_MERGE_REQUEST": "12"})
    assert planning is not None
    assert planning.number == 12


@pytest.mark.parametrize(
    ("variables", "event", "said"),
    [
        ({"GITHUB_REPOSITORY": "acme/topics; touch ran"}, {}, "names the repository"),
        ({"GITHUB_REPOSITORY": "acme/.."}, {}, "names the repository 'acme/..'"),
        ({"GITHUB_REPOSITORY": "acme/topics/more"}, {}, "names the repository"),
        ({"GITHUB_API_URL": "file:///etc/passwd"}, {}, "GITHUB_API_URL: 'file:///etc/passwd' is no address"),
        ({"GITHUB_SHA": "--output=x"}, {}, "names the commit '--output=x'"),
        ({}, {"before": "main; rm -rf"}, "names the commit"),
        ({}, {"pull_request": {"number": "12; x", "head": {}, "base": {}}}, "event of this run cannot be read"),
        ({}, {"pull_request": {"number": -12, "head": {"sha": HEAD}, "base": {}}}, "'-12' is no number"),
        ({}, {"pull_request": {"number": 1, "head": {"sha": "HEAD^{/x}"}, "base": {}}}, "names the commit"),
        ({}, [], "event of this run cannot be read"),
    ],
)
def test_values_that_no_ci_writes_are_refused(
    tmp_path: Path, variables: dict[str, str], event: object, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        surroundings_of({**on_github(tmp_path, event), **variables})


def test_a_number_that_is_none_is_refused_on_gitlab() -> None:
    with pytest.raises(UsageError, match="'1 OR 1' is no number of a pull request"):
        surroundings_of({**GITLAB, "TOPICOPS_MERGE_REQUEST": "1 OR 1"})


def test_the_forge_of_the_job(tmp_path: Path) -> None:
    here, there = surroundings_of(on_github(tmp_path, {})), surroundings_of(GITLAB)
    assert here is not None
    assert there is not None

    assert isinstance(open_forge(here, {"GITHUB_TOKEN": "t"}), GitHub)
    assert isinstance(open_forge(there, {"TOPICOPS_FORGE_TOKEN": "t"}), GitLab)
    with pytest.raises(UsageError, match="TOPICOPS_FORGE_TOKEN is not set"):
        open_forge(there, {"GITHUB_TOKEN": "t"})
    with pytest.raises(UsageError, match="'acme' is no repository: give --repository organisation/name"):
        open_forge(replace(here, repository="acme"), {"GITHUB_TOKEN": "t"})
    with pytest.raises(UsageError, match="TOPICOPS_FORGE_TOKEN or GITHUB_TOKEN is not set"):
        open_forge(here, {})
    with pytest.raises(UsageError, match="TOPICOPS_FORGE_USER is not set"):
        open_forge(here, {"TOPICOPS_FORGE_TOKEN": "t"})
    assert open_forge(here, {"TOPICOPS_FORGE_TOKEN": "t", "GITHUB_TOKEN": "t"}), "the job's own token, given twice"
    with pytest.raises(UsageError, match="characters that no token has") as error:
        open_forge(there, {"TOPICOPS_FORGE_TOKEN": "secret\nvalue"})
    assert "secret" not in str(error.value)


def test_on_github_the_second_token_reads_teams_alone(tmp_path: Path) -> None:
    here = surroundings_of(on_github(tmp_path, {}))
    assert here is not None

    with FakeForge() as fake:
        fake.open(HEAD)
        fake.teams["acme/shop"] = {"alice"}
        tokens = {"GITHUB_TOKEN": TOKEN, "TOPICOPS_FORGE_TOKEN": PERSONAL_TOKEN}
        forge = open_forge(replace(here, api_url=fake.url), tokens)
        forge.set_check(HEAD, Check(name="topicops", result=CheckResult.SUCCESS, title="t"))
        forge.add_comment(1, "text")
        assert [comment.body for comment in forge.own_comments(1)] == ["text"]
        assert fake.pulls[1].comments[0].author == BOT
        assert fake.tokens == {TOKEN}
        assert forge.members("acme/shop") == {"alice"}
