"""On real brokers: a run with a change of each kind is taken back, and a topic deleted outside git comes back."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.git_bundle import WHO
from fixtures.live import cluster_spec, create_topics, look, remove_topics
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

pytestmark = pytest.mark.soak
NAMES = ("undo-bills", "undo-grown", "undo-old", "undo-new")
WEEK_MS = "604800000"


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.policy |= {"unattended": "destructive", "deleteActive": "allow"}
    yield workspace
    remove_topics(local_cluster, NAMES)


def commit(live: Workspace) -> None:
    live.write_environment()
    for words in (("init", "--quiet"), ("add", "topics"), (*WHO, "commit", "--quiet", "--message=Topics")):
        subprocess.run(["git", "-C", str(live.folder), *words], check=True, capture_output=True, timeout=60)


def test_a_run_is_taken_back_through_the_files_as_far_as_that_is_possible(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    live.topic("undo-bills", configs={"retention.ms": "7d"})
    for name in ("undo-grown", "undo-old"):
        live.topic(name)
    commit(live)
    assert live.plan().status == 0
    assert live.apply().status == 0
    live.topic("undo-bills", configs={"retention.ms": "1d", "segment.ms": "1h"})
    live.topic("undo-grown", partitions=2)
    live.topic("undo-new")
    live.tombstone("undo-old")
    commit(live)
    assert live.plan().status == 0
    changed = live.apply()
    assert changed.status == 0
    (undo,) = re.findall(r"^To take this run back: topicops (undo .*)$", changed.out, re.MULTILINE)
    lines = json.loads(live.run("audit", "topic", "undo-old", "--format", "json").out)["lines"]

    undone = live.run(*shlex.split(undo), "--out", "undo.json")

    assert undone.status == 0, undone.err
    first = undone.out.partition("Written to the files:")[0]
    assert all(name in first for name in ("undo-old: the topic was deleted", "undo-grown: 1 -> 2 partitions"))
    applied = live.run("apply", "undo.json")
    assert applied.status == 0, applied.err
    assert "undo-new.yaml: a tombstone takes the place of its spec" in undone.out
    assert "undo-new deleted" in applied.out
    assert "No changes." in live.plan("--only", "undo-*").out
    found = look(local_cluster).topics
    assert {name: topic.partitions for name, topic in found.items() if name in NAMES} == {
        "undo-bills": 1,
        "undo-grown": 2,
        "undo-old": 1,
    }
    assert found["undo-bills"].overrides == {"retention.ms": WEEK_MS}
    assert found["undo-old"].topic_id != lines[-1]["topic_id_before"]


def test_a_topic_deleted_with_another_tool_comes_back_as_a_create_that_says_so(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    create_topics(local_cluster.bootstrap_servers, NewTopic("undo-old", 1, 3))
    live.topic("undo-old")
    assert live.plan().status == 0
    identity = look(local_cluster).topics["undo-old"].identity
    remove_topics(local_cluster, ["undo-old"])

    planned = live.plan()

    assert "risk: notice, TOP430 deleted outside git" in planned.out
    assert f"note: the topic lived at an earlier snapshot (id {identity}, seen at " in planned.out
    assert live.apply().status == 0
    assert "undo-old" in look(local_cluster).topics
