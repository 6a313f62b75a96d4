"""Which runs end after their snapshot, because nothing differs from the last good one, and what they must not hide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes import builders
from fixtures.git_bundle import Repository
from fixtures.scripted_flow import failed_rule, quality_rule
from fixtures.simulated import Simulated
from fixtures.whole_runs import WholeRuns
from topicops.edges.home.journal import open_journals_folder
from topicops.edges.home.memories import HELD, MemoryFile
from topicops.features.quiet import quiet
from topicops.features.quiet.quiet import GoodRun, RunState
from topicops.flow import single_steps
from topicops.flow.runs.memory import unverified_of
from topicops.flow.runs.run import open_run
from topicops.model.runs.memories import HeldSet
from topicops.model.runs.moves import KnownMoves, TopicMoves
from topicops.model.runs.results import QUIET_FILE, Quiet

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
STATE = RunState(mode="apply", program="p", environment="e", files="f", cluster="c")
GOOD = GoodRun(run="topic_pipeline_local/1", state=STATE, has_empty_plan=True, checked_at=NOW)


# --- the decision -----------------------------------------------------------------------------------------------------


def test_the_same_state_within_the_hour_needs_no_full_run() -> None:
    assert quiet.why_full(GOOD, STATE, at=NOW + timedelta(minutes=59), every=HOUR) == ""


@pytest.mark.parametrize("name", ["mode", "program", "environment", "files", "cluster"])
def test_whatever_differs_makes_a_full_run_and_is_named(name: str) -> None:
    reason = quiet.why_full(GOOD, replace(STATE, **{name: "other"}), at=NOW, every=HOUR)
    assert reason.endswith(", compared with run topic_pipeline_local/1")


@pytest.mark.parametrize(
    ("good", "at", "reason"),
    [
        pytest.param(None, NOW, "no good run is known", id="no record"),
        pytest.param(replace(GOOD, has_empty_plan=False), NOW, "made changes", id="it made changes"),
        pytest.param(GOOD, NOW + HOUR, "every 1:00:00 all is checked", id="the hour is over"),
        pytest.param(GOOD, NOW - HOUR, "every 1:00:00 all is checked", id="a clock that went back"),
        pytest.param(replace(GOOD, holds_until=NOW), NOW, "a pause ended", id="a pause ends"),
    ],
)
def test_these_make_a_full_run(good: GoodRun | None, at: datetime, reason: str) -> None:
    assert reason in quiet.why_full(good, STATE, at=at, every=HOUR)


def test_a_cluster_in_which_something_depends_on_the_time_is_like_no_other() -> None:
    unknown = replace(STATE, cluster=None)
    assert "the cluster is not the same" in quiet.why_full(replace(GOOD, state=unknown), unknown, at=NOW, every=HOUR)


# --- whole runs on a cluster in memory --------------------------------------------------------------------------------


@pytest.fixture
def runs(simulated: Simulated) -> WholeRuns:
    """Return a described topic that is live as described."""
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))
    return WholeRuns(simulated)


def is_quiet(runs: WholeRuns) -> bool:
    return runs.start()[1] is not None


def test_after_a_good_run_the_next_one_ends_after_its_snapshot_and_says_so(runs: WholeRuns) -> None:
    first = runs.full()
    second, ended = runs.start()
    assert ended is not None
    assert ended.sentence.startswith(f"Nothing differs from run {first.name}, which was good; the next full check is")
    assert second.store.read_value(QUIET_FILE, Quiet) == ended
    assert second.tables() is None
    assert not second.store.has("plan.json")
    assert is_quiet(runs)


def test_after_changes_one_more_full_run_plans_and_its_rules_after_are_not_evaluated_again(runs: WholeRuns) -> None:
    runs.simulated.workspace.topic("clicks")
    runs.full()
    second = runs.full()
    assert not second.store.has("quality-after.json")
    assert second.read_plan().changes == ()
    assert is_quiet(runs)


def test_the_hour_counts_from_the_last_time_that_the_rules_were_evaluated(runs: WholeRuns) -> None:
    runs.simulated.workspace.topic("clicks")
    runs.full()
    first = memory(runs).read()
    runs.full()
    second = memory(runs).read()
    assert first is not None
    assert second is not None
    assert second.checked_at == first.checked_at
    memory(runs).write(replace(second, checked_at=first.checked_at - timedelta(hours=1)))
    assert runs.full().store.has("quality-after.json")


def memory(runs: WholeRuns) -> MemoryFile[GoodRun]:
    return quiet._memory(runs.simulated.opened("1"))


def open_requests(runs: WholeRuns) -> None:
    folder = open_journals_folder(runs.simulated.opened("1").home, "local")
    folder.mkdir(parents=True)
    (folder / "0.json").write_text("{}", encoding="utf-8")


A_MOVE = TopicMoves(identity="id", digest="d" * 64, partitions={0}, targets={0: (1, 2)}, sentence="waits")


def known(moves: KnownMoves) -> Callable[[WholeRuns], None]:
    return lambda runs: setattr(runs.simulated, "tell_moves", lambda *_: moves)


def a_record_of_another_format(runs: WholeRuns) -> None:
    path = memory(runs).path
    path.write_text(path.read_text(encoding="utf-8").replace('"1.0"', '"2.0"'), encoding="utf-8")


NEWS: Mapping[str, Callable[[WholeRuns], object]] = {
    "another topic": lambda runs: runs.simulated.cluster.put_topic("unmanaged", (1, 2, 3)),
    "another override": lambda runs: runs.simulated.cluster.set_configs("orders", {"retention.ms": "60000"}),
    "a broker less": lambda runs: runs.simulated.cluster.stop_broker(2),
    "another description": lambda runs: runs.simulated.workspace.topic("orders", configs={"retention.ms": "1d"}),
    "another limit": lambda runs: runs.simulated.workspace.limits.update(deletesPerRun=7),
    "a held change": lambda runs: HELD.of(memory(runs).path.parents[1], "local").write(
        HeldSet(addresses={"d" * 64: "delete topic.old"})
    ),
    "open requests": open_requests,
    "moves that run": known(KnownMoves(cluster_id="cluster", topics={"orders": A_MOVE})),
    "a throttle that is left": known(KnownMoves(cluster_id="cluster", rates=[1])),
    "topics that nobody verified": lambda runs: unverified_of(runs.simulated.opened("0")).note(["orders"]),
    "a damaged record": lambda runs: memory(runs).path.write_text("{", encoding="utf-8"),
    "a record of another format": a_record_of_another_format,
    "another mode": lambda runs: setattr(runs, "mode", "plan"),
}


@pytest.mark.parametrize("news", NEWS)
def test_what_a_quiet_run_must_not_hide_makes_a_full_one(runs: WholeRuns, news: str) -> None:
    runs.full()
    assert is_quiet(runs)
    NEWS[news](runs)
    assert not is_quiet(runs)


def test_after_the_end_of_all_moves_runs_are_quiet_again(runs: WholeRuns) -> None:
    known(KnownMoves(cluster_id="cluster"))(runs)
    runs.full()
    assert is_quiet(runs)


def test_a_topic_that_is_being_deleted_makes_each_run_a_full_one(runs: WholeRuns) -> None:
    runs.simulated.cluster.put_topic("old", (1, 2, 3))
    runs.full()
    runs.simulated.cluster.pause_broker(3)
    topic_id = runs.simulated.cluster.live("old").topic_id
    runs.simulated.cluster.delete(replace(builders.delete_change("old"), topic_id=topic_id))
    run, _ = runs.start()
    assert quiet.cluster_digest(run.known_tables()) is None
    runs.finish(run)
    assert not is_quiet(runs)


def test_a_run_that_ended_before_its_report_leaves_the_next_one_a_full_one(runs: WholeRuns) -> None:
    runs.full()
    runs.start(full_because="it was cleared")
    assert not is_quiet(runs)


def test_a_failed_task_leaves_the_next_run_a_full_one(runs: WholeRuns) -> None:
    run, _ = runs.start()
    runs.finish(run, failed_tasks=["verify"])
    assert not is_quiet(runs)


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_a_rule_that_fails_is_evaluated_in_every_run(runs: WholeRuns, severity: str) -> None:
    runs.rules_after = (quality_rule("critical", success=True), failed_rule(severity))
    runs.full()
    assert not is_quiet(runs)
    runs.rules, runs.rules_after = runs.rules_after, ()
    runs.full()
    assert not is_quiet(runs)


def test_a_change_that_was_not_sent_makes_each_run_a_full_one(runs: WholeRuns) -> None:
    runs.simulated.workspace.policy["unattended"] = "safe"
    runs.simulated.workspace.topic("orders", partitions=2)
    runs.full()
    assert not is_quiet(runs)


def test_a_lost_topic_is_told_by_each_run(runs: WholeRuns) -> None:
    runs.full()
    runs.simulated.cluster.remove_topic("orders")
    run, ended = runs.start()
    assert ended is None
    assert run.read_live().lost


def test_a_pause_makes_quiet_runs_until_it_ends(runs: WholeRuns) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    lifecycle = {"state": "paused", "reason": "Load test.", "until": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
    runs.simulated.workspace.topic("orders", partitions=2)
    path = runs.simulated.workspace.path_of("orders")
    path.write_text(f"{path.read_text(encoding='utf-8')}lifecycle: {lifecycle}\n", encoding="utf-8")
    runs.full()
    _, ended = runs.start()
    assert ended is not None
    assert ended.full_check_at == until


def test_who_asks_for_something_of_his_own_gets_a_full_run(runs: WholeRuns) -> None:
    runs.full()
    assert runs.start(full_because="it was cleared")[1] is None


def test_each_dag_remembers_its_own_runs(runs: WholeRuns) -> None:
    runs.full()
    other = open_run(
        environment="local", topics=runs.simulated.workspace.folder / "topics", group="topic_drift_local", run_id="1"
    )
    single_steps.validate(other, as_tables=True)
    single_steps.snapshot(other, states=True)
    assert quiet.look_for_quiet(other, mode="apply") is None


def test_a_new_commit_of_the_same_files_is_verified_by_a_quiet_run(
    runs: WholeRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.parent / f"{tmp_path.name}-home"
    monkeypatch.setenv("TOPICOPS_HOME", str(home))
    runs.simulated.workspace.write_environment()
    repository = Repository(runs.simulated.workspace.folder, tmp_path.parent / f"{tmp_path.name}.git")
    repository.publish()
    run = runs.full()
    single_steps.note_verified(run)
    (runs.simulated.workspace.folder / "README.md").write_text("Read.", encoding="utf-8")
    newer = repository.publish()
    _, ended = runs.start()
    assert ended is not None
    assert ended.commit == newer
    assert newer in (home / "verified/local.json").read_text(encoding="utf-8")
