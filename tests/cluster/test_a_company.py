"""Two environments of a company, imported; then one value of one of them comes by a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.live import cluster_spec, create_topics, look, remove_topics
from fixtures.workflow import commit, git
from fixtures.workspace import Workspace
from topicops_local.cluster import LocalCluster

DIFFERENT = 156
NUMBERS = {"dev": range(394), "prod": (*range(328), *range(394, 424))}
"""328 topics are in both, 66 in dev alone, 30 in prod alone."""


def new_topic(environment: str, number: int) -> NewTopic:
    """Retention, policy and partitions make 106 shapes; prod differs in one of them for the first 156 topics."""
    partitions = number % 4 + 1
    configs = {"retention.ms": str((number % 53 + 1) * 3_600_000), "cleanup.policy": ("compact", "delete")[number % 2]}
    if environment == "prod" and number < DIFFERENT:
        configs |= {"retention.ms": "2592000000"} if number < 116 else {"max.message.bytes": "2097152"}
        partitions += 6 if number < 29 else 0
    rows = [[index % 3 + 1] for index in range(partitions)]
    return NewTopic(
        f"{environment}-company.d{number % 23}.t{number}", partitions, replica_assignment=rows, config=configs
    )


@pytest.fixture(scope="module")
def company(local_cluster: LocalCluster) -> Iterator[LocalCluster]:
    new = [new_topic(environment, number) for environment, numbers in NUMBERS.items() for number in numbers]
    create_topics(local_cluster.bootstrap_servers, *new)
    yield local_cluster
    remove_topics(local_cluster, [topic.topic for topic in new])


def write_environment(workspace: Workspace, company: LocalCluster, name: str) -> str:
    """Return its text."""
    spec = {
        "cluster": {**cluster_spec(company), "topics": {"prefix": f"{name}-company."}},
        "defaults": {"partitions": 1, "replicationFactor": 1},
        "policy": {"minReplicationFactor": 1},
    }
    workspace._write(f"environments/{name}.yaml", "Environment", {"name": name}, {"spec": spec})
    return (workspace.folder / f"topics/environments/{name}.yaml").read_text(encoding="utf-8")


def changes(workspace: Workspace, environment: str) -> Any:
    ended = workspace.run("plan", "-e", environment, "--format", "json", "--out", f"{environment}.json")
    assert ended.status == 0, ended.err
    plan = json.loads(ended.out)
    assert (plan["blocked"], plan["drift"], plan["unmanaged"]) == ([], [], [])
    return plan["changes"]


@pytest.mark.soak
def test_one_value_of_prod_comes_as_the_pull_request_says(workspace: Workspace, company: LocalCluster) -> None:
    environments = {name: write_environment(workspace, company, name) for name in NUMBERS}
    for name, numbers in NUMBERS.items():
        ended = workspace.run("import", "-e", name, "--owner", "team-platform")
        said = f"{len(numbers)} topics imported, 0 new profiles, 0 exceptions, 0 left out"
        assert (ended.status, said in ended.out) == (0, True), ended.err
    assert (changes(workspace, "dev"), changes(workspace, "prod")) == ([], [])
    for name, text in environments.items():
        assert (workspace.folder / f"topics/environments/{name}.yaml").read_text(encoding="utf-8") == text

    git(workspace.folder, "init", "-q")
    commit(workspace.folder)
    git(workspace.folder, "checkout", "-qb", "change")
    file = workspace.folder / "topics/d0/d0.t0.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("retention.ms: 30d", "retention.ms: 60d"), encoding="utf-8"
    )
    commit(workspace.folder)
    ended = workspace.run("ci", "plan", "pull-request", "--base", "main", "--head", "change", "--number", "1")

    shown = json.loads((workspace.folder / "pull-request/prod.plan.json").read_text(encoding="utf-8"))
    assert (ended.status, ended.err.count("Reading the live topics")) == (0, 1)
    assert [(change["topic"], change["after"]) for change in shown["changes"]] == [
        ("prod-company.d0.t0", {"configs": {"retention.ms": "5184000000"}})
    ]
    assert "retention.ms: 2592000000 (30d) -> 5184000000 (60d)" in ended.out
    git(workspace.folder, "checkout", "-q", "main")
    git(workspace.folder, "merge", "-q", "change")
    before = dict(look(company).topics)
    assert (changes(workspace, "dev"), changes(workspace, "prod")) == ([], shown["changes"])

    ended = workspace.run("apply", "prod.json", "--yes")

    assert ended.status == 0, ended.err
    now = look(company).topics
    assert [name for name, live in now.items() if live != before[name]] == ["prod-company.d0.t0"]
    assert now["prod-company.d0.t0"].overrides["retention.ms"] == "5184000000"
