"""The cluster as it is now shows what the open intents of an earlier run have done."""

import pytest

from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of, reassign_topic
from fakes.resting_cluster import RestingCluster
from topicops.model.plans.changes import Change
from topicops.model.runs.results import OutcomeStatus
from topicops.steps.applying.read_back import RecoveredIntent, recover_intents


def recovered(cluster: RestingCluster, change: Change, *, is_recorded: bool = False) -> RecoveredIntent:
    changes = plan_of(change).changes
    accepted = {gated.digest for gated in changes if is_recorded}
    [found] = recover_intents(changes, run="cli/1", by="cli/2", reader=cluster, accepted=accepted)
    return found


@pytest.fixture
def cluster() -> RestingCluster:
    return RestingCluster()


def test_what_took_effect_is_done_and_was_a_mutation(cluster: RestingCluster) -> None:
    live = cluster.put_topic("new", (1, 2))

    found = recovered(cluster, create_topic("new", (1, 2)))

    assert (found.outcome.status, found.outcome.sent) == (OutcomeStatus.DONE, True)
    assert found.sentence == "run cli/1 ended before it knew what came of create new: it is in effect"
    assert (found.mutation.id_before, found.mutation.id_after) == (None, live.identity)
    assert found.mutation.answer == "none recorded; run cli/2 found: it is in effect"


def test_what_is_not_in_effect_may_still_arrive_and_has_a_line(cluster: RestingCluster) -> None:
    live = cluster.put_topic("t", (1, 2))

    for change in (create_topic("new", (1, 2)), expand_topic(live, (2, 1)), delete_topic(live)):
        found = recovered(cluster, change)
        assert found.outcome.status is OutcomeStatus.UNKNOWN
        assert (
            "not in effect; a request that was on its way when the run ended arrives within 60 s"
            in found.mutation.answer
        )
        assert found.sentence.endswith("or never")


def test_a_topic_that_somebody_else_changed_leaves_it_unknown(cluster: RestingCluster) -> None:
    change = configure_topic(cluster.put_topic("t", (1, 2)), {"retention.ms": "2"})
    cluster.set_configs("t", {"retention.ms": "3"})

    found = recovered(cluster, change)

    assert found.outcome.status is OutcomeStatus.UNKNOWN
    assert "retention.ms: planned not set, live 3" in found.sentence


def test_a_delete_that_went_through_has_an_id_before_and_none_after(cluster: RestingCluster) -> None:
    live = cluster.put_topic("t", (1, 2))
    cluster.remove_topic("t")

    found = recovered(cluster, delete_topic(live))

    assert (found.mutation.id_before, found.mutation.id_after) == (live.identity, None)


@pytest.mark.parametrize(
    ("ends", "is_recorded", "status"),
    [
        pytest.param(False, True, OutcomeStatus.MOVING, id="recorded, so that later steps carry it on"),
        pytest.param(True, False, OutcomeStatus.DONE, id="its rows are the target"),
        pytest.param(False, False, OutcomeStatus.UNKNOWN, id="neither"),
    ],
)
def test_a_reassignment_whose_run_ended_is_closed_by_record_and_rows(
    cluster: RestingCluster, ends: bool, is_recorded: bool, status: OutcomeStatus
) -> None:
    change = reassign_topic(cluster.put_topic("t", (1, 2)), (2, 3))
    cluster.start_reassignment("t", 0, adding=[3], removing=[1])
    if ends:
        cluster.end_reassignment("t")

    found = recovered(cluster, change, is_recorded=is_recorded)

    assert found.outcome.status is status


def test_nothing_open_asks_nobody(cluster: RestingCluster) -> None:
    cluster.unreachable = True

    assert recover_intents([], run="cli/1", by="cli/2", reader=cluster) == ()
