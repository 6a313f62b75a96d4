"""Plan, apply, a kill in the middle, apply again and verify, with a home on a file system that locks as NFS does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import kill_points
from fixtures.killable import with_tests_on_path
from fixtures.live import cluster_spec, look, remove_topics
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

LOCKS = Path(__file__).parents[1] / "fixtures" / "nfs_locks"
NEW, OLD = ("on-nfs-a", "on-nfs-b"), "on-nfs-old"


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """Two topics to create, one to delete, one request each."""
    workspace.cluster = cluster_spec(local_cluster)
    workspace.apply_settings = {"topicsPerRequest": 1}
    workspace.policy = {"unattended": "destructive"}
    for name in (*NEW, OLD):
        workspace.topic(name)
    workspace.write_environment()
    yield workspace
    remove_topics(local_cluster, {*NEW, OLD})


def command(*arguments: str, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    """Return the command in a process of its own, in which every lock is NFS's."""
    environment = with_tests_on_path() | {kill_points.POINT: kill_at, "NFS_LOCKS_SEEN": str(Path("locks").absolute())}
    environment["PYTHONPATH"] = f"{LOCKS}{os.pathsep}{environment['PYTHONPATH']}"
    line = [sys.executable, "-m", "fixtures.killable", *arguments]
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120, check=False)


def plan(*more: str) -> None:
    planned = command("plan", "--environment", "local", "--engine", "python", "--out", "plan.json", *more)
    assert planned.returncode == 0, planned.stderr


@pytest.mark.soak
@pytest.mark.parametrize("lease", ["file", "zookeeper"])
def test_the_whole_loop_runs_with_a_home_whose_locks_are_those_of_nfs(
    live: Workspace, local_cluster: LocalCluster, lease: str
) -> None:
    live.cluster["lease"] = lease
    live.write_environment()
    plan("--only", OLD)
    assert (first := command("apply", "plan.json")).returncode == 0, first.stderr
    live.tombstone(OLD)
    plan()

    killed = command("apply", "plan.json", kill_at="after request create #2")
    applied = command("apply", "plan.json", "--lock-timeout", "40s")
    verified = command("verify", "--environment", "local")
    audited = command("audit", "verify")

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert applied.returncode == 0, applied.stderr
    assert f"ended before it knew what came of create {NEW[1]}: it is in effect" in applied.stdout
    assert (verified.returncode, audited.returncode) == (0, 0), verified.stdout + audited.stdout
    assert {*look(local_cluster).topics} & {*NEW, OLD} == {*NEW}
    home = os.environ["TOPICOPS_HOME"] + "/"
    locked = [line.removeprefix(home) for line in Path("locks").read_text().splitlines() if line.startswith(home)]
    assert {Path(line).parts[0] for line in locked} == {"audit", "history", "unsettled"} | (
        {"lease"} if lease == "file" else set()
    )
