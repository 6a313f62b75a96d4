"""What ``topicops moves`` says of a record and of what Kafka lists, and how it carries moves on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import live_topic, snapshot
from features.moves.test_progress import BEGUN, MIB, moves, partition, waiting
from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.record import EndedMove, MovesRecord, OwnedRate, Stage, TopicMove
from topicops.features.moves.telling.following import bytes_of, dropped, throttled, watch
from topicops.features.moves.telling.status import moves_of_others, status_of
from topicops.features.moves.telling.text import bar, status_text
from topicops.model.errors import ClusterError, LeaseHeldError, UsageError
from topicops.model.plans.changes import MoveReason
from topicops.model.ports import Clock

LATER = BEGUN + timedelta(minutes=10)
ENDED = EndedMove(topic="bills", why=MoveReason.DRAIN, run="cli/1", partitions=2, status="done", at=BEGUN)


def record(*topics: TopicMove, rates: tuple[OwnedRate, ...] = (), **more: object) -> MovesRecord:
    speed = sum(found.bytes_per_s for move in topics for found in move.partitions.values())
    return replace(MovesRecord(cluster_id="a", topics=topics, rates=rates, stepped_at=LATER, bytes_per_s=speed), **more)  # type: ignore[arg-type]


OURS = record(
    moves({0: partition(30, 60), 1: waiting(60)}),
    rates=(OwnedRate(broker=1, rate=5 * MIB),),
    notes=("shop.orders-1 waits for broker 2",),
    ended=(ENDED,),
)


def shown(found: MovesRecord | None, *live: object) -> str:
    others = tuple(moves_of_others(found, snapshot(*live)))  # type: ignore[arg-type]
    return status_text(replace(status_of("prod", found), others=others))


def test_each_partition_is_shown_with_what_is_copied_its_speed_and_what_waits() -> None:
    text = shown(OURS)

    assert text.splitlines() == [
        "prod: moving 1 of 2 partitions of 1 topic, 25 %, about 30 min; 51.2KiB/s; throttle 5.0MiB/s for each broker; "
        "last step 2026-11-29 12:10:00 UTC",
        "  shop.orders (factor; run cli/1): moving 1 of 2 partitions, 25 %, about 30 min, 51.2KiB/s",
        "    partition 0 moves, [1] to [2], 50 % of 60.0MiB, 51.2KiB/s",
        "    partition 1 waits, [1] to [2]",
        "Waits, or is still to be done:",
        "  shop.orders-1 waits for broker 2",
        "Ended:",
        "  2026-11-29 12:00 UTC  bills: done, 2 partitions",
        "To carry them on until they end: topicops moves --watch --environment prod",
    ]


def test_a_move_that_is_not_in_the_record_is_said_to_be_of_others() -> None:
    ours = live_topic("shop.orders", assignment={0: (1, 2), 1: (1,), 2: (1, 3)})
    mixed = replace(ours, adding={0: (2,), 2: (3,)}, removing={0: (1,)})

    text = shown(OURS, mixed)

    assert "Moved by others, which topicops leaves alone:\n  shop.orders-2: adds 3\n" in text
    assert "shop.orders-0" not in text


def test_a_topic_that_old_brokers_move_is_named_without_its_partitions() -> None:
    live = replace(snapshot(live_topic("old")), reassigning=frozenset({"old"}))

    assert [move.topic for move in moves_of_others(None, live)] == ["old"]
    assert "alone:\n  old" in status_text(replace(status_of("prod", None), others=tuple(moves_of_others(None, live))))


def test_where_the_cluster_cannot_be_read_the_record_is_shown_and_the_reason() -> None:
    found = replace(status_of("prod", OURS), others_unread="no broker answers")

    assert "Whether others move replicas is not known: no broker answers" in status_text(found)
    assert found.topics


def test_where_nothing_moves_nothing_is_to_be_carried_on() -> None:
    assert shown(None) == "prod: nothing moves"


def test_a_partition_that_stands_still_says_since_when() -> None:
    still = record(moves({0: partition(30, 60, grown=1)}), stepped_at=BEGUN + timedelta(minutes=30))

    text = status_text(status_of("prod", still))

    assert "[1] to [2], 50 % of 60.0MiB, 51.2KiB/s: nothing was copied since 12:01 UTC" in text


def test_a_partition_that_moves_back_says_why() -> None:
    back = replace(partition(stage=Stage.CANCELLING), why_cancelled="broker 2 is dead")

    assert "partition 0 moves back, [1] to [2]: broker 2 is dead" in shown(record(moves({0: back})))


@pytest.mark.parametrize(("percent", "filled"), [(None, 0), (0, 0), (50, 12), (100, 24)])
def test_the_bar_is_as_full_as_the_moves_are(percent: int | None, filled: int) -> None:
    found = replace(status_of("prod", OURS), percent=percent)

    assert bar(found).startswith(f"[{'#' * filled}{'-' * (24 - filled)}] moving 1 of 2")


# ---- carrying on ----


class Steps:
    """Steps of a record that end one partition each; one that is an error is raised."""

    def __init__(self, *found: MovesRecord | Exception) -> None:
        self.left, self.record = list(found), OURS
        self.slept, self.shown, self.warned = [], [], []  # type: ignore[var-annotated]

    def step(self) -> Stepped | None:
        found = self.left.pop(0)
        if isinstance(found, Exception):
            raise found
        self.record = found
        return Stepped(record=found)

    def watch(self) -> list[EndedMove]:
        return watch(
            self.step,
            lambda: status_of("prod", self.record),
            self.shown.append,
            self.warned.append,
            every_s=10,
            clock=Clock(sleep=self.slept.append),
        )


IDLE = record(ended=(ENDED, replace(ENDED, topic="shop.orders", status="dropped", at=LATER)))


def test_moves_are_carried_on_until_none_is_left_and_those_that_ended_are_given() -> None:
    steps = Steps(OURS, IDLE)

    ended = steps.watch()

    assert [move.topic for move in ended] == ["shop.orders"]
    assert dropped(ended) == ended
    assert (steps.slept, len(steps.shown)) == ([10], 2)


def test_a_rate_that_is_still_to_be_removed_is_carried_on_too() -> None:
    steps = Steps(record(rates=OURS.rates), IDLE)

    steps.watch()

    assert steps.slept == [10]


@pytest.mark.parametrize(
    "error", [ClusterError("no answer"), LeaseHeldError("another run holds the lease")], ids=["unclear", "lease"]
)
def test_a_step_that_cannot_be_made_is_said_once_and_tried_again(error: Exception) -> None:
    steps = Steps(error, error, IDLE)

    steps.watch()

    assert steps.warned == [f"{error}; it is tried again in 10 s"]


def test_a_step_that_a_person_must_mend_ends_the_watch() -> None:
    with pytest.raises(UsageError):
        Steps(UsageError("no such connection")).watch()


# ---- sizes ----


@pytest.mark.parametrize(("text", "size"), [("1000", 1000), ("50MiB", 50 * MIB), ("1GiB", 1 << 30), ("7B", 7)])
def test_a_size_is_written_as_in_the_files(text: str, size: int) -> None:
    assert bytes_of(text) == size
    assert throttled(size)(OURS).throttle == size


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("100MB", "write 100MiB if that is meant"),
        ("-5MiB", "write it like 1GiB"),
        ("fast", "write it like 1GiB"),
        ("5KiBMiB", "write it like 1GiB"),
    ],
)
def test_another_spelling_of_a_size_is_refused_with_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(UsageError, match=f"is no number of bytes: .*; {advice}"):
        bytes_of(text)


def test_a_throttle_of_nothing_is_refused_because_no_move_would_end() -> None:
    with pytest.raises(UsageError, match="topicops moves --cancel-all"):
        throttled(bytes_of("0"))
