"""The history by the commands: plans that see a difference begin and end, and homes that cannot be written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures.workspace import Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, config, lay, topic
from fixtures.zookeeper import Chroot

ROWS = {0: [1, 2, 3]}


@pytest.fixture
def project(workspace: Workspace, chroot: Chroot) -> Workspace:
    workspace.cluster = {**workspace.cluster, "id": CLUSTER_ID, "zookeeper": {"hosts": chroot.hosts}}
    workspace.topic("orders", configs={"retention.ms": "7d"})
    lay(chroot.client, {**BASE, "/brokers/topics/orders": topic(ROWS), **as_wanted()})
    return workspace


def as_wanted() -> dict[str, bytes]:
    return {"/config/topics/orders": config(retention_ms="604800000")}


def asked(workspace: Workspace, *arguments: str) -> dict[str, Any]:
    ended = workspace.run(*arguments, "--environment", "local", "--engine", "python", "--format", "json")
    assert (ended.status, ended.err) == (0, "")
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_plans_see_a_difference_begin_and_end(project: Workspace, chroot: Chroot) -> None:
    assert project.plan().status == 0
    lay(chroot.client, {"/config/topics/orders": config(retention_ms="5")})
    project.plan()
    project.plan()
    lay(chroot.client, as_wanted())
    project.plan()

    [found] = asked(project, "drift", "--since", "1d")["differences"]

    runs = sorted(f"cli/{folder.name}" for folder in (project.folder / "home/runs/cli").iterdir())
    assert {name: found[name] for name in ("topic", "class", "field", "desired", "live", "owner", "runs")} == {
        "topic": "orders",
        "class": "different",
        "field": "configs.retention.ms",
        "desired": "604800000",
        "live": "5",
        "owner": "team-tests",
        "runs": 2,
    }
    assert [found[name]["run"] in runs for name in ("began", "last", "ended")] == [True] * 3
    assert found["began"]["at"] <= found["last"]["at"] <= found["ended"]["at"]
    assert asked(project, "drift", "--since", "1d", "--only", "pay*")["differences"] == []
    assert asked(project, "history", "topic", "orders")["differences"] == [found]
    assert asked(project, "history", "quality")["failing"] == []


def test_the_text_names_runs_and_commits_and_the_exit_status_says_whether_a_difference_lasts(
    project: Workspace, chroot: Chroot
) -> None:
    project.topic("gone")
    project.plan()

    ended = project.run("drift", "-e", "local", "--since", "36h", "--engine", "python", "--detailed-exitcode")

    [first, began, still, empty, counts] = ended.out.splitlines()
    assert first == "gone: described in a file, but not live (owner team-tests)"
    assert began.startswith("  began 20")
    assert ", run cli/20" in began
    assert began.endswith(", commit none")
    assert still == began.replace("began", "still so")
    assert (empty, ended.status) == ("", 2)
    assert counts.startswith("1 difference since 20")
    assert counts.endswith(": 0 ended, 1 still there.")


def test_a_history_that_cannot_be_written_is_a_warning_and_the_plan_is_made(project: Workspace) -> None:
    home = project.folder / "home"
    home.mkdir()
    (home / "history").write_text("in the way")

    ended = project.plan()

    assert ended.status == 0
    assert "this run is not in the history" in ended.err
    [notes] = home.rglob("notes.json")
    assert "this run is not in the history" in notes.read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("drift", "--since", "7d"), "no history of local; no run of this TOPICOPS_HOME has left one"),
        pytest.param(("history", "topic", "t"), "no history of local", id="topic"),
        pytest.param(("history", "quality"), "no history of local", id="quality"),
    ],
)
def test_an_environment_without_history_is_an_error(
    project: Workspace, arguments: tuple[str, ...], problem: str
) -> None:
    ended = project.run(*arguments, "--environment", "local")
    assert ended.status == 1
    assert problem in ended.err


def test_a_time_that_cannot_be_read_is_an_error_that_says_how_to_write_it(project: Workspace) -> None:
    project.plan()
    ended = project.run("drift", "--environment", "local", "--since", "last week")
    assert (ended.status, ended.err) == (
        1,
        "topicops: --since last week: write 36h, 7d, 2026-01-31 or 2026-01-31T08:00:00Z\n",
    )


def test_a_damaged_file_is_a_warning_on_stderr(project: Workspace) -> None:
    project.plan()
    spool: Path = project.folder / "home/history/spool/environment=local/cli%2Ftorn.json"
    spool.parent.mkdir(parents=True, exist_ok=True)
    spool.write_text("{")

    ended = project.run("drift", "-e", "local", "--since", "1d", "--engine", "python")

    assert ended.status == 0
    assert ended.err == f"warning: {spool}: left out: Input data was truncated; move it away\n"


def test_a_plan_without_spark_reads_no_pyarrow_in(project: Workspace) -> None:
    """It costs half a plan of a small cluster; the run's rows wait in the spool."""
    import subprocess

    project.write_environment()
    code = (
        "import sys; from topicops.cli import run; "
        "status = run(['plan', '--environment', 'local', '--engine', 'python']); "
        "sys.exit(status or 'pyarrow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=project.folder, check=True, timeout=60)

    [path] = (project.folder / "home/history/spool/environment=local").glob("*.json")
    assert json.loads(path.read_text())["environment"] == "local"
