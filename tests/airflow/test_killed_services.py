"""``kill -9`` of each part of a running Airflow in the middle of apply: the run ends verified, nothing is done twice.

"In the middle" is a place, and no moment: the create task stops itself when the first of its two requests was answered
and nothing of that is written down yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fixtures.fault_history import violations
from fixtures.live import until
from fixtures.stopped_runs import Stage, StoppedRun, stage_for_kills
from topicops_local.cluster import LocalCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stage(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage_for_kills(tmp_path_factory.mktemp("killed"), local_cluster) as stage:
        yield stage


def test_a_task_process_that_is_killed_is_tried_again_and_sends_nothing_twice(stage: Stage) -> None:
    run = stage.stopped_run()
    run.kill_task()

    ends_verified(run)
    assert run.tries("create") > 1


def test_after_a_scheduler_is_killed_its_task_and_the_next_try_of_it_send_nothing_twice(stage: Stage) -> None:
    run = stage.stopped_run()
    run.freeze_watcher()
    stage.kill("scheduler")
    stage.airflow.start_again("scheduler")
    run.wait_for_next_try()
    run.go_on()
    run.wait_for_its_account()
    run.thaw_watcher()

    ends_verified(run)


def test_a_task_goes_on_while_the_api_server_is_dead_and_its_run_ends_as_if_nothing_was(stage: Stage) -> None:
    run = stage.stopped_run()
    stage.kill("api-server")
    run.go_on()
    run.wait_for_the_end_of_its_requests()
    stage.airflow.start_again("api-server")

    ends_verified(run)


def ends_verified(run: StoppedRun) -> None:
    assert run.end() == "success", run.states()
    assert {check.verdict for check in run.checks()} == {"healthy"}
    assert {check.topic for check in run.checks()} >= set(run.topics)
    # A broker writes its log after it has answered.
    until(lambda: violations(run.history()) == [], timeout_s=20)
    history = run.history()
    assert [history.effects(change) for change in history.changes] == [1, 1, 1, 1, 1]
    assert sorted(line.topic for line in history.audit) == sorted(run.topics)
