"""What is planned is what brokers then have; and ``kafka`` placement is what they would have done themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic

from fixtures.kafka_tool import kafka_reassign_partitions
from fixtures.live import cluster_spec, create_topics, look, new_admin, until
from fixtures.workspace import Workspace
from topicops.model.cluster.snapshot import Assignment
from topicops_local.cluster import LocalCluster

Rows = Mapping[int, Sequence[int]]


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Workspace:
    workspace.cluster = cluster_spec(local_cluster)
    return workspace


def create(cluster: LocalCluster, rows: Mapping[str, Sequence[Sequence[int]]]) -> None:
    new = [NewTopic(name, len(given), replica_assignment=[list(row) for row in given]) for name, given in rows.items()]
    create_topics(cluster.bootstrap_servers, *new)


def grow(cluster: LocalCluster, names: Sequence[str], partitions: int) -> None:
    """Let the broker choose."""
    admin = new_admin(cluster.bootstrap_servers)
    for future in admin.create_partitions([NewPartitions(name, partitions) for name in names]).values():
        future.result(60)


def rows_of(cluster: LocalCluster, topic: str) -> Assignment:
    return look(cluster).topics[topic].assignment


def plan_and_apply(workspace: Workspace) -> dict[str, Rows]:
    """Return the planned rows by topic."""
    planned = workspace.plan()
    applied = workspace.apply()
    assert applied.status == 0, planned.out + applied.out + applied.err
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    return {c["topic"]: {int(p): tuple(r) for p, r in c["after"]["assignment"].items()} for c in plan["changes"]}


def test_new_topics_get_exactly_the_planned_replicas(live: Workspace, local_cluster: LocalCluster) -> None:
    for placement in ("kafka", "balanced"):
        for size in (1, 2, 3):
            live.topic(f"placed-{placement}-{size}", partitions=7, replicationFactor=size, placement=placement)

    planned = plan_and_apply(live)

    assert len(planned) == 6
    assert {topic: rows_of(local_cluster, topic) for topic in planned} == planned


def assert_grown_as_the_broker_grows(
    cluster: LocalCluster, workspace: Workspace, first_rows: Sequence[Sequence[int]], partitions: int
) -> None:
    """Two topics for each row, which is their partition 0: the plan expands one of them, the broker the other."""
    ours, brokers = ([f"{whose}-{n}" for n in range(len(first_rows))] for whose in ("grown-by-plan", "grown-by-broker"))
    create(cluster, {name: [row] for names in (ours, brokers) for name, row in zip(names, first_rows, strict=True)})
    workspace.limits = {"expansionFactor": partitions}
    for name, row in zip(ours, first_rows, strict=True):
        workspace.topic(name, partitions=partitions, replicationFactor=len(row), placement="kafka")

    planned = plan_and_apply(workspace)
    grow(cluster, brokers, partitions)

    topics = look(cluster).topics
    by_plan = [topics[name].assignment for name in ours]
    assert by_plan == [topics[name].assignment for name in brokers]
    assert [{p: rows[p] for p in rows if p > 0} for rows in by_plan] == [planned[name] for name in ours]


def test_kafka_placement_expands_a_topic_as_the_broker_would(live: Workspace, local_cluster: LocalCluster) -> None:
    first_rows = [(1,), (3,), (1, 2), (3, 1), (2, 1), (1, 2, 3), (3, 1, 2)]
    assert_grown_as_the_broker_grows(local_cluster, live, first_rows, 8)


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest, cluster_home: Path) -> LocalCluster:
    """With the racks that the test names."""
    cluster = LocalCluster.up(cluster_home, brokers=len(request.param), racks=request.param)
    assert tuple(look(cluster).racks[broker] for broker in sorted(look(cluster).brokers)) == request.param
    return cluster


@pytest.mark.soak
@pytest.mark.parametrize(
    "own_cluster",
    [
        pytest.param((None, None, None, None), id="without racks"),
        # By turns 1, 3, 5, 2, 4: a position among the ids is another one there.
        pytest.param(("a", "a", "b", "b", "c"), id="on uneven racks"),
    ],
    indirect=True,
)
def test_it_does_so_whatever_the_racks_are(own_cluster: LocalCluster, workspace: Workspace) -> None:
    workspace.cluster = cluster_spec(own_cluster)
    brokers = sorted(look(own_cluster).brokers)
    first_rows = [tuple(brokers[(n + i) % len(brokers)] for i in range(size)) for n in brokers for size in (1, 2, 3)]

    assert_grown_as_the_broker_grows(own_cluster, workspace, first_rows, 11)


def move_with_kafkas_tool(workspace: Workspace, cluster: LocalCluster, topic: str) -> Assignment:
    """Run the reassignment that the plan of the blocked topic carries; the rows that come of it."""
    workspace.policy = {"reassign": "refuse"}
    workspace.plan()
    (blocked,) = json.loads(Path("plan.json").read_text(encoding="utf-8"))["blocked"]
    file = Path("reassignment.json")
    file.write_text(blocked["reassignment"], encoding="utf-8")
    assert "Successfully started" in kafka_reassign_partitions(cluster, file, "--execute")
    until(lambda: not look(cluster).topics[topic].is_reassigning)
    return rows_of(cluster, topic)


def assert_nothing_is_left_to_do(workspace: Workspace) -> None:
    planned = workspace.plan("--detailed-exitcode")
    assert (planned.status, "No changes." in planned.out) == (0, True), planned.out


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        pytest.param([(1, 2, 3), (1, 3, 2), (1, 2, 3)], 2, id="fewer"),
        pytest.param([(1,), (1,), (1,)], 2, id="more", marks=pytest.mark.soak),
    ],
)
def test_the_reassignment_that_a_plan_carries_brings_the_replication_factor(
    live: Workspace, local_cluster: LocalCluster, rows: Sequence[Sequence[int]], size: int
) -> None:
    topic = f"resized-from-{len(rows[0])}"
    create(local_cluster, {topic: rows})
    live.topic(topic, partitions=len(rows), replicationFactor=size)

    found = move_with_kafkas_tool(live, local_cluster, topic)

    assert {len(row) for row in found.values()} == {size}
    assert all(len(set(row) & set(found[p])) == min(len(row), size) for p, row in enumerate(rows))
    assert {row[0] for row in found.values()} == {1, 2, 3}
    assert_nothing_is_left_to_do(live)


@pytest.mark.soak
def test_the_reassignment_that_a_plan_carries_brings_the_replicas_that_a_file_names(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    create(local_cluster, {"moved-by-hand": [(1, 2), (2, 3)]})
    live.topic("moved-by-hand", assignment={0: [3, 2], 1: [2, 3]})

    assert move_with_kafkas_tool(live, local_cluster, "moved-by-hand") == {0: (3, 2), 1: (2, 3)}
    assert_nothing_is_left_to_do(live)
