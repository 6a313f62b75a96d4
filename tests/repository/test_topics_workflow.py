"""The pull-request workflow: who may see a secret, and that its shell steps do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.workflow import JOBS, ROOT, TEXT, WORKFLOW, cloned, git, run_step, step

CHANGES = {
    "topics/payments/payments.orders.yaml": ("  partitions: 6\n", "  partitions: six\n"),
    "topics/web/web.clicks.yaml": ("  owner: ", "  onwer: "),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository that holds the examples."""
    return cloned(ROOT / "topics", tmp_path)


def test_it_runs_on_pull_requests_and_never_with_the_bases_rights() -> None:
    assert "pull_request_target" not in TEXT
    assert WORKFLOW["permissions"] == "read-all"


def test_the_job_that_forks_may_run_is_given_no_secret() -> None:
    assert "secrets" not in str(JOBS["validate"])
    assert "environment" not in JOBS["validate"]


@pytest.mark.parametrize("job", [name for name in JOBS if "secrets" in str(JOBS[name])])
def test_a_job_with_a_secret_runs_for_branches_of_this_repository_only(job: str) -> None:
    assert "github.event.pull_request.head.repo.full_name == github.repository" in JOBS[job]["if"]


def test_every_action_is_pinned_to_a_commit() -> None:
    used = [s["uses"] for job in JOBS.values() for s in job["steps"] if "uses" in s]
    assert used
    assert [u for u in used if not re.search(r"@[0-9a-f]{40}$", u)] == []


def test_validate_annotates_the_lines_of_a_branch_that_breaks_topics(checkout: Path) -> None:
    for name, (old, new) in CHANGES.items():
        text = (checkout / name).read_text(encoding="utf-8")
        assert old in text
        (checkout / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    git(checkout, "commit", "-qam", "Change topics")

    ended = run_step(step("validate", "Validate"), checkout, {})

    assert ended.returncode == 1
    annotations = re.findall(r"^::error file=([^,]+),line=(\d+),", ended.stdout, re.MULTILINE)
    assert {name for name, _ in annotations} == set(CHANGES)


def test_validate_passes_on_the_examples(checkout: Path) -> None:
    ended = run_step(step("validate", "Validate"), checkout, {})

    assert (ended.returncode, ended.stdout.count("::error")) == (0, 0), ended.stdout + ended.stderr
