"""``policy.after``: nothing is sent before other environments were applied and verified at the same commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.git_bundle import Repository
from fixtures.simulated import Simulated, outcomes_of
from topicops.flow import planning, single_steps, whole_runs
from topicops.flow.planning import gate_changes
from topicops.flow.runs.memory import write_verified
from topicops.flow.runs.run import EnvironmentRun, load_plan, open_run, read_environment
from topicops.model.errors import ExitStatus
from topicops.model.plans.changes import GateWord
from topicops.model.runs.results import OutcomeStatus

STAGING = """\
apiVersion: topicops/v1
kind: Environment
metadata: {name: staging}
spec: {cluster: {class: sandbox, zookeeper: {hosts: "zk:2181"}, kafka: {bootstrapServers: "b:9092"}}}
"""


@pytest.fixture
def repository(simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The workspace is a work tree, whose environment comes after staging."""
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path.parent / f"{tmp_path.name}-home"))
    simulated.workspace.policy["after"] = ["staging"]
    simulated.workspace.write_environment()
    (simulated.workspace.folder / "topics/environments/staging.yaml").write_text(STAGING, encoding="utf-8")
    simulated.workspace.topic("orders")
    repository = Repository(simulated.workspace.folder, tmp_path.parent / f"{tmp_path.name}.git")
    repository.publish()
    return repository


def staging_is_verified(simulated: Simulated, commit: str) -> None:
    topics = simulated.workspace.folder / "topics"
    write_verified(open_run(environment="staging", topics=topics, group="dag", run_id="1"), commit)


def words(run: EnvironmentRun) -> list[GateWord]:
    return [gated.gate for gated in run.read_plan().changes]


def reason(run: EnvironmentRun) -> str:
    (gated,) = run.read_plan().changes
    assert gated.gate is GateWord.SKIPPED
    (found,) = gated.reasons
    return found


def place(simulated: Simulated) -> str:
    text = (simulated.workspace.folder / "topics/environments/local.yaml").read_text(encoding="utf-8")
    line = next(n for n, line in enumerate(text.splitlines(), 1) if line.strip() == "after:")
    return f"(policy.after, topics/environments/local.yaml:{line + 1})"


def test_before_the_other_was_ever_verified_every_change_is_skipped(
    simulated: Simulated, repository: Repository
) -> None:
    these = repository.head[:12]
    expected = f"waits for staging: it was never verified, these files are of {these} {place(simulated)}"
    assert reason(simulated.planned()) == expected


def test_the_reason_names_both_commits_and_the_place_of_the_rule(simulated: Simulated, repository: Repository) -> None:
    before = repository.head
    staging_is_verified(simulated, before)
    these = repository.publish()
    assert reason(simulated.planned()) == (
        f"waits for staging: it was last verified at commit {before[:12]}, these files are of {these[:12]} "
        f"{place(simulated)}"
    )


def test_files_of_no_known_commit_wait_and_the_reason_says_how_to_get_one(
    simulated: Simulated, repository: Repository
) -> None:
    staging_is_verified(simulated, repository.head)
    simulated.workspace.topic("orders", partitions=2)
    assert "these files are of no known commit (topics/" in reason(simulated.planned())
    assert "commit all below topics/" in reason(simulated.planned("2"))


def test_once_the_other_was_verified_at_the_same_commit_the_changes_are_sent(
    simulated: Simulated, repository: Repository
) -> None:
    staging_is_verified(simulated, repository.head)
    run = simulated.planned()
    single_steps.apply(run)
    assert [outcome.status for outcome in outcomes_of(run)] == [OutcomeStatus.DONE]


def test_apply_asks_again_by_the_files_of_its_own_moment(simulated: Simulated, repository: Repository) -> None:
    staging_is_verified(simulated, repository.head)
    run = simulated.planned()
    assert words(run) == [GateWord.RUN]
    repository.publish()
    single_steps.apply(run)
    (outcome,) = outcomes_of(run)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "waits for staging: it was last verified at commit" in outcome.message
    assert simulated.cluster.requests == []


def test_a_pull_request_has_no_commit_to_wait_for(simulated: Simulated, repository: Repository) -> None:
    run = simulated.planned()
    plan = gate_changes(run, read_environment(run), run.read_change_set(), is_merged=False).plan
    assert [gated.gate for gated in plan.changes] == [GateWord.RUN]


# ---- what counts as verified ----


def verified_commit(run: EnvironmentRun) -> str | None:
    path = run.home / "verified/local.json"
    return json.loads(path.read_text(encoding="utf-8"))["commit"] if path.exists() else None


@pytest.fixture
def first(simulated: Simulated, repository: Repository) -> Repository:
    """The environment comes after no other."""
    del simulated.workspace.policy["after"]
    simulated.workspace.write_environment()
    repository.publish()
    return repository


def applied(simulated: Simulated, *, only: str | None = None, run_id: str = "1") -> tuple[EnvironmentRun, ExitStatus]:
    run = simulated.opened(run_id)
    planned = planning.make_plan(run, engine="python", states=True, only=only)
    return run, whole_runs.apply_own_plan(run, planned).status


def test_a_run_that_put_everything_in_place_and_verified_it_is_remembered_and_so_is_an_empty_one_after_it(
    simulated: Simulated, first: Repository
) -> None:
    run, status = applied(simulated)
    assert (status, verified_commit(run)) == (ExitStatus.SUCCESS, first.head)
    first.publish()
    run, status = applied(simulated, run_id="2")
    assert (status, run.read_plan().changes, verified_commit(run)) == (ExitStatus.SUCCESS, (), first.head)


def test_a_part_of_the_topics_is_not_the_environment(simulated: Simulated, first: Repository) -> None:
    run, status = applied(simulated, only="orders")
    assert (status, verified_commit(run)) == (ExitStatus.SUCCESS, None)


def test_held_changes_are_not_in_place(simulated: Simulated, first: Repository) -> None:
    simulated.workspace.policy["unattended"] = "safe"
    simulated.workspace.write_environment()
    simulated.workspace.tombstone("old")
    simulated.cluster.put_topic("old", (1, 2, 3))
    first.publish()
    run, _ = applied(simulated)
    assert [gated.gate for gated in run.read_plan().changes] == [GateWord.RUN, GateWord.HELD]
    assert verified_commit(run) is None


def test_files_of_no_known_commit_are_not_remembered(simulated: Simulated, first: Repository) -> None:
    simulated.workspace.topic("clicks")
    run, status = applied(simulated)
    assert (status, verified_commit(run)) == (ExitStatus.SUCCESS, None)


def test_a_run_that_only_plans_remembers_nothing(simulated: Simulated, first: Repository) -> None:
    assert verified_commit(simulated.planned()) is None


def test_a_saved_plan_that_was_applied_is_remembered_with_its_commit(simulated: Simulated, first: Repository) -> None:
    assert simulated.workspace.plan("--out", "../plan.json").status == 0
    plan = load_plan(simulated.workspace.folder.parent / "plan.json")
    run = simulated.opened("2")
    assert whole_runs.apply_plan(run, plan).status is ExitStatus.SUCCESS
    assert verified_commit(run) == first.head
