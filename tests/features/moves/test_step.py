"""What one step of moves does when nothing goes wrong: which moves start, in which order, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from fixtures.moves.cluster import MB, Kind
from fixtures.moves.mover import Mover, world
from topicops.features.moves.carrying import starting
from topicops.features.moves.record import PartitionMove, Stage, TopicPartition
from topicops.model.ports import Begun
from topicops.model.runs.results import OutcomeStatus

A0 = TopicPartition("a", 0)
MINUTE_S = 60.0
SLOW = 3000.0 * MB
KINDS = pytest.mark.parametrize("kind", [*Kind])


def started(mover: Mover) -> list[str]:
    """Return what the newest request asked to move."""
    return sorted(str(at) for at, found in mover.cluster.all_partitions().items() if found.is_ours)


def partitions(count: int, row: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    return dict.fromkeys(range(count), row)


@KINDS
def test_a_move_of_any_kind_ends_at_its_target_with_its_preferred_leader(kind: Kind) -> None:
    mover = world({"a": {0: (1,), 1: (1, 2, 3), 2: (1, 2, 3), 3: (1, 2, 3)}}, kind=kind)
    target = {0: (2, 3), 1: (4, 2, 3), 2: (2,), 3: (3, 2, 1)}
    mover.accept("a", target)
    assert mover.steps() <= 3
    found = mover.cluster.topics_by_name["a"].partitions
    assert {p: now.replicas for p, now in found.items()} == target
    assert [now.leader for now in found.values()] == [2, 4, 2, 3]
    assert mover.left() == []
    assert mover.cluster.violations == []


def test_a_step_without_moves_asks_and_sends_nothing() -> None:
    mover = world({"a": {0: (1,)}})
    mover.step()
    assert mover.cluster.calls == []


def test_a_step_asks_as_many_questions_whatever_waits() -> None:
    few, many = (questions_of_a_step(waiting=waiting) for waiting in (3, 100))
    assert few == many
    assert len(many) <= 17


def questions_of_a_step(*, waiting: int) -> list[str]:
    mover = world({f"t{n}": {0: (1,)} for n in range(waiting)}, at_once=2, size=SLOW)
    for n in range(waiting):
        mover.accept(f"t{n}", {0: (2,)})
    mover.step()
    return [call for call in mover.cluster.calls if call not in ("add_entries", "set_rate", "alter")]


def test_a_change_that_needs_no_copy_is_done_in_the_first_step() -> None:
    mover = world({"a": {0: (1, 2, 3), 1: (1, 2, 3)}})
    gated = mover.accept("a", {0: (2, 1, 3), 1: (1, 2)})
    stepped = mover.step()
    assert stepped.became[gated.digest].status is OutcomeStatus.DONE
    assert stepped.became[gated.digest].sent
    assert stepped.moved == {A0, TopicPartition("a", 1)}
    assert mover.record.is_idle
    assert not {"add_entries", "set_rate"} & {*mover.cluster.calls}


@pytest.mark.parametrize(
    ("happens", "status", "sent"),
    [
        pytest.param("nothing", OutcomeStatus.MOVING, True, id="it moves"),
        pytest.param("the limit is reached", OutcomeStatus.MOVING, False, id="it waits"),
        pytest.param("no longer asked for", OutcomeStatus.REFUSED, False, id="dropped before a request"),
        pytest.param("the brokers refuse", OutcomeStatus.FAILED, True, id="dropped after a request"),
    ],
)
def test_what_became_of_a_change_is_told_by_its_digest(happens: str, status: OutcomeStatus, sent: bool) -> None:
    at_once = 0 if happens == "the limit is reached" else 50
    mover = world({"a": {0: (1,)}}, size=SLOW, at_once=at_once)
    gated = mover.accept("a", {0: (2, 3)})
    if happens == "no longer asked for":
        mover.unasked["a"] = "its file asks for something else"
    if happens == "the brokers refuse":
        mover.cluster.refuses["alter"] = "INVALID_REPLICA_ASSIGNMENT (39)"
    begun = mover.step().became[gated.digest]
    assert (begun.status, begun.sent) == (status, sent)
    assert bool(begun.message) == (status is not OutcomeStatus.MOVING)


def test_what_a_change_waits_for_is_told_with_what_became_of_it() -> None:
    mover = world({"a": {0: (1,), 1: (1,)}, "b": {0: (1,)}}, size=SLOW)
    waits, moves = mover.accept("a", {0: (2, 3), 1: (2, 3)}), mover.accept("b", {0: (2, 3)})
    mover.cluster.topics_by_name["a"].min_isr = 2
    became = mover.step().became
    (note,) = mover.notes
    assert note.startswith("a partitions 0, 1: not started: min.insync.replicas is 2")
    assert became[waits.digest] == Begun(OutcomeStatus.MOVING, note.rstrip("."))
    assert became[moves.digest] == Begun(OutcomeStatus.MOVING, sent=True)


def test_a_refusal_is_dropped_with_the_reason_and_leaves_nothing() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.refuses["alter"] = "INVALID_REPLICA_ASSIGNMENT (39)"
    mover.step()
    assert [(end.status, end.message) for end in mover.record.ended] == [("dropped", "INVALID_REPLICA_ASSIGNMENT (39)")]
    assert mover.record.is_idle
    assert mover.left() == []


def test_one_request_has_at_most_fifty_partitions_whatever_the_limit() -> None:
    mover = world({"a": partitions(120, (1,))}, at_once=500, per_broker=500)
    mover.accept("a", partitions(120, (2,)))
    mover.step()
    assert len(started(mover)) == 120
    assert mover.cluster.largest_alter == 50
    mover.cancel("a")
    mover.steps(every_s=31)
    assert mover.cluster.largest_alter == 50
    assert mover.cluster.violations == []


def test_no_broker_receives_more_at_once_than_the_limit() -> None:
    mover = world({"a": {n: (1 + n % 2,) for n in range(12)}}, size=SLOW, per_broker=2)
    mover.accept("a", {n: (3 + n // 6,) for n in range(12)})
    mover.step()
    targets = [mover.cluster.partition(TopicPartition("a", int(at.split("-")[1]))).adding for at in started(mover)]
    assert sorted(targets) == [(3,), (3,), (4,), (4,)]


def test_senders_and_receivers_come_in_turn() -> None:
    rows = {0: (1,), 1: (1,), 2: (2,), 3: (2,)}
    mover = world({"a": rows}, brokers=6, size=SLOW, at_once=2)
    mover.accept("a", {0: (3,), 1: (3,), 2: (4,), 3: (4,)})
    mover.step()
    assert started(mover) == ["a-0", "a-2"]


def test_single_replicas_come_first_and_then_small_ones() -> None:
    mover = world({"big": {0: (1, 2)}, "small": {0: (1, 2)}, "lonely": {0: (1,)}}, size=SLOW, at_once=1)
    mover.cluster.partition(TopicPartition("small", 0)).size = 1.0 * MB
    for topic, target in (("big", (1, 3)), ("small", (1, 3)), ("lonely", (1, 2))):
        mover.accept(topic, {0: target})
    mover.steps()
    order = [f"{sent.topic}-{sent.partitions[0]}" for sent in mover.told if sent.what == "start"]
    assert order == ["lonely-0", "small-0", "big-0"]


@pytest.mark.parametrize(
    ("at_once", "waves"), [pytest.param(3, 4, id="three at once"), pytest.param(50, 1, id="all at once")]
)
def test_the_next_wave_starts_when_the_one_before_has_ended(at_once: int, waves: int) -> None:
    mover = world({"a": partitions(10, (1,))}, at_once=at_once, per_broker=50)
    mover.accept("a", partitions(10, (2,)))
    mover.steps()
    assert mover.cluster.calls.count("alter") == waves


TINY = 1_000.0
"""Bytes that are copied before a step looks again."""


def test_a_step_goes_on_with_the_next_wave_while_moves_end_at_once() -> None:
    mover = world({"a": partitions(10, (1,))}, at_once=3, per_broker=50, size=TINY)
    mover.accept("a", partitions(10, (2,)))
    stepped = mover.step()
    assert mover.cluster.calls.count("alter") == 4
    assert len(stepped.moved) == 10
    assert mover.record.is_idle
    assert mover.left() == []
    assert mover.cluster.violations == []


def test_a_step_with_many_waves_ends_after_seconds() -> None:
    mover = world({"a": partitions(100, (1,))}, at_once=1, size=TINY)
    mover.accept("a", partitions(100, (2,)))
    mover.step()
    assert 5 < mover.cluster.calls.count("alter") < 50
    assert 3 < mover.cluster.seconds < 5


def test_a_step_whose_moves_take_long_looks_for_a_moment_only() -> None:
    mover = world({"a": partitions(10, (1,))}, at_once=3, size=SLOW)
    mover.accept("a", partitions(10, (2,)))
    mover.step()
    assert mover.cluster.calls.count("alter") == 1
    assert mover.cluster.seconds < 2


def test_a_later_wave_of_a_step_starts_only_what_still_may() -> None:
    mover = world({"a": partitions(4, (1,))}, at_once=2, size=TINY)
    mover.accept("a", partitions(4, (2,)))

    def throttle_by_hand(number: int, name: str) -> None:
        if mover.cluster.calls.count("alter") == 1 and name == "alter":
            mover.cluster.foreign_entries("a", ["3:1"])

    mover.cluster.after_call = throttle_by_hand
    mover.step()
    assert started(mover) == []
    assert [*mover.record.topics[0].partitions] == [3]
    assert "a partition 3: not started: TOP313: its throttle lists have 3:1" in mover.notes[0]
    assert mover.cluster.topics_by_name["a"].entries["leader"] == {"3:1": "somebody"}
    assert mover.cluster.violations == []


def test_the_waves_of_a_step_share_the_room_of_a_disk_that_was_read_for_the_first() -> None:
    mover = world({"a": partitions(3, (1,))}, at_once=1, throttle=None)
    mover.cluster.brokers_by_id[2].free = 25.0 * MB
    mover.accept("a", partitions(3, (2,)))
    mover.step()
    assert [*mover.record.topics[0].partitions] == [2]
    assert "the disk of broker 2 has 25,000,000 bytes free, and 31,000,000 would be needed" in mover.notes[0]


def test_a_later_wave_knows_the_old_logs_of_topics_that_were_read_before_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "TOPICS_A_LOOK", 1)
    mover = world({"a": partitions(2, (1,)), "b": {0: (1,)}}, per_broker=1, size=TINY)
    mover.cluster.partition(TopicPartition("a", 1)).old_logs.add(3)
    mover.accept("a", partitions(2, (3,)))
    mover.accept("b", {0: (3,)})
    stepped = mover.step()
    assert stepped.moved == {A0, TopicPartition("b", 0)}
    assert "a partition 1: not started: broker 3 has a log of before" in mover.notes[0]
    assert mover.cluster.violations == []


def test_a_move_that_may_start_is_found_behind_more_topics_than_a_step_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "TOPICS_A_LOOK", 1)
    monkeypatch.setattr(starting, "LOOKS", 1)
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}, "c": {0: (1,)}}, throttle=None)
    for name in "abc":
        mover.accept(name, {0: (3,)})
    for name in "ab":  # their moves cannot start
        mover.cluster.partition(TopicPartition(name, 0)).old_logs.add(3)
    for _ in range(3):
        mover.step()
        mover.cluster.advance(60.0)
    waiting = {each.at.topic for move in mover.record.topics for each in move.each() if not each.found.asked_at}
    assert waiting == {"a", "b"}


def test_without_a_throttle_nothing_is_set() -> None:
    mover = world({"a": {0: (1,)}}, throttle=None)
    mover.accept("a", {0: (2, 3)})
    mover.steps()
    assert not {"add_entries", "remove_entries", "set_rate"} & {*mover.cluster.calls}
    assert mover.record.is_idle


def test_the_throttle_has_both_halves_on_the_sides_that_need_them() -> None:
    mover = world({"a": {0: (1, 2)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    entries = mover.cluster.topics_by_name["a"].entries
    assert {side: sorted(found) for side, found in entries.items()} == {"leader": ["0:1", "0:2"], "follower": ["0:3"]}
    rates = {broker: found.rates["leader"] for broker, found in mover.cluster.brokers_by_id.items()}
    assert rates == {1: 5 * MB, 2: 5 * MB, 3: 5 * MB, 4: None}
    assert {broker: found.rates["follower"] for broker, found in mover.cluster.brokers_by_id.items()} == rates


def test_the_throttle_of_a_person_wins_and_is_set_in_the_next_step() -> None:
    mover = world({"a": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.change_throttle(20 * MB)
    mover.step()
    assert {found.rates["leader"] for b, found in mover.cluster.brokers_by_id.items() if b < 4} == {20 * MB}
    assert mover.cluster.violations == []


def test_the_throttle_of_a_person_counts_until_the_moves_have_ended() -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}, "c": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.change_throttle(20 * MB)
    mover.accept("b", {0: (2, 3)})
    assert mover.throttle == 20 * MB
    mover.steps()
    mover.accept("c", {0: (2, 3)})
    assert mover.throttle == 5 * MB
    mover.step()
    assert {found.rates["leader"] for b, found in mover.cluster.brokers_by_id.items() if b < 4} == {5 * MB}


def test_a_kill_between_the_old_and_the_new_rate_leaves_both_ours() -> None:
    mover = world({"a": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.change_throttle(20 * MB)
    mover.cluster.refuses["set_rate"] = "the request was lost"
    mover.step()
    assert [(rate.rate, rate.was) for rate in mover.record.rates] == [(20 * MB, 5 * MB)] * 3
    mover.cluster.refuses.clear()
    mover.step()
    assert {found.rates["leader"] for b, found in mover.cluster.brokers_by_id.items() if b < 4} == {20 * MB}


def test_a_rate_that_is_changed_back_before_brokers_tell_of_it_is_set_again() -> None:
    mover = world({"a": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.slow_configs_s = 5.0
    mover.cluster.before_call = lambda *_: setattr(mover, "is_disturbed", True)  # or else all is told after the step
    for rate in (20 * MB, 5 * MB):
        mover.change_throttle(rate)
        mover.step()
    mover.cluster.apply_configs()
    assert {found.rates["leader"] for b, found in mover.cluster.brokers_by_id.items() if b < 4} == {5 * MB}
    mover.steps()
    assert mover.record.is_idle
    mover.cluster.apply_configs()
    assert mover.left() == []


def test_each_rate_that_may_come_into_force_late_stays_ours() -> None:
    """The second change of a person comes before brokers tell of the first, and its request is lost."""
    mover = world({"a": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.slow_configs_s = 5.0
    mover.cluster.before_call = lambda *_: setattr(mover, "is_disturbed", True)  # or else all is told after the step
    mover.change_throttle(20 * MB)
    mover.step()
    mover.change_throttle(30 * MB)
    mover.cluster.refuses["set_rate"] = "the request was lost"
    mover.step()
    mover.cluster.refuses.clear()
    mover.steps()
    assert mover.record.is_idle
    mover.cluster.apply_configs()
    assert mover.left() == []


def test_progress_is_kept_by_the_bytes_of_the_new_replicas() -> None:
    mover = world({"a": {0: (1,)}}, size=600 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.advance(MINUTE_S)
    mover.step()
    found = mover.record.topics[0].partitions[0]
    assert found.size_bytes == 1200 * MB
    assert 250 * MB < found.copied_bytes < 350 * MB
    assert found.grown_at == mover.record.stepped_at
    assert found.stage is Stage.ASKED


def test_a_move_that_grows_is_never_stuck() -> None:
    mover = world({"a": {0: (1,)}}, size=SLOW, stuck_after=timedelta(minutes=2))
    mover.accept("a", {0: (2, 3)})
    mover.steps()
    assert [end.status for end in mover.record.ended] == ["done"]


def test_the_record_is_kept_before_each_request_that_it_explains() -> None:
    mover = world({"a": {0: (1,)}}, size=SLOW)
    mover.accept("a", {0: (2, 3)})
    known: dict[str, PartitionMove | tuple[object, ...]] = {}

    def note(number: int, name: str) -> None:
        [move] = mover.record.topics
        known.setdefault(name, (move.leader_entries, len(mover.record.rates), move.partitions[0].stage))

    mover.cluster.before_call = note
    mover.step()
    assert known["add_entries"] == (("0:1",), 0, Stage.ACCEPTED)
    assert known["set_rate"] == (("0:1",), 3, Stage.ACCEPTED)
    assert known["alter"] == (("0:1",), 3, Stage.ASKED)


def test_each_request_is_one_line_of_the_audit_log() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.steps()
    assert [sent.what for sent in mover.told] == [
        "entries", "rate", "rate", "rate", "start", "end", "entries", "rate", "rate", "rate",
    ]  # fmt: skip
    start = next(sent for sent in mover.told if sent.what == "start")
    assert (start.topic, start.partitions) == ("a", (0,))
    assert (start.before, start.after, start.answer) == ({"0": [1]}, {"0": [2, 3]}, "accepted")


def answered(mover: Mover, answers: dict[int, str]) -> None:
    """Let the brokers carry out what is asked of ``a``, but what they refuse, and give these answers by partition."""
    alter = mover.cluster.alter

    def some(rows: Mapping[TopicPartition, tuple[int, ...] | None]) -> Mapping[TopicPartition, str]:
        alter({at: row for at, row in rows.items() if not answers.get(at.partition)})
        return {TopicPartition("a", p): answer for p, answer in answers.items()}

    mover.cluster.alter = some  # type: ignore[method-assign]


def test_the_audit_log_has_a_line_for_each_answer_to_the_partitions_of_a_topic() -> None:
    mover = world({"a": partitions(4, (1,))}, size=SLOW)
    mover.accept("a", partitions(4, (2,)))
    answered(mover, {0: "", 1: "INVALID_REPLICA_ASSIGNMENT (39)", 3: ""})
    mover.step()
    mover.cancel("a")
    answered(mover, {0: "", 3: "NO_REASSIGNMENT_IN_PROGRESS (85)"})
    mover.step()
    lines = [(sent.what, sent.partitions, sent.answer) for sent in mover.told if sent.what in ("start", "cancel")]
    assert lines == [
        ("start", (0, 3), "accepted"),
        ("start", (1,), "INVALID_REPLICA_ASSIGNMENT (39)"),
        ("start", (2,), "no clear answer: the brokers did not name it"),
        ("cancel", (0,), "accepted"),
        ("cancel", (2,), "no clear answer: the brokers did not name it"),
        ("cancel", (3,), "NO_REASSIGNMENT_IN_PROGRESS (85)"),
    ]
    assert [sent.after for sent in mover.told if sent.what == "start"][1] == {"1": [2]}


def test_a_target_that_gets_no_new_replicas_any_more_is_dropped_and_planned_anew() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.cluster.brokers_by_id[3].closed = "which is cordoned"
    mover.step()
    assert [end.message for end in mover.record.ended] == ["it would move to broker 3, which is cordoned"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param("r1", "r2", "broker 3 is on rack r2, and was on rack r1 in the plan", id="another"),
        pytest.param("r1", None, "broker 3 is on no rack, and was on rack r1 in the plan", id="none any more"),
        pytest.param(None, "r2", "broker 3 is on rack r2, and was on no rack in the plan", id="one by now"),
    ],
)
def test_a_target_that_is_on_another_rack_by_now_is_dropped_and_planned_anew(
    before: str | None, after: str | None, message: str
) -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}}, at_once=1)
    mover.cluster.brokers_by_id[3].rack = before
    mover.accept("a", {0: (2, 3)})
    mover.accept("b", {0: (2, 4)})
    mover.cluster.brokers_by_id[3].rack = after
    mover.steps()
    assert [(end.topic, end.message) for end in mover.record.ended] == [("a", message), ("b", "")]


def test_a_broker_whose_rack_was_not_known_may_be_on_any() -> None:
    mover = world({"a": {0: (1,)}})
    mover.cluster.brokers_by_id[3].is_live = False
    mover.accept("a", {0: (2, 3)})
    mover.cluster.brokers_by_id[3].is_live, mover.cluster.brokers_by_id[3].rack = True, "r2"
    mover.steps()
    assert [(end.topic, end.message) for end in mover.record.ended] == [("a", "")]


def test_a_move_needs_two_readings_to_have_ended() -> None:
    mover = world({"a": {0: (1,)}})
    mover.accept("a", {0: (2, 3)})
    mover.step()
    mover.cluster.advance(MINUTE_S)
    begun = len(mover.cluster.calls)

    def fall_behind(number: int, name: str) -> None:
        if number == begun + 4:  # after the first reading
            mover.cluster.partition(A0).isr.remove(3)
            mover.cluster.partition(A0).logs[3] = -1000.0 * MB

    mover.cluster.before_call = fall_behind
    assert mover.step().moved == set()
