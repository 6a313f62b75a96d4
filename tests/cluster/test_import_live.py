"""Topics of real brokers, imported from ZooKeeper and from the brokers themselves: the same files, nothing to plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import cluster_spec, create_topics, remove_topics
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

ROWS = {"adopt.single": [[1]], "adopt.wide": [[1, 2, 3], [2, 3, 1]], "adopt.tight": [[3, 1]]}
CONFIGS = {
    "adopt.wide": {"retention.ms": "604800000", "cleanup.policy": "compact,delete"},
    "adopt.tight": {"min.insync.replicas": "3", "message.format.version": "2.8"},
}


@pytest.fixture(scope="module")
def adoptable(local_cluster: LocalCluster) -> Iterator[LocalCluster]:
    new = [
        NewTopic(name, len(rows), replica_assignment=rows, config=CONFIGS.get(name, {})) for name, rows in ROWS.items()
    ]
    create_topics(local_cluster.bootstrap_servers, *new)
    yield local_cluster
    remove_topics(local_cluster, ROWS)


def imported(workspace: Workspace) -> dict[str, str]:
    """Return the files that an import writes, by name."""
    arguments = ["--environment", "local", "--owner", "team-platform", "--only", "adopt.*"]
    ended = workspace.run("import", *arguments)
    assert ended.status == 0, ended.err
    assert ended.out.splitlines()[-1].startswith("3 topics imported, 0 new profiles, 3 exceptions, 0 left out")
    folder = workspace.folder / "topics"
    return {path.name: path.read_text() for path in folder.rglob("*.yaml") if path.name != "local.yaml"}


def remove(texts: dict[str, str], folder: Path) -> None:
    for path in [path for path in folder.rglob("*.yaml") if path.name in texts]:
        path.unlink()


def test_both_sources_give_the_same_files_that_plan_to_nothing(workspace: Workspace, adoptable: LocalCluster) -> None:
    found = []
    workspace.policy = {"minReplicationFactor": 2}
    for source in ({"source": "zookeeper"}, {"source": "kafka", "lease": "none"}):
        workspace.cluster = {**cluster_spec(adoptable), **source}
        found.append(imported(workspace))
        assert workspace.run("validate").status == 0
        planned = workspace.plan("--only", "adopt.*", "--format", "json")
        plan = json.loads(planned.out)
        assert (plan["changes"], plan["blocked"], plan["drift"], plan["unmanaged"]) == ([], [], [], [])
        ended = workspace.run("drift", "--environment", "local", "--only", "adopt.*", "--detailed-exitcode")
        assert (ended.status, ended.out.startswith("No drift: the cluster agrees with the files of ")) == (0, True)
        remove(found[-1], workspace.folder)

    assert found[0] == found[1]
    assert found[0]["adopt.wide.yaml"].endswith(
        "\nspec:\n  partitions: 2\n  configs:\n    cleanup.policy: compact,delete\n    retention.ms: 7d\n"
    )
