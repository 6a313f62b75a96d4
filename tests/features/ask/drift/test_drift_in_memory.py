"""Drift on a simulated cluster: what it remembers, and what it reads."""

from __future__ import annotations

import json

from fixtures.simulated import Simulated


def test_a_topic_that_was_deleted_outside_git_says_so(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))
    simulated.planned()
    simulated.cluster.remove_topic("orders")

    found = simulated.workspace.run("drift", "--environment", "local")
    assert found.status == 0, found.err
    assert "orders: described in a file, but not live; deleted outside git (id " in found.out
    (entry,) = json.loads(simulated.workspace.run("drift", "--environment", "local", "--format", "json").out)["drift"]
    assert (entry["kind"], entry["seen"].keys()) == ("missing", {"identity", "at"})


def test_the_command_parses_nothing_that_its_own_run_has_written(simulated: Simulated, files_read: list[str]) -> None:
    simulated.workspace.topic("orders")
    ended = simulated.workspace.run("drift", "--environment", "local")
    assert (ended.status, files_read) == (0, []), ended.err
