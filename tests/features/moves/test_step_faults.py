"""Faults that may happen to moves, and what is true then; on a simulated cluster, with ZooKeeper and with KRaft."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from fixtures.moves.cluster import MB, Kind, SimulatedMoves
from fixtures.moves.mover import Mover, killed_at, world
from topicops.features.moves.carrying.ending import cancel_obstacle
from topicops.features.moves.carrying.ports import PartitionNow
from topicops.features.moves.record import MovesRecord, PartitionMove, Stage, TopicPartition
from topicops.model.errors import LeaseLostError

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
MINUTE_S, HOUR_S = 60.0, 3600.0
KINDS = pytest.mark.parametrize("kind", [*Kind])


def moving(kind: Kind = Kind.ZOOKEEPER, *, size: float = 3000.0 * MB, **settings: object) -> Mover:
    """Return a mover after its first step: a-0 moves from 1 to 2 and 3, and takes minutes."""
    mover = world({"a": {0: (1,)}}, kind=kind, size=size, **settings)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    assert mover.cluster.partition(A0).is_ours
    return mover


def at_rest(mover: Mover) -> bool:
    return mover.record.is_idle and not mover.left() and not mover.cluster.violations


def statuses(mover: Mover) -> list[tuple[str, str]]:
    return [(end.status, end.message) for end in mover.record.ended]


def alters(cluster: SimulatedMoves) -> int:
    return cluster.calls.count("alter")


@KINDS
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("request_name", ["add_entries", "set_rate", "alter"])
def test_after_a_kill_in_a_wave_the_next_steps_reach_the_same_end(kind: Kind, after: bool, request_name: str) -> None:
    mover = world({"a": {0: (1,)}}, kind=kind)
    mover.accept("a", {0: (2, 3)})
    number = 1 + _calls_of_one_step(kind).index(request_name)
    mover.cluster.before_call, mover.cluster.after_call = killed_at(number, after=after)
    assert not mover.try_step()
    assert mover.steps(every_s=31) <= 4
    assert at_rest(mover)
    assert mover.cluster.partition(A0).replicas == (2, 3)


def _calls_of_one_step(kind: Kind) -> list[str]:
    mover = world({"a": {0: (1,)}}, kind=kind)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    return mover.cluster.calls


def test_entries_that_were_set_before_a_kill_are_taken_out_when_nothing_may_start() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.before_call, _ = killed_at(1 + _calls_of_one_step(Kind.ZOOKEEPER).index("set_rate"), after=False)
    mover.try_step()
    assert mover.cluster.topics_by_name["a"].entries["follower"] == {"0:2": "ours", "0:3": "ours"}
    mover.unasked["a"] = "its file asks for something else"
    mover.step()
    assert at_rest(mover)


def test_a_move_that_was_asked_for_before_a_kill_is_recorded_as_ours() -> None:
    mover = world({"a": {0: (1,)}}, size=3000 * MB)
    mover.accept("a", {0: (2, 3)})
    _, mover.cluster.after_call = killed_at(1 + _calls_of_one_step(Kind.ZOOKEEPER).index("alter"), after=True)
    mover.try_step()
    assert not mover.record.topics[0].partitions[0].seen
    mover.step()
    assert mover.record.topics[0].partitions[0].seen
    assert alters(mover.cluster) == 1


@KINDS
def test_a_move_goes_on_with_its_throttle_after_a_kill(kind: Kind) -> None:
    mover = moving(kind)
    entries, rates = _throttle(mover.cluster)
    mover.cluster.before_call, _ = killed_at(len(mover.cluster.calls) + 2, after=False)
    assert not mover.try_step()
    mover.step()
    assert _throttle(mover.cluster) == (entries, rates)
    assert alters(mover.cluster) == 1


def _throttle(cluster: SimulatedMoves) -> tuple[object, object]:
    topic = cluster.topics_by_name["a"]
    return {s: {**e} for s, e in topic.entries.items()}, {b: {**f.rates} for b, f in cluster.brokers_by_id.items()}


def test_without_the_record_the_move_ends_by_itself_and_its_throttle_is_left_to_a_person() -> None:
    mover = moving()
    mover.record = MovesRecord(cluster_id="simulated")
    mover.cluster.advance(HOUR_S)
    calls = len(mover.cluster.calls)
    mover.step()
    assert mover.cluster.partition(A0).replicas == (2, 3)
    assert len(mover.cluster.calls) == calls
    mover.accept("a", {0: (3, 4)})
    mover.step()
    assert mover.notes == [
        "a partition 0: not started: broker 2: TOP313: it has the throttle rate 5000000, which topicops did not set; "
        "remove it if unused."
    ]


def test_a_lease_that_is_lost_after_the_entries_stops_the_request_and_the_next_holder_takes_them_out() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.loses_lease_at = 1
    with pytest.raises(LeaseLostError):
        mover.step()
    assert alters(mover.cluster) == 0
    mover.unasked["a"] = "its file asks for something else"
    mover.cluster.advance(MINUTE_S)
    mover.step()
    assert at_rest(mover)
    assert alters(mover.cluster) == 0


@KINDS
@pytest.mark.parametrize("fails", ["lost", "unsent", "late", "moved"])
def test_a_request_without_a_clear_answer_is_read_back(kind: Kind, fails: str) -> None:
    mover = world({"a": {0: (1,)}}, kind=kind)
    mover.accept("a", {0: (2, 3)})
    mover.cluster.alter_fails = [fails]  # type: ignore[list-item]
    mover.step()
    assert mover.record.topics[0].partitions[0].stage is Stage.ASKED
    mover.steps(every_s=31)
    assert at_rest(mover)
    assert statuses(mover) == [("done", "")]
    assert alters(mover.cluster) == (2 if fails == "unsent" else 1)


@KINDS
def test_a_request_that_is_carried_out_after_it_counted_as_lost_has_moved_as_planned(kind: Kind) -> None:
    mover = world({"a": {0: (1,)}}, kind=kind)
    mover.accept("a", {0: (2, 3)})
    mover.cluster.alter_fails = ["late"]
    mover.step()
    [(_, rows)] = mover.cluster.late
    mover.cluster.late[:] = [(50.0, rows)]
    mover.cluster.topics_by_name["a"].min_isr = 2  # so that it is not asked for again
    mover.cluster.advance(40)
    mover.step()
    assert mover.record.topics[0].partitions[0].stage is Stage.ACCEPTED
    mover.cluster.advance(40)
    assert mover.cluster.partition(A0).replicas == (2, 3)
    mover.steps()
    assert statuses(mover) == [("done", "")]
    assert at_rest(mover)


def test_a_step_without_a_controller_sends_nothing() -> None:
    mover = moving()
    mover.cluster.fail_over(6)
    record = mover.record
    assert not mover.try_step()
    assert mover.record == record
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert at_rest(mover)


@KINDS
def test_a_target_that_dies_lets_the_others_go_on_and_its_partition_is_cancelled_when_it_is_stuck(kind: Kind) -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}}, kind=kind, size=300 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.accept("b", {0: (2, 4)})
    mover.step()
    mover.cluster.kill_broker(3)
    for _ in range(10):
        mover.cluster.advance(MINUTE_S)
        mover.step()
    assert B0 in mover.moved
    assert "a partition 0: waits for broker 3, which is not live." in mover.notes
    mover.cluster.advance(HOUR_S)
    mover.steps(most=3)
    assert statuses(mover)[-1][0] == "cancelled"
    assert "because broker 3 is not live" in statuses(mover)[-1][1]
    assert mover.cluster.partition(A0).replicas == (1,)
    assert mover.left() == ["record: OwnedRate(broker=3, rate=5000000, was=None)", f"broker 3: rate {_both(5 * MB)}"]
    assert mover.cluster.violations == []


def _both(rate: int | None) -> dict[str, int | None]:
    return {"leader": rate, "follower": rate}


@KINDS
def test_no_move_is_cancelled_while_no_replica_of_its_origin_may_lead(kind: Kind) -> None:
    mover = world({"a": {0: (1,)}}, kind=kind, size=300 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.kill_broker(3)
    mover.cluster.advance(2 * MINUTE_S)
    assert set(mover.cluster.partition(A0).isr) == {1, 2}
    mover.cluster.kill_broker(1)
    mover.step()
    mover.cancel("a")
    mover.step()
    assert mover.notes[0] == (
        "a partition 0: cannot be cancelled: no replica of 1 is live and in sync, so that it would have no leader; "
        "bring one of them back."
    )
    assert alters(mover.cluster) == 1
    assert mover.cluster.partition(A0).leader == 2
    mover.cluster.start_broker(1)
    mover.cluster.start_broker(3)
    mover.steps()
    assert at_rest(mover)


@KINDS
def test_a_move_that_was_stuck_and_grows_again_is_not_cancelled(kind: Kind) -> None:
    mover = world({"a": {0: (1,)}}, kind=kind, size=300 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.kill_broker(3)
    mover.cluster.advance(2 * MINUTE_S)
    mover.step()
    mover.cluster.kill_broker(1)
    mover.cluster.advance(2 * HOUR_S)
    mover.step()
    assert "cannot be cancelled" in mover.notes[0]
    mover.cluster.start_broker(1)
    mover.cluster.start_broker(3)
    mover.cluster.advance(5)
    mover.step()
    mover.steps()
    assert statuses(mover) == [("done", "")]
    assert at_rest(mover)


def test_a_cancel_that_leaves_another_order_says_so() -> None:
    mover = world({"a": {0: (3, 1, 2)}}, size=3000 * MB)
    mover.accept("a", {0: (1, 2, 4)})
    mover.step()
    mover.cancel("a")
    mover.steps()
    assert statuses(mover) == [("cancelled", "it was asked for; its replicas were [3, 1, 2] and are now [1, 2, 3]")]
    assert at_rest(mover)


@pytest.mark.parametrize(
    ("origin", "isr", "live", "min_isr", "beginning"),
    [
        pytest.param((1,), (1, 2), {1, 2}, 1, "", id="the origin is in sync"),
        pytest.param((1,), (1, 2), {1, 2}, 2, "", id="no more than the origin ever had"),
        pytest.param((1,), (2,), {1, 2}, 1, "no replica of 1", id="the origin is live, and not in sync"),
        pytest.param((1,), (1, 2), {2}, 1, "no replica of 1", id="the origin is in sync, and dead"),
        pytest.param((1, 2, 3), (1, 4, 5), {1, 4, 5}, 2, "only 1 of", id="fewer in sync than producers need"),
        pytest.param((1, 2, 3), (1, 2, 4), {1, 2, 4}, 2, "", id="as many in sync as producers need"),
        pytest.param((1, 2, 3), (1,), {1}, 2, "", id="not fewer than now"),
    ],
)
def test_a_cancel_is_safe_only_if_enough_of_the_origin_stay(
    origin: tuple[int, ...], isr: tuple[int, ...], live: set[int], min_isr: int, beginning: str
) -> None:
    found = PartitionMove(origin=origin, target=(8, 9))
    obstacle = cancel_obstacle(found, PartitionNow(replicas=(*origin, 8, 9), isr=isr, leader=isr[0]), live, min_isr)
    assert obstacle.startswith(beginning)
    assert bool(obstacle) == bool(beginning)


def test_a_partition_without_a_leader_is_said_first_with_what_brings_it_back() -> None:
    mover = moving()
    mover.cluster.kill_broker(1)
    mover.step()
    assert mover.notes[0] == "a partition 0: no leader; it comes back with a broker of 1."


def test_a_move_whose_third_replica_is_dead_is_not_started() -> None:
    mover = world({"a": {0: (1, 2, 3)}})
    mover.accept("a", {0: (1, 2, 4)})
    mover.cluster.kill_broker(2)
    mover.step()
    assert mover.notes == ["1 partition waits for broker 2, which is not live."]
    assert alters(mover.cluster) == 0
    mover.cluster.start_broker(2)
    mover.cluster.advance(MINUTE_S)
    mover.steps()
    assert at_rest(mover)


@KINDS
def test_a_move_whose_third_replica_dies_meanwhile_says_so(kind: Kind) -> None:
    mover = world({"a": {0: (1, 2, 3)}}, kind=kind, size=300 * MB)
    mover.accept("a", {0: (1, 2, 4)})
    mover.step()
    mover.cluster.kill_broker(2)
    mover.cluster.advance(2 * MINUTE_S)
    mover.step()
    expected = {Kind.EARLY_KRAFT: "a partition 0: has moved, but broker 2 is not in sync yet."}.get(
        kind, "a partition 0: waits for broker 2, which is not live."
    )
    assert expected in mover.notes
    assert not mover.moved
    mover.cluster.start_broker(2)
    mover.cluster.advance(MINUTE_S)
    mover.steps()
    assert at_rest(mover)
    assert mover.moved == {A0}


@KINDS
@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param(None, "it is not ours any more (TOP501): somebody else cancelled it", id="cancelled"),
        pytest.param((4,), "it is not ours any more (TOP501): somebody else moves it, or has moved it", id="replaced"),
    ],
)
def test_a_move_that_somebody_takes_over_is_dropped(kind: Kind, row: tuple[int, ...] | None, message: str) -> None:
    mover = moving(kind)
    mover.cluster.foreign_alter(A0, row)
    mover.step()
    assert mover.record.topics[0].partitions  # believed only after a while
    mover.cluster.advance(MINUTE_S)
    mover.step()
    assert statuses(mover) == [("dropped", message)]
    assert at_rest(mover)
    assert alters(mover.cluster) == 1


def test_a_partition_that_somebody_else_moves_is_not_started() -> None:
    mover = world({"a": {0: (1,)}}, size=3000 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.cluster.foreign_alter(A0, (4,))
    mover.step()
    assert mover.notes == ["a partition 0: not started: somebody else moves it."]
    mover.cluster.advance(MINUTE_S)
    mover.step()
    assert statuses(mover) == [("dropped", "its replicas are [4], and were [1] in the plan (TOP501)")]


@KINDS
@pytest.mark.parametrize("is_made_anew", [False, True], ids=["deleted", "made anew"])
def test_what_is_owed_to_a_deleted_topic_ends(kind: Kind, is_made_anew: bool) -> None:
    mover = moving(kind)
    mover.cluster.delete_topic("a")
    if is_made_anew:
        mover.cluster.make_topic("a", {0: (1,)})
        mover.cluster.foreign_entries("a", ["0:2"])
    mover.step()
    mover.cluster.advance(MINUTE_S)
    mover.step()
    assert statuses(mover) == [("dropped", "its topic was deleted")]
    assert at_rest(mover)
    if is_made_anew:
        assert mover.cluster.topics_by_name["a"].entries["leader"] == {"0:2": "somebody"}


@pytest.mark.parametrize("has_begun", [True, False], ids=["it moves", "it waits"])
def test_a_topic_that_gets_an_id_meanwhile_goes_on_moving(has_begun: bool) -> None:
    """The brokers' protocol was raised to 2.8: until then topics had no ids."""
    mover = moving() if has_begun else world({"a": {0: (1,)}})
    if not has_begun:
        mover.accept("a", {0: (2, 3)})
    mover.cluster.give_id("a")
    for _ in range(3):
        mover.step()
        mover.cluster.advance(MINUTE_S)
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert statuses(mover) == [("done", "")]
    assert at_rest(mover)


@KINDS
def test_a_topic_that_is_expanded_meanwhile_goes_on_moving(kind: Kind) -> None:
    mover = moving(kind)
    mover.cluster.expand("a", {1: (4,)})
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert at_rest(mover)
    assert mover.moved == {A0}


def test_files_that_ask_for_it_no_longer_stop_what_waits_and_nothing_that_moves() -> None:
    mover = world({"a": {0: (1,), 1: (1,)}}, size=3000 * MB, at_once=1)
    mover.accept("a", {0: (2, 3), 1: (2, 3)})
    mover.step()
    mover.unasked["a"] = "its file asks for something else"
    mover.step()  # the limit is reached, so that nothing may start
    way = "topicops moves --cancel a takes it back"
    assert mover.notes == [f"a partition 0: goes on, although its file asks for something else: {way}."]
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert statuses(mover) == [("done", ""), ("dropped", "its file asks for something else")]
    assert at_rest(mover)


def test_a_move_of_somebody_else_to_the_same_place_needs_no_file() -> None:
    mover = world({"a": {0: (1,), 1: (1,)}}, size=3000 * MB, at_once=1)
    mover.accept("a", {0: (2, 3), 1: (2, 3)})
    mover.step()
    mover.cluster.foreign_alter(TopicPartition("a", 1), (2, 3))
    mover.unasked["a"] = "its file asks for something else"
    mover.step()
    assert [note.partition(",")[0] for note in mover.notes] == ["a partition 0: goes on"]


def test_a_move_that_is_to_be_taken_back_needs_no_file() -> None:
    mover = moving()
    mover.cluster.kill_broker(1)
    mover.unasked["a"] = "its file asks for something else"
    mover.cancel("a")
    mover.step()
    assert not any("although" in note for note in mover.notes), mover.notes
    assert any("cannot be cancelled" in note for note in mover.notes), mover.notes


def test_a_throttle_below_the_write_rate_is_said_with_the_rate_that_would_end_it() -> None:
    mover = moving(size=1000 * MB)
    mover.cluster.partition(A0).writes = 8.0 * MB
    for _ in range(8):
        mover.cluster.advance(MINUTE_S)
        mover.step()
    [note] = mover.notes
    assert note.startswith("a partition 0: producers write as fast as the throttle of 5,000,000 bytes a second lets")
    needed = int(note.split("more than ")[1].split(" ")[0].replace(",", ""))
    assert 7 * MB < needed < 12 * MB
    mover.change_throttle(30 * MB)
    mover.step()
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert at_rest(mover)


def test_a_move_without_room_on_a_disk_is_not_started() -> None:
    mover = world({"a": {0: (1,)}}, size=100 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.cluster.brokers_by_id[3].free = 109.0 * MB
    mover.step()
    assert mover.notes == [
        "a partition 0: not started: the disk of broker 3 has 109,000,000 bytes free, and 110,000,000 would be needed."
    ]
    mover.cluster.brokers_by_id[3].free = 111.0 * MB
    mover.steps()
    assert at_rest(mover)


def test_a_move_to_a_broker_with_a_log_of_before_is_not_started() -> None:
    mover = world({"a": {0: (1,)}})
    mover.cluster.partition(A0).old_logs.add(3)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    assert mover.notes == [
        "a partition 0: not started: broker 3 has a log of before, perhaps of an earlier topic of that name, whose "
        "records would be taken for those of now; stop the broker, remove the folder a-0 from its log directory, and "
        "start it again."
    ]
    assert mover.cluster.violations == []
    mover.cluster.partition(A0).old_logs.clear()
    mover.steps()
    assert at_rest(mover)


def test_a_log_that_a_cancelled_move_of_the_same_topic_has_left_keeps_no_move_from_starting() -> None:
    """Kafka 2.8 to 3.4 leave half copies with ZooKeeper (KAFKA-13972)."""
    mover = moving(size=300 * MB)
    mover.cluster.keeps_copies = True
    mover.cancel("a")
    mover.step()
    assert statuses(mover) == [("cancelled", "it was asked for")]
    assert mover.cluster.partition(A0).logs.keys() == {1, 2, 3}
    mover.accept("a", {0: (2, 4)})
    mover.steps()
    assert at_rest(mover)
    assert mover.cluster.partition(A0).replicas == (2, 4)


@pytest.mark.parametrize("broker", [2, 4], ids=["where a move of ours went", "elsewhere"])
def test_a_log_that_may_be_of_an_earlier_topic_keeps_a_move_from_starting_also_after_a_cancel(broker: int) -> None:
    mover = moving(size=300 * MB)
    mover.cluster.keeps_copies = broker == 2
    mover.cancel("a")
    mover.step()
    if broker == 2:
        mover.cluster.delete_topic("a")
        mover.cluster.make_topic("a", {0: (1,)})
    else:
        mover.cluster.partition(A0).old_logs.add(broker)
    mover.accept("a", {0: (2, 4)})
    mover.step()
    assert f"not started: broker {broker} has a log of before" in mover.notes[0]
    assert mover.cluster.violations == []


def test_a_move_to_a_broker_that_does_not_tell_its_logs_is_not_started() -> None:
    mover = world({"a": {0: (1,)}})
    mover.cluster.partition(A0).old_logs.add(3)
    mover.cluster.brokers_by_id[3].hides_sizes = True
    mover.accept("a", {0: (2, 3)})
    mover.step()
    assert mover.notes == [
        "a partition 0: not started: whether broker 3 has a log of before is not known: broker 3 did not answer."
    ]
    assert mover.cluster.violations == []
    mover.cluster.partition(A0).old_logs.clear()
    mover.cluster.brokers_by_id[3].hides_sizes = False
    mover.steps()
    assert at_rest(mover)


def test_of_moves_that_fill_a_disk_the_largest_is_cancelled() -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}}, size=2000 * MB)
    mover.cluster.partition(B0).size = 3000.0 * MB
    mover.accept("a", {0: (2,)})
    mover.accept("b", {0: (2,)})
    mover.step()
    mover.cluster.brokers_by_id[2].free = 4000.0 * MB
    mover.step()
    assert statuses(mover) == [("cancelled", "the disk of broker 2 has no room for it any more")]
    assert [at.topic for at, _, _ in mover.record.moving()] == ["a"]


@pytest.mark.parametrize("request_name", ["add_entries", "set_rate"])
def test_without_a_right_nothing_is_started_and_nothing_left(request_name: str) -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.refuses[request_name] = "CLUSTER_AUTHORIZATION_FAILED (31)"
    mover.step()
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in mover.notes[-1]
    assert alters(mover.cluster) == 0
    mover.cluster.refuses.clear()
    mover.steps()
    assert at_rest(mover)


def test_a_broker_that_is_dead_at_the_end_loses_its_rate_within_one_step_after_its_return() -> None:
    mover = moving(size=300 * MB)
    mover.cluster.advance(10 * MINUTE_S)
    mover.cluster.kill_broker(1)
    mover.step()
    (said,) = mover.notes
    assert said.startswith(
        "Broker 1 is not live; a step after its return removes our throttle rate from it. If it never"
    )
    assert said.endswith(": topicops moves --forget-broker 1.")
    assert mover.cluster.topics_by_name["a"].entries == {"leader": {}, "follower": {}}
    assert not mover.record.is_idle
    mover.cluster.start_broker(1)
    mover.step()
    assert at_rest(mover)


def test_moves_of_others_count_for_the_limit() -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,), 1: (1,)}}, size=3000 * MB, at_once=2)
    mover.accept("a", {0: (2, 3)})
    mover.cluster.foreign_alter(B0, (2,))
    mover.cluster.foreign_alter(TopicPartition("b", 1), (2,))
    mover.step()
    assert alters(mover.cluster) == 0
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert at_rest(mover)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        pytest.param(["*"], "somebody throttles all replicas of the topic; remove the lists", id="all"),
        pytest.param(["0:1"], "its throttle lists have 0:1, which topicops did not set", id="an entry that we need"),
        pytest.param(["7:1"], "", id="an entry that we do not need"),
    ],
)
def test_throttle_entries_of_others_are_never_changed(entries: list[str], reason: str) -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.foreign_entries("a", entries)
    mover.step()
    assert (reason in " ".join(mover.notes)) == (alters(mover.cluster) == 0 or not reason)
    mover.steps(most=3)
    assert mover.cluster.topics_by_name["a"].entries["leader"] == dict.fromkeys(entries, "somebody")
    assert mover.cluster.violations == []


def test_throttles_that_somebody_removes_are_put_back_in_the_next_step() -> None:
    mover = moving()
    before = _throttle(mover.cluster)
    mover.cluster.remove_all_throttles()
    mover.step()
    assert _throttle(mover.cluster) == before
    assert mover.cluster.violations == []


def test_a_broker_that_returns_while_its_partition_moves_gets_the_rate() -> None:
    mover = world({"a": {0: (1, 4)}}, size=3000 * MB)
    mover.accept("a", {0: (1, 2)})
    mover.cluster.kill_broker(4)
    mover.step()
    mover.cluster.start_broker(4)
    mover.step()
    assert mover.cluster.brokers_by_id[4].rates == _both(5 * MB)


def test_a_rate_that_cannot_be_read_stops_the_start_and_is_named() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.brokers_by_id[3].unread = "broker 3 hides its throttle rates"
    mover.step()
    assert mover.notes == [
        "a partition 0: not started: broker 3: its throttle rates cannot be read: broker 3 hides its throttle rates."
    ]
    assert alters(mover.cluster) == 0


def test_a_wave_waits_until_brokers_tell_of_its_throttle() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.slow_configs_s = 0.7
    mover.step()
    assert alters(mover.cluster) == 1
    assert mover.cluster.violations == []


def test_a_move_starts_only_when_its_entries_are_read_back() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    add = mover.cluster.add_entries
    mover.cluster.refuses["add_entries"] = "lost"
    mover.cluster.add_entries = lambda *entries: add(*entries) and ""  # type: ignore[method-assign]  # says yes, and forgets
    mover.step()
    assert alters(mover.cluster) == 0
    assert mover.notes == ["a partition 0: not started: its throttle entries are not in force yet."]


def test_brokers_that_never_tell_of_the_throttle_get_no_move() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.slow_configs_s = 100.0
    mover.step()
    assert alters(mover.cluster) == 0
    [note] = mover.notes
    assert note.endswith(" not in force yet.")
    mover.cluster.apply_configs()
    mover.cancel("a")
    assert mover.left() == []


@KINDS
def test_a_move_that_is_not_listed_has_ended_only_when_all_of_its_target_are_in_sync(kind: Kind) -> None:
    mover = moving(kind, size=300 * MB)
    mover.cluster.advance(10 * MINUTE_S)
    found = mover.cluster.partition(A0)
    assert not found.is_listed
    found.isr.remove(3)
    found.logs[3] = 0.0
    mover.step()
    assert not mover.moved
    assert mover.notes == ["a partition 0: has moved, but broker 3 is not in sync yet."]
    mover.cluster.advance(10 * MINUTE_S)
    mover.steps()
    assert at_rest(mover)
    assert mover.moved == {A0}


def test_a_move_that_brokers_do_not_agree_on_has_not_ended() -> None:
    mover = moving(size=300 * MB)
    mover.cluster.advance(10 * MINUTE_S)
    mover.cluster.disagrees.add(A0)
    mover.step()
    assert not mover.moved
    mover.cluster.disagrees.clear()
    mover.step()
    assert mover.moved == {A0}


def test_a_source_that_lags_is_no_sign_that_somebody_took_the_move() -> None:
    mover = world({"a": {0: (1, 2, 3)}})
    mover.cluster.lag_s = 20.0
    mover.accept("a", {0: (3, 1, 2)})
    mover.step()
    mover.step()
    mover.cluster.advance(21)
    mover.steps()
    assert statuses(mover) == [("done", "")]
    assert at_rest(mover)


@pytest.mark.parametrize(
    ("rows", "min_isr", "reason"),
    [
        pytest.param(((1,), (1, 2, 3)), 2, "acks=all would be refused while it moves; lower min", id="trap 3"),
        pytest.param(((1, 2, 3), (1,)), 2, "it would have 1 replicas; lower min", id="fewer than producers need"),
        pytest.param(((1, 2), (1, 2, 3)), 2, "", id="enough in sync"),
    ],
)
def test_min_insync_replicas_stops_what_producers_could_not_bear(
    rows: tuple[tuple[int, ...], tuple[int, ...]], min_isr: int, reason: str
) -> None:
    mover = world({"a": {0: rows[0]}})
    mover.cluster.topics_by_name["a"].min_isr = min_isr
    mover.accept("a", {0: rows[1]})
    mover.step()
    assert reason in " ".join(mover.notes)
    assert (alters(mover.cluster) == 0) == bool(reason)
    assert mover.cluster.violations == []


@pytest.mark.parametrize(
    ("rows", "target", "caps", "starts"),
    [
        pytest.param((1,), (1, 2, 3), set(), True, id="before 3.7, a higher factor"),
        pytest.param((1,), (2,), set(), True, id="before 3.7, another broker"),
        pytest.param((1,), (2,), {2}, False, id="its target is newer"),
        pytest.param((1,), (2,), {1}, False, id="its origin is newer"),
        pytest.param((1,), (2,), {3}, True, id="a broker that it does not concern is newer"),
        pytest.param((1, 2), (1, 3), set(), False, id="it takes records once another replica is in sync"),
    ],
)
def test_a_partition_that_refuses_acks_all_whatever_is_in_sync_may_move(
    rows: tuple[int, ...], target: tuple[int, ...], caps: set[int], starts: bool
) -> None:
    mover = world({"a": {0: rows}})
    mover.cluster.topics_by_name["a"].min_isr = 2
    mover.cluster.partition(A0).isr = [1]
    mover.cluster.partition(A0).logs |= dict.fromkeys(rows[1:], -1000.0 * MB)  # is not in sync soon
    for broker, found in mover.cluster.brokers_by_id.items():
        found.caps_min_isr = broker in caps
    mover.accept("a", {0: target})
    mover.step()
    assert (alters(mover.cluster) > 0) == starts, mover.notes
    assert mover.cluster.violations == []


@KINDS
def test_a_cancel_takes_the_move_back_and_leaves_nothing(kind: Kind) -> None:
    mover = moving(kind)
    mover.cancel("a")
    mover.step()
    assert [(s.before, s.after) for s in mover.told if s.what == "cancel"] == [({"0": [2, 3]}, {"0": [1]})]
    assert mover.cluster.partition(A0).replicas == (1,)
    assert statuses(mover) == [("cancelled", "it was asked for")]
    assert at_rest(mover)


def test_a_move_that_stands_still_because_sizes_are_not_known_is_not_cancelled() -> None:
    mover = moving(size=9000 * MB)
    mover.step()
    assert mover.record.topics[0].partitions[0].grown_at is not None
    mover.cluster.brokers_by_id[1].hides_sizes = True
    mover.cluster.advance(10 * MINUTE_S)
    mover.settings = replace(mover.settings, stuck_after=timedelta(minutes=1))
    mover.step()
    assert mover.notes == ["Broker 1: how much is copied is not known: broker 1 did not answer."]
    assert alters(mover.cluster) == 1


@pytest.mark.parametrize("ahead_s", [HOUR_S, 72 * HOUR_S], ids=["an hour", "days"])
def test_a_step_goes_on_after_one_of_a_host_whose_clock_was_ahead(ahead_s: float) -> None:
    mover = moving()
    mover.cluster.advance(MINUTE_S)
    mover.cluster.seconds += ahead_s
    mover.step()
    found, speed = mover.record.topics[0].partitions[0], mover.record.bytes_per_s
    mover.cluster.seconds -= ahead_s
    mover.step()
    assert mover.record.topics[0].partitions[0].bytes_per_s == found.bytes_per_s
    assert mover.record.bytes_per_s == speed
    mover.cluster.advance(HOUR_S)
    mover.steps()
    assert at_rest(mover)


def test_a_doubt_of_a_host_whose_clock_was_ahead_is_as_old_as_the_next_step() -> None:
    mover = moving()
    mover.cluster.foreign_alter(A0, None)
    mover.cluster.seconds += 72 * HOUR_S
    mover.step()
    mover.cluster.seconds -= 72 * HOUR_S
    mover.step()
    assert mover.record.topics[0].partitions[0].doubted_at is not None
    mover.cluster.advance(MINUTE_S)
    mover.step()
    assert statuses(mover) == [("dropped", "it is not ours any more (TOP501): somebody else cancelled it")]
    assert at_rest(mover)
