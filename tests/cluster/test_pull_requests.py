"""The pull-request workflow against a real cluster: a branch changes three topics, its plan names them, none moves."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from fixtures.live import look, remove_topics
from fixtures.workflow import BRANCH, cloned, git, run_step, step
from topicops.edges.local.cluster import LocalCluster

APPLY = "topicops plan -e local --engine python --out ../plan.json && topicops apply ../plan.json"
ENVIRONMENT = {
    "cluster": {
        "class": "sandbox",
        "zookeeper": {"connection": "kafka_zookeeper_tests"},
        "kafka": {"connection": "kafka_tests"},
    },
    "defaults": {"partitions": 2, "replicationFactor": 3},
}
CHANGE_ROW = re.compile(r"^\| \*\*. (create|expand|configure|delete)\*\* (\S+?)<br>\S+ \S+ \| (.*?) \|", re.MULTILINE)


@dataclass(frozen=True)
class Repository:
    """A clone whose main is what the cluster has; topics of a prefix of its own."""

    clone: Path
    prefix: str
    connections: Mapping[str, str]
    """Variables as Airflow names them."""

    def topic(self, word: str) -> str:
        return f"{self.prefix}.{word}"

    def variables(self) -> dict[str, str]:
        return {"TOPICOPS_HOME": str(self.clone.parent / "home")}


def write(topics: Path, path: str, kind: str, name: str, **rest: object) -> None:
    file = topics / path
    file.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"name": name} if kind == "Environment" else {"name": name, "owner": "team-tests"}
    document = {"apiVersion": "topicops/v1", "kind": kind, "metadata": metadata, **rest}
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def describe(topics: Path, topic: str, **spec: object) -> None:
    write(topics, f"tests/{topic}.yaml", "Topic", topic, spec={"keyed": False, **spec})


@pytest.fixture
def repository(local_cluster: LocalCluster, tmp_path: Path) -> Iterator[Repository]:
    prefix = f"pull-request-{uuid.uuid4().hex[:8]}"
    topics = tmp_path / "described"
    write(topics, "environments/local.yaml", "Environment", "local", spec=ENVIRONMENT)
    describe(topics, f"{prefix}.grown")
    describe(topics, f"{prefix}.tuned", configs={"retention.ms": "1h"})
    describe(topics, f"{prefix}.kept")
    host, _, chroot = local_cluster.zookeeper_hosts.partition("/")
    zookeeper = {"conn_type": "zookeeper", "host": host, "extra": {"chroot": f"/{chroot}"}}
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": local_cluster.bootstrap_servers}}
    connections = {
        "AIRFLOW_CONN_KAFKA_ZOOKEEPER_TESTS": json.dumps(zookeeper),
        "AIRFLOW_CONN_KAFKA_TESTS": json.dumps(kafka),
    }
    repository = Repository(cloned(topics, tmp_path), prefix, connections)
    applied = run_step(APPLY, repository.clone, {**repository.variables(), **connections})
    assert applied.returncode == 0, applied.stdout + applied.stderr
    yield repository
    remove_topics(local_cluster, [topic for topic in look(local_cluster).topics if topic.startswith(f"{prefix}.")])


def pull_request(repository: Repository) -> Path:
    """Change three topics on the branch and push it; gives a fresh checkout of the branch, as a runner has it."""
    topics = repository.clone / "topics"
    describe(topics, repository.topic("new"), partitions=3)
    describe(topics, repository.topic("grown"), partitions=4)
    describe(topics, repository.topic("tuned"), configs={"retention.ms": "2h"})
    git(repository.clone, "add", "topics")
    git(repository.clone, "commit", "-qm", "Change three topics")
    git(repository.clone, "push", "-q", "origin", BRANCH)
    checkout = repository.clone.parent / "checkout"
    git(repository.clone.parent, "clone", "-q", "--branch", BRANCH, "topics.git", str(checkout))
    assert len(git(checkout, "diff", "--name-only", "origin/main").splitlines()) == 3
    return checkout


def test_a_pull_requests_plan_names_exactly_its_three_topics_and_writes_nothing(
    repository: Repository, local_cluster: LocalCluster
) -> None:
    checkout, summary = pull_request(repository), repository.clone.parent / "summary.md"
    lines = "".join(f"{name}={value}\n" for name, value in repository.connections.items())
    variables = {
        "TOPICOPS_ENVIRONMENT": "local",
        "TOPICOPS_CONNECTIONS": lines,
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    before = look(local_cluster)

    validated = run_step(step("validate", "Validate"), checkout, repository.variables())
    planned = run_step(step("plan", "Plan"), checkout, {**repository.variables(), **variables})

    assert (validated.returncode, "::error" in validated.stdout) == (0, False), validated.stdout + validated.stderr
    assert planned.returncode == 0, planned.stdout + planned.stderr
    comment = summary.read_text(encoding="utf-8")
    told = {topic: (action, facts.split("<br>")[0]) for action, topic, facts in CHANGE_ROW.findall(comment)}
    assert told == {
        repository.topic("new"): ("create", "partitions: 3"),
        repository.topic("grown"): ("expand", "partitions: 2 -> 4"),
        repository.topic("tuned"): ("configure", "retention.ms: 3600000 (1h) -> 7200000 (2h)"),
    }
    assert repository.topic("kept") not in comment
    assert "1 to create, 1 to expand, 1 to configure, 0 to delete" in comment
    assert look(local_cluster) == before
