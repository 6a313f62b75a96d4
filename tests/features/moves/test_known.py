"""What the runs of an environment learn of accepted moves, and that all who say how far they are say the same."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.builders import live_topic, snapshot
from fakes.changes import plan_of, reassign_topic
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from features.moves.test_progress import BEGUN, ended, moves, partition, record, waiting
from fixtures.html_seen import Seen
from fixtures.simulated import Simulated
from topicops.cli.shared_options import run_of
from topicops.features.moves.on_airflow import pages
from topicops.features.moves.on_airflow.looks import log_progress
from topicops.features.moves.record import MOVES, MovesRecord, OwnedRate, PartitionMove, Stage
from topicops.features.moves.telling.known import known_moves
from topicops.features.moves.telling.status import STILL_AFTER, status_of
from topicops.features.moves.telling.text import status_text
from topicops.flow.runs.run import home_folder
from topicops.model.ports import Clock
from topicops.model.runs.moves import KnownMoves
from topicops.model.runs.results import Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.on_airflow.pages.parts import page
from topicops.steps.verifying.verify import verify

LATER = BEGUN + timedelta(minutes=10)
MIXED = moves({0: partition(60, 100), 1: waiting(), 2: partition(20, 80, Stage.CANCELLING)})
ENTRIES = replace(moves({}), leader_entries=("0:1",), follower_entries=("0:2",))


def known(home: Path, kept: MovesRecord) -> KnownMoves:
    MOVES.of(home, "local").write(kept)
    return known_moves(home, "local")


def test_before_the_first_move_nothing_is_known(tmp_path: Path) -> None:
    assert known_moves(tmp_path, "local") == KnownMoves()
    assert known_moves(tmp_path, "local").is_idle


def test_of_each_topic_it_is_known_what_moves_waits_and_is_taken_back(tmp_path: Path) -> None:
    found = known(tmp_path, replace(record(MIXED, rates=(OwnedRate(broker=3, rate=5),)), notes=("said",)))

    topic = found.topics["shop.orders"]
    assert (set(topic.partitions), set(topic.asked)) == ({0, 1, 2}, {0, 2})
    assert topic.targets == {0: (2,), 1: (2,)}
    assert (topic.identity, topic.digest) == (MIXED.identity, MIXED.digest)
    assert ([*found.rates], found.notes, found.stepped_at, found.is_idle) == ([3], ("said",), LATER, False)


@pytest.mark.parametrize(
    ("kept", "is_idle"),
    [
        pytest.param(record(past=(ended(1),)), True, id="all has ended"),
        pytest.param(record(ENTRIES), False, id="entries are left"),
        pytest.param(record(rates=(OwnedRate(broker=1, rate=1),)), False, id="a rate is left"),
    ],
)
def test_what_is_owed_keeps_a_run_from_being_idle(tmp_path: Path, kept: MovesRecord, is_idle: bool) -> None:
    assert known(tmp_path, kept).is_idle is is_idle


def test_entries_of_ours_are_known_by_their_list(tmp_path: Path) -> None:
    assert known(tmp_path, record(ENTRIES)).topics["shop.orders"].entries == {
        "leader.replication.throttled.replicas": ("0:1",),
        "follower.replication.throttled.replicas": ("0:2",),
    }


@pytest.mark.parametrize(
    ("identity", "cluster_id", "rows"),
    [
        pytest.param("a", "c", {"shop.orders": {0: (2,), 1: (2,)}}, id="the same topic"),
        pytest.param("b", "c", {}, id="another topic of that name"),
        pytest.param("a", "another", {}, id="another cluster"),
    ],
)
def test_plans_take_rows_for_granted_of_topics_that_are_still_the_same(
    tmp_path: Path, identity: str, cluster_id: str, rows: object
) -> None:
    live = replace(live_topic("shop.orders", assignment={0: (1,), 1: (1,)}), topic_id=identity)

    assert known(tmp_path, record(MIXED)).accepted(replace(snapshot(live), cluster_id=cluster_id)) == rows


@pytest.mark.parametrize(
    ("move", "is_stuck"),
    [
        pytest.param(partition(0, 9, grown=0), True, id="ten minutes"),
        pytest.param(replace(partition(0, 9), grown_at=LATER - STILL_AFTER + timedelta(seconds=1)), False, id="fewer"),
        pytest.param(partition(0, 9, grown=None), True, id="never grown since it was asked"),
        pytest.param(partition(9, 9, grown=0), False, id="all is copied"),
        pytest.param(replace(waiting(9), grown_at=BEGUN), False, id="it waits"),
        pytest.param(partition(grown=0), False, id="never measured"),
    ],
)
def test_a_move_is_stuck_when_steps_saw_it_copy_nothing(tmp_path: Path, move: PartitionMove, is_stuck: bool) -> None:
    assert known(tmp_path, record(moves({0: move}))).topics["shop.orders"].is_stuck is is_stuck


SENTENCES = {
    "some move, one goes back": (
        record(MIXED, past=(ended(1),)),
        "moving 1 of 4 partitions, cancelling 1 of 4 partitions, 53 %, about 23 min",
    ),
    "one stands still": (
        record(moves({0: partition(40, 100, grown=0)})),
        "moving 1 of 1 partition, 40 %, about 15 min, 1 stands still",
    ),
    "all wait": (record(moves({0: waiting(), 1: waiting()})), "2 of 2 partitions wait"),
    "a throttle is owed": (record(ENTRIES), "ended; its throttle entries are still to be removed"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_verify_the_command_the_pages_and_the_log_say_the_same_of_a_topic(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, sentence = SENTENCES[case]

    assert v04(known(tmp_path, kept)) == sentence
    assert f"shop.orders (factor; run cli/1): {sentence}" in status_text(status_of("local", kept))
    assert sentence in Seen(page("Topics", pages.moves_of_environment(tmp_path, "local"))).texts
    of_topic = Seen(page("Topics", pages.moves_of_topic(tmp_path, "local", "shop.orders"))).texts
    assert any(text.lower().startswith(f"{sentence.lower()}; factor") for text in of_topic)
    caplog.set_level(logging.INFO)
    log_progress("local", kept)
    assert f"shop.orders: {sentence}" in caplog.messages


def v04(known: KnownMoves) -> str:
    """Return what verify says of the moves of ``shop.orders``, which is a problem only where they are stuck."""
    cluster, clock = RestingCluster(), FakeClock()
    plan = plan_of(reassign_topic(cluster.put_topic("shop.orders", (1,)), (2,)))
    checks = verify(
        plan,
        [Outcome.of(gated, OutcomeStatus.MOVING, sent=True) for gated in plan.changes],
        reader=cluster,
        metadata=cluster,
        deadlines=Verify(),
        clock=Clock(clock, clock.sleep),
        moving=known.topics,
    )
    [said] = [check for check in checks if check.id == "V04"]
    assert said.verdict is (Verdict.DEGRADED if known.topics["shop.orders"].is_stuck else Verdict.MOVING)
    return said.message


def test_a_run_of_a_command_is_told_by_the_record(simulated: Simulated) -> None:
    MOVES.of(home_folder(), "local").write(record(MIXED))

    assert set(run_of("local", Path("topics")).known_moves().topics) == {"shop.orders"}
