"""Runs that are pinned to a commit, under a running Airflow: files in a git bundle, and files that a sync updates."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from fixtures.airflow_story import RUN_S, Story, airflow_stories, remove_topics
from fixtures.git_bundle import Repository
from fixtures.live import look, until
from fixtures.reviews import KEY, as_param, review_of, signed
from fixtures.topic_project import TOMBSTONE, TOPIC, Project
from topicops.edges.home.audit_files import read_audit_log
from topicops.flow import planning
from topicops.flow.runs.run import open_run
from topicops.model.runs.results import RunResult
from topicops_local.airflow import start_airflow, wait_for_dags
from topicops_local.airflow_client import LocalAirflowClient
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]

REVIEWED = "  policy: {approvals: [question, review], authorApproves: notice}\n"
OWN_DAG_FILE = """\
from pathlib import Path

from topicops.on_airflow.dags.dag_file import dags_of

globals().update(dags_of(Path("{topics}")))
"""
GIT_BUNDLE = "airflow.providers.git.bundles.git.GitDagBundle"
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"


def result_of(client: LocalAirflowClient, dag_id: str, run_id: str) -> RunResult:
    return msgspec.convert(client.xcom(dag_id, run_id, "report", "result"), RunResult)


# --- one repository with dags/ and topics/, in a git bundle -----------------------------------------------------------


@pytest.fixture(scope="module")
def story(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder, settings = tmp_path_factory.mktemp("pinned"), {"pinned": REVIEWED}
    variables = {"TOPICOPS_REVIEW_KEY": KEY}
    with airflow_stories(
        folder, local_cluster, ["pinned"], in_git=True, settings=settings, variables=variables
    ) as stories:
        yield stories[0]
        remove_topics(stories)


def digest_of_the_delete(story: Story, topic: str) -> str:
    """Return what CI finds when it plans the files of now."""
    home = story.airflow.folder / "ci"
    run = open_run(environment="pinned", topics=story.project.topics, group="cli", run_id=topic, home=home)
    plan = planning.make_plan(run, engine="python").plan
    return next(gated.digest for gated in plan.changes if gated.change.topic == topic)


def test_a_signed_review_sends_the_reviewed_delete_of_exactly_its_commit_and_the_result_is_there_for_ci(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in story.project.variables.items():
        monkeypatch.setenv(name, text)
    story.create_by_hand("pinned.old", "pinned.older")
    older = story.repository.head
    story.project.write("pinned.old", TOMBSTONE)
    story.project.write("pinned.older", TOMBSTONE)
    merged = story.repository.head
    digest = digest_of_the_delete(story, "pinned.old")
    story.wait_for_files()
    reviewed = review_of(environment="pinned", merge_commit=merged, digests=(digest,))
    forged = review_of(environment="pinned", merge_commit=merged, digests=("0" * 64,), reviewer="mallory")
    reviews = as_param(signed(reviewed), signed(forged, "a key that Airflow does not know at all"))

    run_id = story.client.trigger(story.pipeline, {"mode": "apply", "commit": merged, "reviews": reviews})
    state, _ = story.ended(story.pipeline, run_id)

    assert state == "success"
    assert story.live_topics() == {"pinned.older"}
    result = result_of(story.client, story.pipeline, run_id)
    assert (result.success, result.commit) == (True, merged)
    assert [(change.topic, change.status) for change in result.changes] == [
        ("pinned.older", "held"),
        ("pinned.old", "done"),
    ]
    assert any("by mallory does not count: its signature was not made" in note for note in result.notes)
    (line,) = read_audit_log(Path(story.airflow.variables["TOPICOPS_HOME"]) / "audit", "pinned").lines
    assert line.approver == f"alice (review of acme/topics#12, merged as {merged[:12]})"

    stale = story.client.trigger(story.pipeline, {"mode": "apply", "commit": older})
    assert story.ended(story.pipeline, stale)[0] == "failed"
    said = story.client.log(story.pipeline, stale, "validate")
    assert f"the files are of commit {merged}, and this run is pinned to commit {older}" in said
    assert "waiting up to" not in said
    assert any(older in note for note in result_of(story.client, story.pipeline, stale).notes)


def test_an_answer_sends_nothing_once_main_was_rewritten_under_its_question(story: Story) -> None:
    story.create_by_hand("pinned.kept")
    base = story.repository.head
    story.project.write("pinned.kept", TOMBSTONE)
    asked_of = story.repository.head
    story.run_pipeline()
    question = story.newest_question()
    rewritten = story.repository.rewrite(base)
    story.wait_for_files()

    state, _ = story.answer("Approve", question)

    assert state == "failed"
    assert "pinned.kept" in story.live_topics()
    said = story.client.log(story.approval, question, "delete")
    assert f"the files are of commit {rewritten}, whose history does not contain commit {asked_of}" in said
    assert any(
        "git's history was rewritten" in note for note in result_of(story.client, story.approval, question).notes
    )


# --- files that a sync updates: the DAG file beside them, and the DAG file in a repository of its own -----------------


class Synced:
    """A folder as git-sync keeps it: a link to a work tree of one commit, which each sync replaces."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.link = folder / "current"
        self._clone = folder / "clone"
        folder.mkdir(parents=True)
        self._git("clone", "--quiet", "--no-checkout", str(repository.bare), str(self._clone), at=folder)

    def sync(self, commit: str) -> None:
        tree = self._clone.parent / commit
        self._git("fetch", "--quiet", "origin", at=self._clone)
        self._git("worktree", "add", "--quiet", "--detach", str(tree), commit, at=self._clone)
        before = self.link.resolve() if self.link.exists() else None
        new = self.link.with_name("new")
        new.symlink_to(tree.name)
        os.replace(new, self.link)  # noqa: PTH105 - replaces the link, and not what it leads to
        if before is not None:
            self._git("worktree", "remove", "--force", str(before), at=self._clone)

    def _git(self, *arguments: str, at: Path) -> None:
        subprocess.run(["git", "-C", str(at), *arguments], check=True, capture_output=True, timeout=60)


@dataclass(frozen=True)
class Stage:
    """One environment whose files a sync updates."""

    client: LocalAirflowClient
    repository: Repository
    project: Project
    synced: Synced

    @property
    def pipeline(self) -> str:
        return f"topic_pipeline_{self.project.environment}"


def synced_project(folder: Path, cluster: LocalCluster, environment: str) -> tuple[Repository, Project, Synced]:
    repository = Repository(folder / "work", folder / "bare")
    project = Project(folder / "work", cluster, environment, repository=repository)
    synced = Synced(repository, folder / "synced")
    synced.sync(repository.head)
    return repository, project, synced


@pytest.fixture(scope="module")
def stages(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    folder = tmp_path_factory.mktemp("synced")
    found = {name: synced_project(folder / name, local_cluster, name) for name in ("beside", "apart")}
    of_dags = Repository(folder / "dags-work", folder / "dags-bare")
    topics = found["apart"][2].link / "topics"
    (of_dags.work / "own_dags.py").write_text(OWN_DAG_FILE.format(topics=topics), encoding="utf-8")
    of_dags.publish()
    git = {"repo_url": str(of_dags.bare), "tracking_ref": "main", "refresh_interval": 5}
    bundles = [
        {"name": "beside", "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(found["beside"][2].link / "dags")}},
        {"name": "apart", "classpath": GIT_BUNDLE, "kwargs": git},
    ]
    variables = {
        **{name: text for _, project, _ in found.values() for name, text in project.variables.items()},
        "TOPICOPS_HOME": str(folder / "home"),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(folder / "bundles"),
    }
    (folder / "airflow").mkdir()
    with start_airflow(folder / "airflow", dags=folder / "none", environment=variables) as airflow:
        stages = {name: Stage(airflow.client(), *parts) for name, parts in found.items()}
        for stage in stages.values():
            wait_for_dags(stage.client, [stage.pipeline])
        yield stages


@pytest.mark.parametrize("name", ["beside", "apart"])
def test_a_pinned_run_waits_until_the_synced_folder_is_at_its_commit(
    stages: dict[str, Stage], local_cluster: LocalCluster, name: str
) -> None:
    stage = stages[name]
    before = stage.repository.head
    stage.project.write(f"{name}.orders", TOPIC)
    wanted = stage.repository.head

    run_id = stage.client.trigger(stage.pipeline, {"mode": "apply", "commit": wanted})
    waits = f"The files are of commit {before}; waiting up to 600 s for commit {wanted}"
    stage.client.wait_for_task(stage.pipeline, run_id, "validate", "running", timeout_s=RUN_S)
    until(lambda: waits in stage.client.log(stage.pipeline, run_id, "validate"), timeout_s=RUN_S)
    stage.synced.sync(wanted)
    for task in stage.client.follow(stage.pipeline, run_id, timeout_s=RUN_S):
        assert task.state != "failed", stage.client.log(stage.pipeline, run_id, task.task_id)

    assert stage.client.run_state(stage.pipeline, run_id) == "success"
    assert result_of(stage.client, stage.pipeline, run_id).commit == wanted
    assert f"{name}.orders" in look(local_cluster).topics
