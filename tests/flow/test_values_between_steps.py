"""In one process the steps hand their values on: no command reads what its own run has just written."""

from __future__ import annotations

import pytest

from fixtures.simulated import Simulated
from topicops.edges.home.artifacts import ArtifactStore
from topicops.flow import reporting, single_steps
from topicops.plugged import after_task


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files of runs that are read from now on."""
    names: list[str] = []
    read = ArtifactStore._read

    def noted(store: ArtifactStore, name: str) -> bytes:
        names.append(name)
        return read(store, name)

    monkeypatch.setattr(ArtifactStore, "_read", noted)
    return names


def test_a_command_parses_nothing_that_its_own_run_has_written(simulated: Simulated, read: list[str]) -> None:
    for name in ("orders", "payments"):
        simulated.workspace.topic(name)
    commands = [
        ("drift",),
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
        found[" ".join(command)] = [*read]
        read.clear()
    simulated.workspace.topic("orders", partitions=4)
    ended = simulated.workspace.run("apply", "--environment", "local", "--yes", "--format", "json")
    assert ended.status in (0, 4), ended.err
    found["apply"] = [*read]
    assert not {command: names for command, names in found.items() if names}
    assert len(found) == 7


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
