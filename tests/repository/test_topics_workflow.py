"""The pull-request workflow: who may see a secret, and that its shell steps do what they say."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from fixtures.workflow import BRANCH, JOBS, ROOT, TEXT, WORKFLOW, cloned, git, run_step, step
from topicops.steps.authoring.first_files import filled

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
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert [name for name, job in JOBS.items() if "permissions" in job] == []


def test_the_job_that_forks_may_run_is_given_no_secret() -> None:
    assert "secrets" not in str(JOBS["validate"])
    assert "environment" not in JOBS["validate"]


@pytest.mark.parametrize("job", [name for name in JOBS if "secrets" in str(JOBS[name])])
def test_a_job_with_a_secret_runs_for_branches_of_this_repository_only(job: str) -> None:
    assert "github.event.pull_request.head.repo.full_name == github.repository" in JOBS[job]["if"]


def test_only_the_step_that_plans_is_given_a_secret() -> None:
    assert "secrets" not in str({name: rest for name, rest in WORKFLOW.items() if name != "jobs"})
    with_secrets = [(name, s["name"]) for name, job in JOBS.items() for s in job["steps"] if "secrets" in str(s)]
    assert with_secrets == [("plan", "Plan")]
    assert [name for name, job in JOBS.items() if "secrets" in str({**job, "steps": []})] == []


@pytest.mark.parametrize("job", JOBS)
def test_what_is_installed_and_run_is_the_base_branchs(job: str) -> None:
    steps = {s["name"]: s for s in JOBS[job]["steps"] if "name" in s}
    program = steps["Check out the program of the base branch"]["with"]
    assert program["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert {name for name, s in steps.items() if "make" in s.get("run", "")} == {"Install"}
    assert steps["Install"]["working-directory"] == program["path"]
    assert all(s["working-directory"] in (program["path"], "change") for s in steps.values() if "run" in s)


OURS = """\
      - name: Check out the program of the base branch
        uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683  # v4.2.2
        with:
          path: program
          ref: ${{ github.event.pull_request.base.sha }}
          persist-credentials: false
@SETUP@      - name: Install
        working-directory: program
        run: |
          make setup
          echo "$PWD/.venv/bin" >> "$GITHUB_PATH"
"""
SETUP = """\
      - uses: actions/setup-python@0b93645e9fea7318ecaed2b359559ac225c90a2b  # v5.3.0
        with:
          python-version: "3.11"
      - uses: actions/setup-java@8df1039502a15bceb9433410b1a100fbe190c53b  # v4.5.0
        with:
          distribution: temurin
          java-version: "17"
"""


def test_the_workflow_that_init_writes_is_this_one_but_for_the_installation() -> None:
    packaged = resources.files("topicops").joinpath("first_files", "workflow.yml").read_text(encoding="utf-8")
    installs = {"INSTALL_ON_HOSTED": filled(OURS, {"SETUP": SETUP}), "INSTALL": filled(OURS, {"SETUP": ""})}

    assert filled(packaged, {**installs, "TOPICS": "topics"}) == TEXT


def merged(checkout: Path) -> None:
    """As the runner gets a pull request: merged into its base branch."""
    git(checkout, "checkout", "-q", "main")
    git(checkout, "merge", "-q", "--no-ff", "-m", "Merge", BRANCH)


def test_the_plan_takes_the_base_branchs_environments(checkout: Path, tmp_path: Path) -> None:
    local = checkout / "topics/environments/local.yaml"
    before = local.read_bytes()
    local.write_text(local.read_text(encoding="utf-8").replace("kafka_local", "kafka_production"), encoding="utf-8")
    (local.parent / "other.yaml").write_bytes(before)
    topic = checkout / "topics/web/web.clicks.yaml"
    topic.write_text(topic.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    git(checkout, "add", "topics")
    git(checkout, "commit", "-qm", "Change environments and a topic")
    merged(checkout)
    variables = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}

    ended = run_step(step("plan", "Take the environments of the base branch"), checkout, variables)

    assert ended.returncode == 0, ended.stderr
    assert local.read_bytes() == before
    assert [file.name for file in local.parent.iterdir()] == ["local.yaml"]
    assert topic.read_text(encoding="utf-8").endswith("# changed\n")
    assert "environment files of the base branch" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_pull_request_without_environment_files_gets_no_note(checkout: Path, tmp_path: Path) -> None:
    topic = checkout / "topics/web/web.clicks.yaml"
    topic.write_text(topic.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    git(checkout, "commit", "-qam", "Change a topic")
    merged(checkout)
    summary = tmp_path / "summary.md"

    ended = run_step(
        step("plan", "Take the environments of the base branch"), checkout, {"GITHUB_STEP_SUMMARY": str(summary)}
    )

    assert (ended.returncode, summary.exists()) == (0, False), ended.stderr


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
