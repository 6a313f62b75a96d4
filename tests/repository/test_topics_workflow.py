"""The pull-request workflow: who may see a secret, and that its shell steps do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / ".github/workflows/topics.yml").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]

CHANGES = {
    "topics/payments/payments.orders.yaml": ("  partitions: 6\n", "  partitions: six\n"),
    "topics/web/web.clicks.yaml": ("  owner: ", "  onwer: "),
}


def step(job: str, name: str) -> str:
    """The shell text of one step."""
    return next(s["run"] for s in JOBS[job]["steps"] if s.get("name") == name)


def run_step(script: str, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """As the runner does: bash that stops at the first error, in the checkout."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a bare repository that holds the examples, on a branch of its own."""
    seed, bare, clone = tmp_path / "seed", tmp_path / "topics.git", tmp_path / "clone"
    subprocess.run(["cp", "-r", str(ROOT / "topics"), str(tmp_path / "topics")], check=True)
    seed.mkdir()
    (tmp_path / "topics").rename(seed / "topics")
    git(seed, "init", "-q")
    git(seed, "add", "topics")
    git(seed, "commit", "-qm", "Describe the topics")
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(bare))
    git(tmp_path, "clone", "-q", str(bare), str(clone))
    git(clone, "checkout", "-qb", "change-topics")
    return clone


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
