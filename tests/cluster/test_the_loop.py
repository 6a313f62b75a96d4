"""Plan, apply and verify on three real brokers, through the commands that people type."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from fixtures.cluster import running
from fixtures.live import cluster_spec, create_topics, look, new_admin, remove_topics, until
from fixtures.workspace import Workspace
from topicops.model.cluster.snapshot import LiveTopic
from topicops_local.cluster import LocalCluster

KINDS = {"growing": 20, "drifting": 20, "going": 10}
"""Topics that are there before the hundred changes."""


@pytest.fixture(scope="module")
def cluster(fast_folder: Path) -> Iterator[LocalCluster]:
    """A cluster of this module's own: its tests count all topics."""
    with running(fast_folder / "loop-cluster") as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: LocalCluster) -> AdminClient:
    return new_admin(cluster.bootstrap_servers)


@pytest.fixture
def live(cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """Yield the workspace of an empty cluster; whatever is on it after the test is removed."""
    workspace.cluster = cluster_spec(cluster)
    yield workspace
    remove_topics(cluster, look(cluster).topics)


def topics_of(cluster: LocalCluster) -> Mapping[str, LiveTopic]:
    return look(cluster).topics


def by_hand(
    cluster: LocalCluster, *names: str, partitions: int = 1, replication_factor: int = 3, **configs: str
) -> None:
    new = [NewTopic(name, partitions, replication_factor, config=configs) for name in names]
    create_topics(cluster.bootstrap_servers, *new)


@pytest.mark.soak
def test_a_hundred_changes_of_all_kinds_are_applied_and_verified_and_nothing_is_left(
    live: Workspace, cluster: LocalCluster
) -> None:
    growing, drifting, going = ([f"{kind}-{n:02}" for n in range(count)] for kind, count in KINDS.items())
    by_hand(cluster, *growing, partitions=2)
    by_hand(cluster, *drifting, **{"retention.ms": "3600000"})
    by_hand(cluster, *going)
    for n in range(50):
        live.topic(f"new-{n:02}", partitions=3, configs={"min.insync.replicas": "2"})
    for name in growing:
        live.topic(name, partitions=4)
    for name in drifting:
        live.topic(name, configs={"retention.ms": "2h"})
    for name in going:
        live.tombstone(name)
    before = topics_of(cluster)

    planned = live.run("plan", "--environment", "local", "--out", "plan.json")
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    applied = live.apply("--approve", plan["fingerprint"])

    assert "Plan: 50 to create, 20 to expand, 20 to configure, 10 to delete" in planned.out
    assert applied.status == 0, applied.out + applied.err
    assert "Applied and verified: 100 done." in applied.out
    after = topics_of(cluster)
    assert sorted(after) == sorted([*growing, *drifting, *(f"new-{n:02}" for n in range(50))])
    planned_rows = {c["topic"]: c["after"]["assignment"] for c in plan["changes"] if c["actions"] == ["create"]}
    assert {t: {str(p): list(r) for p, r in after[t].assignment.items()} for t in planned_rows} == planned_rows
    for name in growing:
        assert after[name].partitions == 4
        assert {p: after[name].assignment[p] for p in (0, 1)} == before[name].assignment
    assert {after[name].overrides["retention.ms"] for name in drifting} == {"7200000"}
    assert all(len(s.isr) == 3 for topic in after.values() for s in (topic.states or {}).values())

    again = live.plan("--detailed-exitcode")
    assert (again.status, "No changes." in again.out) == (0, True)


def test_first_contact_changes_nothing_and_lists_what_is_there(live: Workspace, cluster: LocalCluster) -> None:
    by_hand(cluster, *(f"old-{n:02}" for n in range(40)), replication_factor=1)

    planned = live.plan("--detailed-exitcode")

    assert planned.status == 0
    assert "40 unmanaged" in planned.out
    assert json.loads(Path("plan.json").read_text(encoding="utf-8"))["changes"] == []


def test_a_spec_that_is_removed_deletes_nothing(live: Workspace, cluster: LocalCluster) -> None:
    live.topic("kept")
    live.plan()
    assert live.apply().status == 0
    live.path_of("kept").unlink()

    planned = live.plan()
    live.apply()

    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert (plan["changes"], plan["unmanaged"]) == ([], ["kept"])
    assert "1 unmanaged" in planned.out
    assert "kept" in topics_of(cluster)


def test_what_is_impossible_is_blocked_with_a_way_out_and_the_rest_goes_ahead(
    live: Workspace, cluster: LocalCluster
) -> None:
    by_hand(cluster, "shrinking", partitions=6)
    by_hand(cluster, "thinning")
    live.topic("shrinking", partitions=3)
    live.topic("thinning", replicationFactor=2)
    live.topic("fine")
    live.policy = {"reassign": "refuse"}

    planned = live.plan()
    applied = live.apply()

    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    blocked = {b["topic"]: b for b in plan["blocked"]}
    assert {topic: b["codes"] for topic, b in blocked.items()} == {"shrinking": ["TOP401"], "thinning": ["TOP402"]}
    assert all(b["way_out"] and b["way_out"].split(" ")[0] in planned.out for b in blocked.values())
    assert json.loads(blocked["thinning"]["reassignment"])["partitions"][0]["topic"] == "thinning"
    assert applied.status == 0
    live_topics = topics_of(cluster)
    assert (live_topics["shrinking"].partitions, live_topics["thinning"].replication_factors) == (6, {3})
    assert "fine" in live_topics


@pytest.mark.parametrize(
    ("others", "status"), [pytest.param([], 4, id="alone"), pytest.param(["other"], 6, id="beside another")]
)
def test_a_topic_that_moved_since_the_plan_is_refused_with_old_and_new_value(
    live: Workspace, cluster: LocalCluster, admin: AdminClient, others: list[str], status: int
) -> None:
    by_hand(cluster, "moving", partitions=2)
    live.topic("moving", partitions=4)
    for name in others:
        live.topic(name)
    live.plan()
    admin.create_partitions([NewPartitions("moving", 3)])["moving"].result(60)

    applied = live.apply()

    assert applied.status == status
    assert "partitions: planned 2, live 3" in applied.out
    assert topics_of(cluster)["moving"].partitions == 3
    assert topics_of(cluster).keys() >= set(others)


def test_a_paused_broker_that_is_still_registered_is_not_healthy(live: Workspace, cluster: LocalCluster) -> None:
    live.topic("watched", partitions=3)
    live.plan()
    assert live.apply().status == 0
    cluster.pause(3)
    try:
        verified = live.run("verify", "--environment", "local")
    finally:
        cluster.resume(3)
        time.sleep(3)  # if its session ended meanwhile, the broker registers again now
        until(lambda: live.run("verify", "--environment", "local").status == 0)

    assert verified.status == 7
    # Only registered brokers are asked. Its session may end while verify goes on to look at the logs.
    assert "V14: broker 3 gave no answer in time" in verified.out


def test_a_broker_killed_in_the_middle_leaves_a_report_and_running_again_ends_verified(
    live: Workspace, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(12):
        live.topic(f"many-{n:02}", partitions=3)
    live.verify = {"leaders": "10s", "isr": "10s", "metadata": "10s"}
    live.plan()
    seen: list[str] = []

    def kill_once_it_is_done(lines: str) -> None:
        if not seen and (done := [line for line in lines.splitlines() if line.endswith(": done")]):
            seen.extend(done)
            cluster.kill(2)

    monkeypatch.setattr("topicops.cli.shared_options.progress", kill_once_it_is_done)
    broken = live.apply()
    cluster.start_broker(2)
    live.plan()
    again = live.apply()

    assert broken.status in (6, 7), broken.out + broken.err
    assert "Done:" in broken.out
    assert "Next:" in broken.out
    assert again.status == 0, again.out + again.err
    assert live.plan("--detailed-exitcode").status == 0
    until(lambda: live.run("verify", "--environment", "local").status == 0)
