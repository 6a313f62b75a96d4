"""Drift: every way in which the cluster can be otherwise than the files, and that looking changes nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fixtures.workspace import Ended, Workspace
from fixtures.znode_tree import BASE, CLUSTER_ID, config, lay, topic
from fixtures.zookeeper import Chroot
from topicops.flow import single_steps
from topicops.flow.runs.run import open_run
from topicops.steps.planning.diff import counted

pytestmark = pytest.mark.edges

ROWS = {0: [1, 2, 3]}


@pytest.fixture
def drifted(workspace: Workspace, chroot: Chroot) -> Workspace:
    """One topic as its file says, and a paused one that is not."""
    workspace.cluster = {**workspace.cluster, "id": CLUSTER_ID, "zookeeper": {"hosts": chroot.hosts}}
    workspace.topic("same", configs={"retention.ms": "7d"})
    workspace.topic("paused", partitions=9)
    path = workspace.path_of("paused")
    pause = "lifecycle: {state: paused, reason: Wait., until: 2999-01-01T00:00:00Z}\n"
    path.write_text(path.read_text() + pause)
    znodes = {
        "/brokers/topics/same": topic(ROWS),
        "/config/topics/same": config(retention_ms=" 604800000"),
        "/brokers/topics/paused": topic(ROWS),
        "/brokers/topics/__consumer_offsets": topic(ROWS),
    }
    lay(chroot.client, {**BASE, **znodes})
    return workspace


def run(workspace: Workspace, *arguments: str) -> Ended:
    return workspace.run("drift", "--environment", "local", "--detailed-exitcode", *arguments)


def found(workspace: Workspace) -> list[dict[str, Any]]:
    ended = run(workspace, "--format", "json")
    assert ended.status == 2, ended.err
    entries: list[dict[str, Any]] = json.loads(ended.out)["drift"]
    return entries


def test_a_cluster_as_the_files_say_has_no_drift(drifted: Workspace) -> None:
    ended = run(drifted)

    assert ended.status == 0
    assert re.fullmatch(r"No drift: the cluster agrees with the files of \d topics\.\n", ended.out)


def test_a_glob_that_matches_nothing_is_an_error_and_no_good_news(drifted: Workspace) -> None:
    for glob in ("shop", "hans*"):
        ended = run(drifted, "--only", glob)
        assert (ended.status, ended.out) == (1, "")
        assert f"--only {glob} matches no topic that the files describe or that is live" in ended.err


def test_values_changed_by_hand_are_shown_with_both_values_and_their_place(drifted: Workspace, chroot: Chroot) -> None:
    drifted.topic(
        "hand", partitions=2, assignment={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": "1d", "segment.ms": None}
    )
    lay(
        chroot.client,
        {
            "/brokers/topics/hand": topic({0: [1, 2], 1: [2, 3, 1], 2: [3, 1]}),
            "/config/topics/hand": config(retention_ms="5", segment_ms="3600000", compression_type="lz4"),
        },
    )

    entries = found(drifted)

    assert [(e["kind"], e["field"], e["wanted"], e["live"]) for e in entries] == [
        ("changed", "partitions", "2", "3"),
        ("changed", "replicationFactor", "2", "2 and 3"),
        ("changed", "assignment", "1:2,2:3", "1:2,2:3:1,3:1"),
        ("unlisted", "configs.compression.type", None, "lz4"),
        ("changed", "configs.retention.ms", "86400000", "5"),
        ("changed", "configs.segment.ms", None, "3600000"),
    ]
    lines = drifted.path_of("hand").read_text().split("\n")
    retention = next(entry for entry in entries if entry["field"] == "configs.retention.ms")
    assert retention["file"] == "topics/tests/hand.yaml"
    assert "retention.ms: 1d" in lines[retention["line"] - 1]


def test_topics_on_one_side_only_are_drift_and_protected_ones_are_not(drifted: Workspace, chroot: Chroot) -> None:
    drifted.topic("gone")
    drifted.tombstone("still-there")
    drifted.tombstone("really-gone")
    lay(chroot.client, {f"/brokers/topics/{name}": topic(ROWS) for name in ("nobodys", "still-there")})

    assert [(entry["topic"], entry["kind"]) for entry in found(drifted)] == [
        ("gone", "missing"),
        ("nobodys", "unmanaged"),
        ("still-there", "retired"),
    ]


def test_a_topic_that_is_marked_for_deletion_is_being_deleted_and_nothing_else(
    drifted: Workspace, chroot: Chroot
) -> None:
    drifted.tombstone("retired")
    marked = {f"/admin/delete_topics/{name}": "" for name in ("same", "paused", "retired")}
    lay(chroot.client, {"/brokers/topics/retired": topic(ROWS), "/config/topics/same": config(flush_ms="2"), **marked})

    assert [(entry["topic"], entry["kind"]) for entry in found(drifted)] == [
        ("retired", "being deleted"),
        ("same", "being deleted"),
    ]


def test_the_text_has_a_line_for_each_difference_and_counts_topics(drifted: Workspace, chroot: Chroot) -> None:
    drifted.topic("gone")
    lay(
        chroot.client,
        {"/config/topics/same": config(segment_ms="1", flush_ms="2"), "/brokers/topics/odd\u00a0": topic(ROWS)},
    )

    ended = run(drifted, "--only", "[sog]*")

    assert ended.status == 2
    assert ended.out.splitlines() == [
        "gone: described in a file, but not live (topics/tests/gone.yaml:4)",
        "odd\\xa0: live, but no file describes it; to keep it: topicops import --only 'odd\\xa0'",
        "same: flush.ms: 2 live, but no file names it (topics/tests/same.yaml:4); to keep it: topicops adopt same",
        "same: retention.ms: 604800000 in the files, not set live (topics/tests/same.yaml:9); "
        "to keep it: topicops adopt same",
        "same: segment.ms: 1 live, but no file names it (topics/tests/same.yaml:4); to keep it: topicops adopt same",
        "",
        "Drift, in topics: 1 changed, 1 unlisted, 1 missing, 1 unmanaged.",
    ]


def test_looking_leaves_no_trace(drifted: Workspace) -> None:
    drifted.write_environment()
    before = sorted(path for path in drifted.folder.rglob("*"))

    ended = drifted.run("drift", "--environment", "local")

    assert ended.status == 0
    assert sorted(path for path in drifted.folder.rglob("*")) == before


def test_a_run_keeps_the_same_drift_and_says_a_line_for_each_difference(drifted: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, {"/brokers/topics/stray": topic(ROWS)})
    drifted.topic("new")
    drifted.write_environment()
    said: list[str] = []
    topics = drifted.folder / "topics"
    step = open_run(environment="local", topics=topics, group="topic_drift_local", run_id="1", progress=said.append)
    single_steps.validate(step)
    single_steps.snapshot(step)
    single_steps.diff(step)

    counts = counted(single_steps.record_drift(step).drift)

    assert json.loads(step.store.read_text("drift.json"))["drift"] == found(drifted)
    assert (counts["missing"], counts["unmanaged"], counts["changed"]) == (1, 1, 0)
    missing, *others = said[0].splitlines()  # all in one record of the task's log
    assert missing.startswith("new: described in a file, but not live (")
    assert others == [
        "stray: live, but no file describes it; to keep it: topicops import --only stray",
        "Drift, in topics: 1 missing, 1 unmanaged.",
    ]


def test_the_drift_of_a_narrowed_run_is_that_of_its_topics(drifted: Workspace, chroot: Chroot) -> None:
    lay(chroot.client, {"/brokers/topics/stray": topic(ROWS)})
    drifted.write_environment()
    topics = drifted.folder / "topics"
    step = open_run(environment="local", topics=topics, group="topic_drift_local", run_id="1")
    single_steps.validate(step)
    single_steps.snapshot(step)
    single_steps.diff(step)
    assert single_steps.record_drift(step, only="other*").drift == ()
