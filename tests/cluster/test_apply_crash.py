"""A run that dies right after a request, or cannot write down what it did: on real brokers, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fixtures.live import cluster_spec, create_topics, look, new_admin, remove_topics, until
from fixtures.workspace import Workspace
from topicops.flow import planning, single_steps
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.errors import UnrecordedError
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops_local.cluster import LocalCluster


class CrashError(BaseException):
    """The process ended here; no handler of errors sees it, as none sees a kill."""


def dies_at(words: str) -> Callable[[str], None]:
    """Takes lines of progress, and ends the process at the one that begins so."""

    def say(line: str) -> None:
        if line.startswith(words):
            raise CrashError(line)

    return say


@pytest.fixture
def admin(local_cluster: LocalCluster) -> AdminClient:
    return new_admin(local_cluster.bootstrap_servers)


@pytest.fixture
def live(local_cluster: LocalCluster, workspace: Workspace) -> Iterator[Workspace]:
    """Yield a workspace in which not one topic may vanish; its topics begin with ``crash-``."""
    workspace.cluster = cluster_spec(local_cluster)
    until(lambda: not look(local_cluster).deleting)  # of tests before this one
    workspace.limits |= {"shrinkPercent": 0}
    workspace.policy |= {"unattended": "destructive", "deleteActive": "allow"}
    workspace.write_environment()
    yield workspace
    remove_topics(local_cluster, [name for name in look(local_cluster).topics if name.startswith("crash-")])


def run_of(live: Workspace, say: Callable[[str], None] = print) -> EnvironmentRun:
    return open_run(
        environment="local", topics=live.folder / "topics", group="topic_pipeline_local", run_id="1", progress=say
    )


def test_a_crash_right_after_a_delete_is_made_good_by_running_again(
    live: Workspace, local_cluster: LocalCluster, admin: AdminClient
) -> None:
    create_topics(local_cluster.bootstrap_servers, NewTopic("crash-old", 1, 3))
    live.tombstone("crash-old")
    run = run_of(live)
    planning.make_plan(run, engine="python")

    with pytest.raises(CrashError):
        single_steps.apply(run_of(live, dies_at("delete crash-old: done")), actions=["delete"])
    single_steps.apply(run_of(live), actions=["delete"], attempt=2)

    (outcome,) = run_of(live).store.read_value("outcomes-delete.json", tuple[Outcome, ...])
    assert outcome.status is OutcomeStatus.ALREADY_SO
    until(lambda: not look(local_cluster).deleting)
    planned = live.plan()
    assert (planned.status, "No changes." in planned.out) == (0, True), planned.err


def test_a_try_that_slept_while_another_did_its_work_leaves_the_outcomes_of_that_one_alone(live: Workspace) -> None:
    live.cluster |= {"lease": "none"}  # a session that ended says the same, half a minute later
    live.write_environment()
    live.topic("crash-asleep")
    run = run_of(live)
    planning.make_plan(run, engine="python")
    said: list[str] = []

    def sleeps_at_done(line: str) -> None:
        said.append(line)
        if line.startswith("create crash-asleep: done"):
            single_steps.apply(run_of(live), actions=["create"], attempt=2)

    single_steps.apply(run_of(live, sleeps_at_done), actions=["create"])

    (outcome,) = run_of(live).store.read_value("outcomes-create.json", tuple[Outcome, ...])
    assert outcome.status is OutcomeStatus.ALREADY_SO
    assert "A later try of this task has begun: its outcomes count, and not these." in said


def test_a_next_plan_after_such_a_crash_does_not_call_the_world_shrunken(
    live: Workspace, local_cluster: LocalCluster
) -> None:
    create_topics(local_cluster.bootstrap_servers, NewTopic("crash-older", 1, 3))
    live.tombstone("crash-older")
    run = run_of(live)
    planning.make_plan(run, engine="python")

    with pytest.raises(CrashError):
        single_steps.apply(run_of(live, dies_at("delete crash-older: done")), actions=["delete"])

    planned = live.plan()
    assert planned.status == 0, planned.err


def test_changes_that_could_not_be_written_down_are_not_denied(live: Workspace) -> None:
    live.topic("crash-new")
    run = run_of(live)
    planning.make_plan(run, engine="python")
    run.store.path("outcomes-create.json").mkdir()

    with pytest.raises(UnrecordedError, match="requests were sent before") as caught:
        single_steps.apply(run)

    assert caught.value.exit_status == 6


def test_no_request_leaves_when_its_intent_cannot_be_written(live: Workspace, admin: AdminClient) -> None:
    live.topic("crash-unsent")
    run = run_of(live)
    planning.make_plan(run, engine="python")
    run.store.path("journal-all-1.jsonl").mkdir()

    single_steps.apply(run)

    (outcome,) = run.store.read_value("outcomes-create.json", tuple[Outcome, ...])
    assert (outcome.status, outcome.sent) == (OutcomeStatus.NOT_SENT, False)
    assert "the journal cannot be written: Is a directory; nothing more is sent" in outcome.message
    assert "crash-unsent" not in admin.list_topics(timeout=30).topics
