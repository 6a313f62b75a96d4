"""A run and the commit of its files, with a real git: pinned runs, and histories that are rewritten under a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from fixtures.git_bundle import Repository
from fixtures.simulated import Simulated, outcomes_of
from fixtures.workflow import git
from topicops.flow import single_steps, whole_runs
from topicops.flow.runs.files import MOST_READINGS, read_files, wait_for_pinned_files
from topicops.flow.runs.run import EnvironmentRun, load_plan, no_progress
from topicops.model.errors import MovedFilesError
from topicops.model.ports import Clock
from topicops.model.runs.results import OutcomeStatus

GONE = "f" * 40


@pytest.fixture
def repository(simulated: Simulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The workspace is a work tree; its topics are one commit so far."""
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path.parent / f"{tmp_path.name}-home"))
    simulated.workspace.write_environment()
    simulated.workspace.topic("orders")
    repository = Repository(simulated.workspace.folder, tmp_path.parent / f"{tmp_path.name}.git")
    repository.publish()
    return repository


def pinned_run(simulated: Simulated, commit: str | None, version: str | None = None) -> EnvironmentRun:
    run = simulated.opened("1")
    return replace(run, files=replace(run.files, pinned=commit, version=version))


def planned(simulated: Simulated, pinned: str | None = None) -> EnvironmentRun:
    """Up to the gate, as the pipeline's tasks do it."""
    run = pinned_run(simulated, pinned)
    single_steps.validate(run)
    single_steps.snapshot(run, states=True)
    single_steps.diff(run)
    single_steps.plan(run)
    single_steps.gate(run)
    simulated.events.clear()
    return run


def test_a_run_that_is_pinned_to_the_commit_of_the_files_sends_its_changes(
    simulated: Simulated, repository: Repository
) -> None:
    run = planned(simulated, repository.head)
    single_steps.apply(run)
    assert [outcome.status for outcome in outcomes_of(run)] == [OutcomeStatus.DONE]
    assert run.read_plan().change_set.source.commit == repository.head


def sparse(folder: Path) -> None:
    git(folder, "sparse-checkout", "set", "--cone", "topics/environments")


def edited_behind_a_mark(folder: Path) -> None:
    file = next(folder.glob("topics/*/orders.yaml"))
    git(folder, "update-index", "--assume-unchanged", str(file))
    file.write_text(file.read_text(encoding="utf-8") + "# not as committed\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "why"),
    [(sparse, "is not here: it was removed, or the checkout is sparse"), (edited_behind_a_mark, "bytes")],
)
def test_files_that_git_calls_clean_and_that_are_not_the_commit_have_none(
    simulated: Simulated, repository: Repository, change: Callable[[Path], None], why: str
) -> None:
    change(simulated.workspace.folder)
    assert git(simulated.workspace.folder, "status", "--porcelain") == ""
    assert planned(simulated).read_plan().change_set.source.commit is None
    with pytest.raises(MovedFilesError, match=why):
        planned(simulated, repository.head)


@pytest.mark.parametrize("step", [single_steps.gate, single_steps.apply])
def test_once_main_has_moved_a_pinned_run_sends_nothing_and_names_both_commits(
    simulated: Simulated, repository: Repository, step: Callable[[EnvironmentRun], object]
) -> None:
    pinned = repository.head
    run = planned(simulated, pinned)
    moved = repository.publish()
    with pytest.raises(MovedFilesError) as caught:
        step(run)
    assert f"the files are of commit {moved}, and this run is pinned to commit {pinned}" in str(caught.value)
    assert "nothing was sent; start a new run" in str(caught.value)
    assert simulated.cluster.requests == []
    assert simulated.events == []


def test_a_pinned_run_does_not_read_files_of_no_known_commit(simulated: Simulated, repository: Repository) -> None:
    simulated.workspace.topic("clicks")
    with pytest.raises(MovedFilesError, match="no known commit"):
        planned(simulated, repository.head)


def test_a_history_that_is_rewritten_between_two_tasks_sends_nothing(
    simulated: Simulated, repository: Repository
) -> None:
    base = repository.head
    simulated.workspace.topic("clicks")
    repository.publish()
    run = planned(simulated)
    repository.rewrite(base)
    with pytest.raises(MovedFilesError, match="git's history was rewritten; nothing more is sent"):
        single_steps.apply(run)
    assert (simulated.cluster.requests, simulated.events) == ([], [])


def test_new_commits_between_two_tasks_are_judged_as_the_files_of_now(
    simulated: Simulated, repository: Repository
) -> None:
    run = planned(simulated)
    simulated.workspace.tombstone("orders")
    repository.publish()
    single_steps.apply(run)
    (outcome,) = outcomes_of(run)
    assert (outcome.status, "TOP501" in outcome.message) == (OutcomeStatus.REFUSED, True)


def test_a_saved_plan_of_a_branch_is_applied_where_main_has_another_history(
    simulated: Simulated, repository: Repository
) -> None:
    """After a squash the branch's commit is in no history of main; apply judges each change by the files of now."""
    base = repository.publish()
    simulated.workspace.topic("clicks")
    repository.publish()
    assert simulated.workspace.plan().status == 0
    plan = load_plan(simulated.workspace.folder / "plan.json")
    (simulated.workspace.folder / "plan.json").unlink()
    repository.rewrite(base)
    run = simulated.opened("2")
    whole_runs.apply_plan(run, plan)
    assert {outcome.status for outcome in outcomes_of(run)} == {OutcomeStatus.DONE}


class Waiting:
    """A clock whose sleeps take no time, and what happens during them."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.seconds, self._events = 0.0, list(events)
        self.clock = Clock(now=lambda: self.seconds, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self._events:
            self._events.pop(0)()


def test_a_pinned_run_waits_until_the_folder_is_at_its_commit(simulated: Simulated, repository: Repository) -> None:
    before = repository.head
    wanted = repository.publish()
    repository.check_out(before)
    lines: list[str] = []
    run = pinned_run(simulated, wanted)
    waiting = Waiting(lambda: None, lambda: repository.check_out(wanted))
    wait_for_pinned_files(run.files, patience_s=600.0, clock=waiting.clock, progress=lines.append)
    assert waiting.seconds == 4.0
    assert lines == [f"The files are of commit {before}; waiting up to 600 s for commit {wanted}"]
    assert single_steps.validate(run)["commit"] == wanted


def test_a_pinned_run_waits_no_longer_than_it_may(simulated: Simulated, repository: Repository) -> None:
    waiting = Waiting()
    run = pinned_run(simulated, GONE)
    wait_for_pinned_files(run.files, patience_s=60.0, clock=waiting.clock, progress=no_progress)
    assert waiting.seconds == 60.0
    with pytest.raises(MovedFilesError, match=f"pinned to commit {GONE}"):
        single_steps.validate(run)


@pytest.mark.parametrize("case", ["main has gone past the commit", "the files are of a fixed version"])
def test_a_pinned_run_does_not_wait_for_what_cannot_come(
    simulated: Simulated, repository: Repository, case: str
) -> None:
    pinned = repository.head
    repository.publish()
    version = repository.head if "fixed" in case else None
    waiting = Waiting()
    run = pinned_run(simulated, pinned, version)
    wait_for_pinned_files(run.files, patience_s=600.0, clock=waiting.clock, progress=no_progress)
    assert waiting.seconds == 0.0


def test_files_that_move_while_they_are_read_are_read_again(simulated: Simulated, repository: Repository) -> None:
    readings = count(1)

    def read() -> int:
        reading = next(readings)
        if reading == 1:
            repository.publish()
        return reading

    assert read_files(simulated.opened("1").files, read) == (2, repository.head)


def test_files_that_never_rest_are_not_used(simulated: Simulated, repository: Repository) -> None:
    with pytest.raises(MovedFilesError, match=f"changed {MOST_READINGS} times while they were read"):
        read_files(simulated.opened("1").files, repository.publish)
