"""What one run leaves for its pages, its next steps and the runs after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import builders
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.plan_bytes import cluster, planned, standing_in, write_topics
from fixtures.simulated import Simulated
from topicops.edges.home.journal import has_later_try
from topicops.flow import reporting, single_steps
from topicops.flow.runs.files import diagnostics_named
from topicops.flow.runs.kept import load_facts
from topicops.flow.runs.memory import unverified_of
from topicops.flow.runs.run import DIAGNOSTICS_FILE, EnvironmentRun
from topicops.flow.verifying import ProgressLines, verify_left
from topicops.model.errors import ArtifactError, SpecError
from topicops.model.ports import Clock
from topicops.model.runs.facts import DRIFT_CLASSES
from topicops.model.specs.diagnostics import Diagnostic
from topicops.plugged import after_task
from topicops.steps.verifying.watch import Progress


@pytest.fixture
def live() -> Iterator[RestingCluster]:
    found = cluster(1)
    with standing_in(found):
        yield found


@pytest.fixture
def run(live: RestingCluster, tmp_path: Path) -> EnvironmentRun:
    write_topics(tmp_path)
    return planned(tmp_path, "python", "python", 1)


def test_a_plan_s_facts_count_the_topics_that_differ(run: EnvironmentRun) -> None:
    facts, delta = load_facts(run, "before"), run.read_delta()

    assert facts is not None
    for name in DRIFT_CLASSES:
        assert sum(getattr(owner, name.value) for owner in facts.owners) == delta.counts[name]


def test_a_comparison_is_not_repeated_until_the_cluster_is_read_anew(run: EnvironmentRun, live: RestingCluster) -> None:
    kept = single_steps.diff_once(run)["counts"]
    live.put_topic("new.topic", (1, 2))

    assert single_steps.diff_once(run)["counts"] == kept

    single_steps.snapshot(run, states=True)
    with pytest.raises(ArtifactError, match=r"delta\.json: missing"):
        run.read_delta()
    assert single_steps.diff_once(run)["counts"] != kept


# ---- What a run sent and did not come to verify: the next run looks at it first ----


def test_what_was_sent_is_unverified_until_somebody_looked(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.workspace.topic("items")
    first = simulated.planned("1")
    simulated.apply(first)
    assert sorted(unverified_of(first).own()) == ["items", "orders"]
    assert not unverified_of(first).earlier(), "not of an earlier run"
    single_steps.verify(first)
    assert not unverified_of(first).own()


def test_what_an_earlier_run_left_stays_when_a_later_one_sends_nothing_to_it(simulated: Simulated) -> None:
    first, second = simulated.opened("1"), simulated.opened("2")
    unverified_of(first).note(["orders"])
    unverified_of(second).note(["orders", "items"])
    unverified_of(second).note_not_sent(["orders", "items"])
    assert unverified_of(second).earlier() == {"orders": first.name}


def test_the_next_run_verifies_what_an_earlier_one_left(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.workspace.topic("items")
    first = simulated.planned("1")
    simulated.apply(first)
    simulated.cluster.hold_back(1)
    second = simulated.planned("2")
    assert len(unverified_of(second).earlier()) == 2
    (sentence,) = verify_left(second)
    assert sentence.startswith(
        f"run {first.name} ended before it had verified 2 topics that it may have changed; now: "
    )
    assert verify_left(second) == []
    assert not unverified_of(second).earlier()


# ---- In one process the steps hand their values on: no command reads what its own run has just written ----


def test_a_command_parses_nothing_that_its_own_run_has_written(simulated: Simulated, files_read: list[str]) -> None:
    for name in ("orders", "payments"):
        simulated.workspace.topic(name)
    commands = [
        ("plan", "--out", "plan.json"),
        ("apply", "plan.json"),
        ("plan", "--states"),
        ("verify", "plan.json"),
        ("verify",),
    ]
    found = dict[str, list[str]]()
    for command in commands:
        given = () if "plan.json" in command[1:2] else ("--environment", "local")
        ended = simulated.workspace.run(*command, *given)
        assert ended.status == 0, ended.err
        found[" ".join(command)] = [*files_read]
        files_read.clear()
    simulated.workspace.topic("orders", partitions=4)
    ended = simulated.workspace.run("apply", "--environment", "local", "--yes", "--format", "json")
    assert ended.status in (0, 4), ended.err
    found["apply"] = [*files_read]
    assert not {command: names for command, names in found.items() if names}
    assert len(found) == 6


def test_a_report_reads_neither_the_comparison_nor_the_topics_and_what_follows_it_fails_no_task(
    simulated: Simulated,
) -> None:
    simulated.workspace.topic("orders")
    run = simulated.planned()
    for name in ("delta.json", "desired.json"):
        run.store.write_text(name, "{")

    assert single_steps.report(run).ok
    after_task(run)

    assert any(note.startswith("what follows a run is left out: ") for note in reporting.run_report(run).notes)


# ---- What is left for the page of a run whose files are not valid ----


def test_a_validate_that_fails_leaves_what_it_found_and_the_next_one_takes_it_away(simulated: Simulated) -> None:
    simulated.workspace.write_environment()
    simulated.workspace.topic("orders", partitions="six")
    run = simulated.opened("1")
    with pytest.raises(SpecError):
        single_steps.validate(run)
    (found,) = run.store.read_value(DIAGNOSTICS_FILE, tuple[Diagnostic, ...])
    assert found.file.endswith("topics/tests/orders.yaml")
    assert "six" in found.summary
    simulated.workspace.topic("orders", partitions=6)
    single_steps.validate(run)
    assert not run.store.has(DIAGNOSTICS_FILE)


def test_files_of_a_bundle_are_named_as_in_their_repository(tmp_path: Path) -> None:
    topics = tmp_path / "versions" / "topics"
    topics.mkdir(parents=True)
    (tmp_path / "versions" / ".git").mkdir()
    read = os.path.relpath(topics)
    found = builders.diagnostic(f"orders is defined in {read}/b.yaml too", file=f"{read}/a.yaml")
    (named,) = diagnostics_named(topics, (found,))
    assert (named.file, named.summary) == ("topics/a.yaml", "orders is defined in topics/b.yaml too")
    assert [each.file for each in diagnostics_named(Path("topics"), (replace(found, file="topics/a.yaml"),))] == [
        "topics/a.yaml"
    ]


# ---- Which try of a task counts, by the journals that its tries have left ----


@pytest.mark.parametrize(
    ("own", "others", "is_overtaken"),
    [
        ("9", ["10"], True),
        ("10", ["9", "1", "2"], False),
        ("1", [], False),
        ("2", ["2"], False),
        ("2", ["x", ""], False),
    ],
)
def test_a_try_is_overtaken_by_one_with_a_larger_number(
    tmp_path: Path, own: str, others: list[str], is_overtaken: bool
) -> None:
    for name in (own, *others):
        (tmp_path / f"create-{name}.jsonl").touch()
    assert has_later_try(tmp_path / f"create-{own}.jsonl") is is_overtaken


# ---- While verify waits it says when something became better or worse, and else only from time to time ----


def seen(healthy: int, waiting_for: str = "") -> Progress:
    return Progress(healthy=healthy, topics=3, waiting_for=(waiting_for,) if waiting_for else ())


def test_two_texts_in_turn_are_said_every_five_seconds_and_not_each_time() -> None:
    clock, said = FakeClock(), list[str]()
    lines = ProgressLines(say=said.append, clock=Clock(clock, clock.sleep))

    for turn in range(27 * 4):
        lines.take(seen(0, "t: its configs differ" if turn % 2 else ""))
        clock.sleep(0.25)

    assert len(said) == 6
    assert set(said) <= {"verify: 0 of 3 topics are right", "verify: 0 of 3 topics are right; t: its configs differ"}


def test_what_becomes_right_or_wrong_is_said_at_once() -> None:
    clock, said = FakeClock(), list[str]()
    lines = ProgressLines(say=said.append, clock=Clock(clock, clock.sleep))

    for healthy in (0, 0, 2, 2, 1, 3):
        lines.take(seen(healthy))
        clock.sleep(0.1)

    assert [line.partition(" of")[0] for line in said] == ["verify: 0", "verify: 2", "verify: 1", "verify: 3"]
