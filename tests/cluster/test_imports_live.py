"""No command imports a client that it does not need, on a cluster that is as its files want it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.imports import LIVE, STEPS, imported_by, imported_in
from fixtures.live import cluster_spec, create_topics, remove_topics
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster


@pytest.fixture
def quiet(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """A workspace whose one topic is there as its file says; beside it is one that no file names."""
    create_topics(local_cluster.bootstrap_servers, NewTopic("clicks", 1, 3), NewTopic("nobodys", 1, 3))
    workspace.cluster = cluster_spec(local_cluster)
    workspace.write_environment()
    workspace.topic("clicks")
    yield workspace
    remove_topics(local_cluster, ["clicks", "nobodys"])


def test_a_command_imports_the_clients_that_its_row_allows(quiet: Workspace) -> None:
    found = {line: imported_by(line, quiet.folder) for line in LIVE}
    assert {line: status for line, (status, _) in found.items() if status} == {}
    assert {line: imported - LIVE[line] for line, (_, imported) in found.items() if imported - LIVE[line]} == {}


def test_a_task_imports_what_its_step_needs(local_cluster: LocalCluster, workspace: Workspace) -> None:
    workspace.cluster = cluster_spec(local_cluster)
    workspace.write_environment()
    workspace.topic("visits")
    try:
        found = {step: imported_in(step, workspace.folder) for step in STEPS}
    finally:
        remove_topics(local_cluster, ["visits"])
    assert {step: status for step, (status, _) in found.items() if status} == {}
    assert {step: imported - STEPS[step] for step, (_, imported) in found.items() if imported - STEPS[step]} == {}
