"""A plan of class production says when the audit log will name no commit for what it sends."""

from __future__ import annotations

import subprocess

import pytest

from fixtures.simulated import CLUSTER_ID, Simulated

NOTE = "the audit log will name no commit for these changes: "


def said(simulated: Simulated, run_id: str) -> list[str]:
    plan = simulated.planned(run_id).read_plan()
    return [warning for warning in plan.change_set.warnings if warning.startswith(NOTE)]


@pytest.fixture
def production(simulated: Simulated) -> Simulated:
    workspace = simulated.workspace
    workspace.cluster = {**workspace.cluster, "class": "production", "id": CLUSTER_ID, "kafkaVersion": "3.9"}
    workspace.topic("a")
    return simulated


def git(simulated: Simulated, *arguments: str) -> None:
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    subprocess.run(["git", *who, *arguments], cwd=simulated.workspace.folder, check=True, capture_output=True)


def test_changes_of_files_that_are_not_committed_are_noted_until_they_are(production: Simulated) -> None:
    assert len(said(production, "no git")) == 1

    git(production, "init")
    git(production, "add", "topics")
    git(production, "commit", "-m", "A topic")
    assert said(production, "committed") == []

    production.workspace.topic("b")
    assert len(said(production, "edited")) == 1


def test_without_a_change_there_is_no_note(production: Simulated) -> None:
    production.workspace.path_of("a").unlink()
    assert said(production, "nothing to send") == []


def test_a_sandbox_has_no_such_note(simulated: Simulated) -> None:
    simulated.workspace.topic("a")
    assert said(simulated, "sandbox") == []
