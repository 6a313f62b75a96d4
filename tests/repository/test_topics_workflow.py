"""The workflow of pull requests: who may see a secret, what is executed, and that its shell steps do what they say."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest
import yaml

from fixtures.workflow import ACTION, BRANCH, JOBS_FILE, MAIN, ROOT, Runner, cloned, git, jobs_of
from topicops import __version__
from topicops.features.files.authoring.first_environment import REPOSITORY, filled

TEXT = (ROOT / ".github/workflows/topics.yml").read_text(encoding="utf-8")
PACKAGED = resources.files("topicops").joinpath("features/files/authoring/first_files")
EXAMPLE = filled(
    PACKAGED.joinpath("workflow.yml").read_text(encoding="utf-8"),
    {"REPOSITORY": REPOSITORY, "VERSION": __version__, "TOPICS": "topics", "BRANCH": "main"},
)
JOBS = {name: job for name, (job, _) in jobs_of(TEXT).items()}
CHANGES = {
    "topics/payments/payments.orders.yaml": ("  partitions: 6\n", "  partitions: six\n"),
    "topics/web/web.clicks.yaml": ("  owner: ", "  onwer: "),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of a repository that holds the examples."""
    return cloned(ROOT / "topics", tmp_path)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(folder=tmp_path / "jobs", remote=tmp_path / "topics.git")


def pull_request(checkout: Path, *, fork: bool = False) -> dict[str, object]:
    """Push the branch, and what GitHub says of it: the event, with the merge of the two as the commit to check out."""
    git(checkout, "push", "-q", "origin", "HEAD:refs/pull/1/head", f"HEAD:{BRANCH}")
    head, base = (git(checkout, "rev-parse", name).strip() for name in ("HEAD", f"origin/{MAIN}"))
    return {
        "pull_request": {
            "number": 1,
            "head": {"sha": head, "ref": BRANCH, "repo": {"full_name": "mallory/topics" if fork else "acme/topics"}},
            "base": {"sha": base, "ref": MAIN},
        },
        "repository": {"default_branch": MAIN},
    }


def test_a_job_that_the_branch_can_rewrite_gets_no_secret() -> None:
    """On `pull_request` GitHub takes the workflow from the branch."""
    assert "secrets" not in str(JOBS["validate"])
    assert "environment" not in JOBS["validate"]
    assert JOBS["validate"]["if"] == "github.event_name == 'pull_request'"


def test_secrets_belong_to_environments_that_allow_the_base_branch_only() -> None:
    with_secrets = {name: job for name, job in JOBS.items() if "secrets." in str(job)}
    assert {name: job["environment"] for name, job in with_secrets.items()} == {
        "plan": "topicops-reader",
        "apply": "topicops-airflow",
    }
    assert "github.event_name == 'pull_request_target'" in JOBS["plan"]["if"]
    assert JOBS["apply"]["if"] == "github.event_name == 'push'"


def test_only_the_step_that_plans_or_applies_is_given_a_secret() -> None:
    with_secrets = [(name, s["name"]) for name, job in JOBS.items() for s in job["steps"] if "secrets." in str(s)]
    assert with_secrets == [("plan", "Plan"), ("apply", "Apply")]
    assert [name for name, job in JOBS.items() if "secrets." in str({**job, "steps": []})] == []


def test_a_job_with_a_secret_plans_for_branches_of_this_repository_only() -> None:
    assert "github.event.pull_request.head.repo.full_name == github.repository" in JOBS["plan"]["if"]
    assert "github.event.pull_request.head.repo.full_name != github.repository" in JOBS["unplanned"]["if"]
    assert "environment" not in JOBS["unplanned"]


def test_a_job_with_a_secret_plans_for_the_protected_branch_only() -> None:
    """In any other branch somebody may name himself the owner."""
    base = "github.event.pull_request.base.ref"
    assert f"&& {base} == github.event.repository.default_branch" in JOBS["plan"]["if"]
    assert f"&& {base} == github.event.repository.default_branch" in JOBS["unplanned"]["if"]


def test_each_secret_is_declared_and_handed_over_by_its_name() -> None:
    """GitHub inherits secrets inside one organization alone."""
    used = set(re.findall(r"secrets\.(\w+)", str(JOBS)))
    declared = yaml.safe_load(JOBS_FILE.read_text(encoding="utf-8"))[True]["workflow_call"]["secrets"]
    passed = yaml.safe_load(TEXT)["jobs"]["topics"]["secrets"]
    assert used == set(declared) == set(passed)
    assert passed == {name: f"${{{{ secrets.{name} }}}}" for name in used}


def test_a_trusted_job_checks_out_the_base_branch_and_nothing_of_the_branch() -> None:
    checkouts = [s for s in JOBS["plan"]["steps"] if s.get("uses", "").startswith("actions/checkout@")]
    assert [s["with"]["ref"] for s in checkouts] == ["${{ github.event.pull_request.base.ref }}"]
    fetches = [s["run"] for s in JOBS["plan"]["steps"] if "run" in s]
    assert fetches == ['git fetch --quiet --no-tags --no-recurse-submodules origin "refs/pull/$NUMBER/head"']


def test_no_text_of_a_pull_request_becomes_a_part_of_a_shell_script() -> None:
    """An expression inside a script is replaced before the shell reads it, so a title could end a string."""
    steps = [*ACTION["runs"]["steps"], *(s for job in JOBS.values() for s in job["steps"])]
    scripts = [s["run"] for s in steps if "run" in s]
    assert len(scripts) >= 3
    assert [script for script in scripts if "${{" in script] == []


def test_rights_are_given_job_by_job() -> None:
    assert yaml.safe_load(JOBS_FILE.read_text(encoding="utf-8"))["permissions"] == {}
    assert JOBS["validate"]["permissions"] == {"contents": "read"}
    assert all(
        "contents" not in job["permissions"] or job["permissions"]["contents"] == "read" for job in JOBS.values()
    )


def test_every_action_is_pinned_to_a_commit() -> None:
    steps = [*ACTION["runs"]["steps"], *(s for job in JOBS.values() for s in job["steps"])]
    used = [s["uses"] for s in steps if "uses" in s and not s["uses"].startswith(REPOSITORY)]
    assert used
    assert [u for u in used if not re.search(r"@[0-9a-f]{40}$", u)] == []
    assert {s["uses"] for s in steps if s.get("uses", "").startswith(REPOSITORY)} == {f"{REPOSITORY}@v{__version__}"}


def test_a_required_check_is_never_left_waiting() -> None:
    """A workflow with a filter of paths does not run for other files, and a required check would wait for ever."""
    assert "paths" not in TEXT + EXAMPLE
    assert all(any(event in JOBS[name]["if"] for name in JOBS) for event in ("'pull_request'", "'push'"))


def test_the_workflow_that_init_writes_is_this_one_but_for_the_address_and_short() -> None:
    here = TEXT.replace("./.github/", f"{REPOSITORY}/.github/").replace(
        "pull-request.yml\n", f"pull-request.yml@v{__version__}\n"
    )
    address = f"https://github.com/{REPOSITORY}/blob/v{__version__}/"
    assert here == EXAMPLE.replace(address, "")
    assert len(EXAMPLE.splitlines()) <= 25


def test_the_page_shows_the_workflow_as_it_is_written() -> None:
    page = (ROOT / "docs/how-to/review-in-pull-requests.md").read_text(encoding="utf-8")
    shown = re.findall(r"```yaml\n(name: topics\n.*?)```", page, re.DOTALL)
    assert [yaml.safe_load(text) for text in shown] == [yaml.safe_load(EXAMPLE)]


def test_validate_annotates_the_lines_of_a_branch_that_breaks_topics(checkout: Path, runner: Runner) -> None:
    for name, (old, new) in CHANGES.items():
        text = (checkout / name).read_text(encoding="utf-8")
        assert old in text
        (checkout / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    git(checkout, "commit", "-qam", "Change topics")

    ended = runner.run(TEXT, "pull_request", pull_request(checkout), sha=BRANCH)

    assert list(ended) == ["validate"]
    assert ended["validate"].status == 1
    annotations = re.findall(r"^::error file=([^,]+),line=(\d+),", ended["validate"].output, re.MULTILINE)
    assert {name for name, _ in annotations} == set(CHANGES)


def test_validate_counts_problems_of_before_and_passes(checkout: Path, runner: Runner) -> None:
    name = "topics/web/web.clicks.yaml"
    text = (checkout / name).read_text(encoding="utf-8")
    (checkout / name).write_text(text.replace("  owner: ", "  onwer: ", 1), encoding="utf-8")
    git(checkout, "commit", "-qam", "A mistake that is on main")
    git(checkout, "push", "-q", "origin", f"HEAD:{MAIN}")
    (checkout / "topics/shop").mkdir()
    (checkout / "topics/shop/shop.baskets.yaml").write_text(
        text.replace("web.clicks", "shop.baskets"), encoding="utf-8"
    )
    git(checkout, "add", "topics")
    git(checkout, "commit", "-qm", "A good topic")

    ended = runner.run(TEXT, "pull_request", pull_request(checkout), sha=BRANCH)["validate"]

    assert (ended.status, ended.output.count("::error")) == (0, 0), ended.output
    assert "2 errors from before this branch, in other files" in ended.output


def test_validate_passes_on_the_examples_and_for_a_fork(checkout: Path, runner: Runner) -> None:
    ended = runner.run(EXAMPLE, "pull_request", pull_request(checkout, fork=True), sha=BRANCH)

    assert list(ended) == ["validate"]
    assert (ended["validate"].status, ended["validate"].output.count("::error")) == (0, 0), ended["validate"].output


def test_the_template_for_gitlab_runs_the_same_commands_and_keeps_secrets_off_merge_requests() -> None:
    text = PACKAGED.joinpath("gitlab-ci.yml").read_text(encoding="utf-8").replace("@", "")
    head, template = yaml.safe_load_all(text)
    commands = re.findall(r"topicops ci \w+", str(template))
    assert set(commands) == set(re.findall(r"topicops ci \w+", str(ACTION))) | set()
    of_requests = [name for name, job in template.items() if "merge_request_event" in str(job)]
    assert of_requests == ["validate", "ask-for-plan"]
    asked = template["ask-for-plan"]
    assert "variables" not in asked, "a variable of the branch would be one of the protected pipeline"
    assert asked["inherit"] == {"variables": False}
    assert asked["trigger"]["forward"] == {"yaml_variables": False, "pipeline_variables": False}
    assert asked["trigger"]["inputs"] == {"merge_request": "$CI_MERGE_REQUEST_IID"}
    assert list(head["spec"]["inputs"]) == ["merge_request"]
    assert not re.fullmatch(head["spec"]["inputs"]["merge_request"]["regex"], "1; curl")
    assert {name: template[name]["environment"]["name"] for name in ("plan", "apply")} == {
        "plan": "topicops-reader",
        "apply": "topicops-airflow",
    }
    assert all("--isolated" in line for line in template[".topicops"]["before_script"] if "pip install" in line)
    assert template["ask-for-plan"]["trigger"]["branch"] == "$CI_DEFAULT_BRANCH"
    for name in ("plan", "apply"):
        assert all("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule["if"] for rule in template[name]["rules"])
