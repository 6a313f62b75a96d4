"""Ctrl-C, SIGTERM and a kill, on a real process that applies to real brokers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import kill_points
from fixtures.killable import with_tests_on_path
from fixtures.live import cluster_spec, is_stopped, look, new_admin, remove_topics, until
from fixtures.workspace import Workspace
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.journal import open_intents, read_journal
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.runs.audit import chain_problems
from topicops_local.cluster import LocalCluster

TOPICS = ("signal-a", "signal-b", "signal-c")


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """Yield a workspace with a plan for three topics, one request each; they are gone after the test."""
    workspace.cluster = cluster_spec(local_cluster)
    workspace.apply_settings = {"topicsPerRequest": 1}
    for name in TOPICS:
        workspace.topic(name)
    planned = workspace.plan()
    assert planned.status == 0, planned.err
    yield workspace
    remove_topics(local_cluster, TOPICS)
    with ZooKeeperReader(local_cluster.zookeeper_hosts) as reader:
        until(lambda: all(traces.is_gone for traces in reader.traces(TOPICS).values()))


def start(point: str, action: str, *arguments: str) -> subprocess.Popen[str]:
    """Return ``topicops apply``, which gives itself a signal at a named point."""
    environment = with_tests_on_path() | {kill_points.POINT: point, kill_points.ACTION: action}
    return subprocess.Popen(
        [sys.executable, "-m", "fixtures.killable", "apply", "plan.json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def home() -> Path:
    return Path(os.environ["TOPICOPS_HOME"])


def journals() -> list[Path]:
    return sorted((home() / "runs").glob("*/*/journal-*.jsonl"))


def audited() -> list[str]:
    file = read_audit_log(home() / "audit", "local")
    assert [*chain_problems(file)] == []
    return [line.topic for line in file.lines]


@pytest.mark.parametrize(("action", "status"), [("int", 130), pytest.param("term", 143, marks=pytest.mark.soak)])
def test_the_first_signal_finishes_the_request_in_flight_and_reports(live: Workspace, action: str, status: int) -> None:
    out, err = (ended := start("during request create #2", action)).communicate(timeout=120)

    assert ended.returncode == status, err
    assert "stopping after the request in flight" in err
    assert out.startswith("Interrupted: 2 done, 1 not sent.")
    [journal] = journals()
    assert open_intents(read_journal(journal)) == ()
    assert audited() == ["signal-a", "signal-b"]


def test_the_second_signal_stops_at_once_and_the_next_run_settles_what_is_open(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    controller = look(local_cluster).controller_id
    assert controller is not None
    process = start("before request create #2", "stop")
    try:
        until(lambda: is_stopped(process.pid))
        process.send_signal(signal.SIGTERM)
        local_cluster.pause(controller)
        process.send_signal(signal.SIGCONT)
        time.sleep(1.5)
        assert process.poll() is None, "it waits for the request in flight"
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=20)[1]
    finally:
        process.kill()
        local_cluster.resume(controller)

    assert process.returncode == 143, err
    assert "Traceback" not in err
    [journal] = journals()
    assert [entry.topic for entry in open_intents(read_journal(journal))] == ["signal-b"]

    until(lambda: len((seen := look(local_cluster)).brokers) == 3 and seen.controller_id is not None)
    ended = live.apply("--lock-timeout", "60s")

    assert ended.status == 0, ended.err
    assert "ended before it knew what came of create signal-b" in ended.out
    assert open_intents(read_journal(journal)) == ()
    assert sorted(audited()) == sorted(TOPICS)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("after intent #2", marks=pytest.mark.soak),
        "after request create #2",
        pytest.param("after audit #2", marks=pytest.mark.soak),
    ],
)
def test_a_killed_run_is_explained_and_ended_by_the_next(live: Workspace, point: str) -> None:
    live.cluster["lease"] = "file"  # which is free at once
    live.write_environment()
    assert (killed := start(point, "kill")).wait(120) == -signal.SIGKILL, killed.communicate()

    ended = live.apply()

    assert ended.status == 0, ended.err
    effect = "it is not in effect" if point == "after intent #2" else "it is in effect"
    assert f"ended before it knew what came of create signal-b: {effect}" in ended.out
    expected = {"after intent #2": [TOPICS[0], "signal-b", *TOPICS[1:]]}.get(point, list(TOPICS))
    assert audited() == expected
    assert all(open_intents(read_journal(journal)) == () for journal in journals())
    assert list((home() / "unsettled" / "local").iterdir()) == []


def test_a_file_lease_keeps_apart_two_clones_and_two_environments_of_one_cluster(
    live: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.cluster["lease"] = "file"
    planned = live.plan()
    process = start("before request create #2", "stop")
    try:
        until(lambda: is_stopped(process.pid))
        clone = live.folder / "clone"
        shutil.copytree(live.folder / "topics", clone / "topics")
        local = clone / "topics/environments/local.yaml"
        local.with_name("other.yaml").write_text(local.read_text().replace("name: local", "name: other"))
        local.unlink()
        monkeypatch.chdir(clone)
        monkeypatch.delenv("TOPICOPS_HOME")
        other = live.run("plan", "--environment", "other", "--engine", "python", "--out", "plan.json")
        ended = live.apply()
    finally:
        process.kill()
        process.communicate()

    assert other.status == 0, other.err
    assert ended.status == 5, ended.out + ended.err
    assert f"pid {process.pid}" in ended.err
    assert "it does not stop a run of another host or account" in planned.out + planned.err


def test_a_journal_that_cannot_be_written_sends_nothing(live: Workspace, local_cluster: LocalCluster) -> None:
    (home() / "unsettled").parent.mkdir(parents=True, exist_ok=True)
    (home() / "unsettled").write_text("in the way")

    ended = live.apply()

    assert ended.status == 1, ended.err
    assert "nothing was sent" in ended.err
    admin = new_admin(local_cluster.bootstrap_servers)
    assert not set(TOPICS) & set(admin.list_topics(timeout=30).topics)
