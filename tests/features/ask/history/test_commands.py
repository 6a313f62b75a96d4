"""The history by the commands: runs that add themselves, questions about them, and homes that cannot be written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fakes.builders import owner_counts
from fixtures.simulated import Simulated
from topicops.features.ask.history import recording

ROWS = ((1, 2, 3),)


@pytest.fixture
def shop(simulated: Simulated) -> Simulated:
    """One topic, as its file wants it."""
    simulated.workspace.topic("orders", configs={"retention.ms": "7d"})
    simulated.cluster.put_topic("orders", *ROWS, configs={"retention.ms": "604800000"})
    return simulated


def asked(shop: Simulated, *arguments: str) -> dict[str, Any]:
    ended = shop.workspace.run(*arguments, "--environment", "local", "--format", "json")
    assert (ended.status, ended.err) == (0, "")
    found: dict[str, Any] = json.loads(ended.out)
    return found


def lines_of(shop: Simulated) -> list[dict[str, Any]]:
    text = (shop.workspace.folder / "home/history/local.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_plans_see_a_difference_begin_and_end(shop: Simulated) -> None:
    assert shop.workspace.plan().status == 0
    shop.cluster.set_configs("orders", {"retention.ms": "5"})
    shop.workspace.plan()
    shop.workspace.plan()
    shop.cluster.set_configs("orders", {"retention.ms": "604800000"})
    shop.workspace.plan()

    [span] = asked(shop, "drift", "--since", "1d")["spans"]

    _, second, _, last = [line["run"] for line in lines_of(shop)]
    assert span["what"] == {
        "kind": "difference",
        "topic": "orders",
        "class": "different",
        "field": "configs.retention.ms",
        "desired": "604800000",
        "live": "5",
        "owner": "team-tests",
    }
    assert (span["began"]["run"], span["ended"]["run"]) == (second, last)
    assert span["began"]["at"] < span["ended"]["at"]
    assert asked(shop, "drift", "--since", "1d", "--only", "pay*")["spans"] == []
    assert asked(shop, "drift", "--since", "2999-01-01")["spans"] == []
    assert asked(shop, "audit", "past", "orders")["spans"] == [span]
    assert asked(shop, "audit", "past", "other")["spans"] == []
    assert asked(shop, "audit", "quality")["spans"] == []


def test_the_exit_status_says_whether_a_difference_lasts(shop: Simulated) -> None:
    shop.workspace.topic("gone")
    shop.workspace.plan()

    ended = shop.workspace.run("drift", "-e", "local", "--since", "36h", "--detailed-exitcode")

    [first, began, still, empty, counts] = ended.out.splitlines()
    assert first == "gone: described in a file, but not live (owner team-tests)"
    assert began.startswith("  began 20")
    assert (still, empty, ended.status) == ("  still there", "", 2)
    assert ": 0 ended, 1 still there at 20" in counts


def test_a_line_has_the_numbers_of_its_run_and_a_table_by_owner(shop: Simulated) -> None:
    shop.workspace.topic("new")
    shop.cluster.put_topic("stray", *ROWS)
    shop.workspace.run("apply", "-e", "local", "--yes")

    planned, applied = lines_of(shop)

    assert planned["run"] == applied["run"]
    assert (planned["mode"], planned["outcomes"], planned["in_place"]) == ("plan", [], 0)
    assert (applied["mode"], applied["in_place"], applied["not_in_place"]) == ("apply", 1, 0)
    assert applied["outcomes"] == [{"topic": "new", "action": "create", "status": "done", "message": ""}]
    assert applied["plan"] == {"changes": 1, "held": 0, "skipped": 0, "blocked": 0}
    assert {name: count for name, count in applied["classes"].items() if count} == {
        "missing": 1, "same": 1, "unmanaged": 1,
    }  # fmt: skip
    ours = owner_counts("team-tests", domain="tests", topics=2, partitions=1, missing=1, unhealthy=0)
    assert applied["owners"] == [asdict(ours), asdict(owner_counts(None, topics=1, partitions=1, unhealthy=0))]
    assert (applied["topics"], applied["partitions"], applied["brokers"]) == (2, 2, 3)
    assert {trouble["topic"] for trouble in planned["opened"]} == {"new", "stray"}
    assert (applied["opened"], applied["closed"]) == ([], [])
    assert asked(shop, "audit", "past", "orders")["outcomes"] == []
    [outcome] = asked(shop, "audit", "past", "new")["outcomes"]
    assert (outcome["run"], outcome["action"], outcome["status"]) == (applied["run"], "create", "done")


def test_each_command_that_keeps_a_run_records_it(shop: Simulated) -> None:
    shop.cluster.set_configs("orders", {"retention.ms": "86400000"})  # a run changes it, and undo edits the file
    commands = [
        "plan -e local --engine python --out plan.json", "apply plan.json", "verify -e local", "undo 1 -e local",
        "plan -e all --engine python", "drift -e all --engine python", "verify -e all",
    ]  # fmt: skip
    shop.workspace.write_environment()
    local = Path("topics/environments/local.yaml")
    run = shop.planned()
    shop.apply(run)
    for number, command in enumerate(commands):
        if number == 4:
            local.with_name("second.yaml").write_text(local.read_text().replace("name: local", "name: second"))
        shop.workspace.run(*command.split())
    assert [line["mode"] for line in lines_of(shop)] == ["plan", "apply", "verify", "plan", "plan", "drift", "verify"]
    second = (shop.workspace.folder / "home/history/second.jsonl").read_text().splitlines()
    assert [json.loads(line)["mode"] for line in second] == ["plan", "drift", "verify"]


def test_a_plan_of_some_topics_closes_nothing_of_a_topic_whose_file_has_errors(shop: Simulated) -> None:
    shop.cluster.set_configs("orders", {"retention.ms": "5"})
    shop.workspace.topic("other")
    shop.workspace.plan()
    shop.workspace.path_of("orders").write_text("no topic: [")
    shop.workspace.plan("--only", "other")

    assert [(line["opened"], line["closed"]) for line in lines_of(shop)[1:]] == [([], [])]
    lasting = asked(shop, "drift", "--since", "1d")["spans"]
    assert [(span["what"]["topic"], span["ended"]) for span in lasting] == [("orders", None), ("other", None)]


def test_a_history_that_cannot_be_written_is_a_warning_and_the_plan_is_made(shop: Simulated) -> None:
    home = shop.workspace.folder / "home"
    home.mkdir()
    (home / "history").write_text("in the way")

    ended = shop.workspace.plan()

    assert ended.status == 0
    assert "this run is not in the history" in ended.err
    [notes] = home.rglob("notes.json")
    assert "this run is not in the history" in notes.read_text()


def test_an_error_that_nobody_expects_does_not_fail_the_run(shop: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_line_of", lambda *_: 1 / 0)
    ended = shop.workspace.plan()
    assert ended.status == 0
    assert "this run is not in the history: internal error: ZeroDivisionError" in ended.err


@pytest.mark.parametrize(
    "arguments", ["drift --since 7d", "history topic t", "history quality", "history export --to out"]
)
def test_an_environment_without_history_is_an_error(shop: Simulated, arguments: str) -> None:
    ended = shop.workspace.run(*arguments.split(), "--environment", "local")
    assert ended.status == 1
    assert "no history of local; no run of this TOPICOPS_HOME has left one" in ended.err


def test_a_time_that_cannot_be_read_is_an_error_that_says_how_to_write_it(shop: Simulated) -> None:
    shop.workspace.plan()
    ended = shop.workspace.run("drift", "--environment", "local", "--since", "last week")
    assert (ended.status, ended.err) == (
        1,
        "topicops: --since last week: write 36h, 7d, 2026-01-31 or 2026-01-31T08:00:00Z\n",
    )


@pytest.mark.edges
def test_export_writes_the_tables_of_all_environments_and_names_lines_that_it_cannot_read(shop: Simulated) -> None:
    folder = shop.workspace.folder
    assert "no run of this TOPICOPS_HOME has left a history" in shop.workspace.run("audit", "export", "--to", "x").err
    shop.workspace.plan()
    history = folder / "home/history/local.jsonl"
    (history.parent / "other.jsonl").write_text(history.read_text() + "{\n")

    ended = shop.workspace.run("audit", "export", "--to", "out")

    assert (ended.status, ended.out) == (0, "runs: 2 rows\nowners: 2 rows\noutcomes: 0 rows\ntroubles: 0 rows\n")
    assert ended.err.startswith(f"warning: {history.parent}/other.jsonl:2: left out: ")
    assert {file.name for file in (folder / "out").iterdir()} == {
        "runs.parquet", "owners.parquet", "outcomes.parquet", "troubles.parquet",
    }  # fmt: skip


def test_a_damaged_line_is_a_warning_on_stderr(shop: Simulated) -> None:
    shop.workspace.plan()
    history = shop.workspace.folder / "home/history/local.jsonl"
    with history.open("a") as file:
        file.write("{")

    ended = shop.workspace.run("drift", "-e", "local", "--since", "1d")

    assert ended.status == 0
    assert ended.err == f"warning: {history}:2: left out: Input data was truncated\n"
