"""From a branch in a team's own repository to "applied and verified" under its pull request, with everything real.

A bare git remote, a fake forge, the workflow that `topicops init` writes, Airflow on a git bundle, a real cluster.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from fixtures.fake_forge import FakeForge, FakePullRequest
from fixtures.git_bundle import bundle_variables
from fixtures.live import create_topics, look, remove_topics, until
from fixtures.team_repository import AIRFLOW, READER, REVIEW_KEY, TeamRepository, team_repository
from fixtures.workflow import Ended
from topicops.features.files.authoring.first_environment import REPOSITORY, dag_file, filled
from topicops_local.airflow import LocalAirflow, start_airflow, wait_for_dags
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("spark")]
logger = logging.getLogger(__name__)

TEMPLATE = Path(__file__).parents[2] / "plugins/topicops/features/files/authoring/first_files/workflow.yml"
EXAMPLE = filled(
    TEMPLATE.read_text(encoding="utf-8"),
    {"REPOSITORY": REPOSITORY, "VERSION": "0.1.0", "TOPICS": "topics", "BRANCH": "main"},
)
PIPELINE = "topic_pipeline_local"


@dataclass(frozen=True)
class Team:
    """The repository, its Airflow, and the cluster of both."""

    repository: TeamRepository
    airflow: LocalAirflow
    cluster: LocalCluster
    home: Path

    def topic(self, word: str) -> str:
        return self.repository.topic(word)

    def overrides(self, word: str) -> dict[str, str]:
        return dict(look(self.cluster).topics[self.topic(word)].overrides)

    def audit(self) -> list[dict[str, object]]:
        lines = (self.home / "audit/local.jsonl").read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if str(line["topic"]).startswith(self.repository.prefix)]

    def pull_request(self, branch: str, **retention: str) -> FakePullRequest:
        """One that sets the retention of these topics, planned and commented."""
        with self.repository.branch(branch):
            for word, text in retention.items():
                self.repository.describe(word, configs={"retention.ms": text})
            self.repository.commit()
        pull = self.repository.open(branch)
        succeeded(self.repository.check(pull.number))
        return pull

    def comment(self, pull: FakePullRequest) -> str:
        """Give the newest one."""
        return self.repository.forge.bodies(pull.number)[-1]


def succeeded(ended: dict[str, Ended]) -> None:
    assert {name: job.status for name, job in ended.items() if job.status} == {}, ended


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    logger.warning("%s took %.1f s", what, time.monotonic() - started)


@pytest.fixture
def team(local_cluster: LocalCluster, tmp_path: Path) -> Iterator[Team]:
    """Two topics are live and described: orders and clicks."""
    prefix = f"merge-{uuid.uuid4().hex[:8]}"
    topics = [NewTopic(f"{prefix}.{word}", num_partitions=2, replication_factor=3) for word in ("orders", "clicks")]
    create_topics(local_cluster.bootstrap_servers, *topics)
    with FakeForge() as forge:
        repository = team_repository(tmp_path, forge, local_cluster, prefix=prefix, workflow=EXAMPLE)
        (repository.clone / "dags").mkdir()
        (repository.clone / "dags/topicops_dags.py").write_text(dag_file(), encoding="utf-8")
        repository.describe("orders")
        repository.describe("clicks")
        repository.publish("The topics as they are")
        until(lambda: {topic.topic for topic in topics} <= look(local_cluster).topics.keys())
        lines = repository.runner.environments[READER]["TOPICOPS_READER_CONNECTIONS"].splitlines()
        variables = {
            **dict(line.split("=", 1) for line in lines),
            **bundle_variables(tmp_path / "topics.git", tmp_path / "bundles"),
            "TOPICOPS_HOME": str(tmp_path / "home"),
            "TOPICOPS_REVIEW_KEY": REVIEW_KEY,
        }
        (tmp_path / "airflow").mkdir()
        with start_airflow(tmp_path / "airflow", dags=tmp_path / "none", environment=variables) as airflow:
            wait_for_dags(airflow.client(), [PIPELINE, "topic_approval_local"])
            of_apply = repository.runner.environments[AIRFLOW]
            repository.runner.environments = {
                **repository.runner.environments,
                AIRFLOW: {
                    **of_apply,
                    "TOPICOPS_AIRFLOW_URL": airflow.url,
                    "TOPICOPS_AIRFLOW_USER": airflow.username,
                    "TOPICOPS_AIRFLOW_PASSWORD": airflow.password,
                },
            }
            yield Team(repository, airflow, local_cluster, tmp_path / "home")
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith(f"{prefix}.")])


def test_a_reviewed_change_is_applied_at_the_merge_commit_verified_and_reported(team: Team) -> None:
    repository = team.repository
    with timed("validate, plan, comment and status"):
        pull = team.pull_request("change", orders="1h", bills="2h")
    held = team.comment(pull)
    assert "waits for a review by alice" in held
    assert f"**create** {team.topic('bills')}" in held

    repository.forge.review(pull.number, "alice")
    with timed("planned again after the review"):
        succeeded(repository.check(pull.number))
    assert "approved by alice" in team.comment(pull)
    before, merged = repository.merge(pull.number)
    with timed("trigger, apply, verify and report"):
        ended = repository.after_merge(before, merged)
    succeeded(ended)

    comment = team.comment(pull)
    assert "Applied and verified: 2 done." in comment
    assert f"commit {merged[:12]}" in comment
    assert team.airflow.url in comment
    assert team.overrides("orders") == {"retention.ms": "3600000"}
    assert team.overrides("bills") == {"retention.ms": "7200000"}
    lines = {line["topic"]: line for line in team.audit()}
    approver = f"alice (review of acme/topics#{pull.number}, merged as {merged[:12]})"
    assert lines[team.topic("orders")]["approver"] == approver
    assert lines[team.topic("bills")]["approver"] is None, "it needed nobody's"
    assert {line["commit"] for line in lines.values()} == {merged}
    check = repository.forge.check(merged)
    assert check is not None
    assert check.result == "success"


def test_a_plan_that_another_merge_made_stale_runs_in_the_part_that_is_as_it_was_approved(team: Team) -> None:
    repository = team.repository
    first = team.pull_request("first", orders="1h")
    second = team.pull_request("second", orders="3h", clicks="2h")
    assert f"#{first.number}" in team.comment(second)
    for pull in (first, second):
        repository.forge.review(pull.number, "alice")
    succeeded(repository.after_merge(*repository.merge(first.number)))
    with repository.branch("second-on-main"):
        repository.describe("orders", configs={"retention.ms": "3h"})
        repository.describe("clicks", configs={"retention.ms": "2h"})
        repository.commit()
    repository.pulls[second.number] = "second-on-main"
    repository.forge.push(second.number, repository.head("second-on-main"))
    repository._push(second.number)

    before, merged = repository.merge(second.number)
    ended = repository.after_merge(before, merged)

    assert ended["apply"].status == 0, ended
    assert team.overrides("clicks") == {"retention.ms": "7200000"}, "approved, and as it was"
    assert team.overrides("orders") == {"retention.ms": "3600000"}, "approved from another value than the live one"
    comment = team.comment(second)
    assert f"**configure** {team.topic('orders')} | **held** |" in comment
    assert f"**configure** {team.topic('clicks')} | **done** |" in comment
    check = repository.forge.check(merged)
    assert check is not None
    assert check.result == "neutral"
