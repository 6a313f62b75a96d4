"""What is said of moves while they run, from their record alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from topicops.features.moves.record import EndedMove, MovesRecord, OwnedRate, PartitionMove, Stage, TopicMove
from topicops.features.moves.telling.status import status_of
from topicops.features.moves.telling.text import speed
from topicops.model.plans.changes import MoveReason

BEGUN = datetime(2026, 11, 29, 12, tzinfo=UTC)
MIB = 1 << 20


def partition(copied: int = 0, size: int = 0, stage: Stage = Stage.ASKED, grown: int | None = 10) -> PartitionMove:
    """One partition that moved from broker 1 to 2; ``grown``: minutes after the begin."""
    is_asked = stage is not Stage.ACCEPTED
    return PartitionMove(
        origin=(1,),
        target=(2,),
        stage=stage,
        asked_at=BEGUN if is_asked else None,
        copied_bytes=copied * MIB,
        size_bytes=size * MIB,
        bytes_per_s=copied * MIB / 600 if stage is Stage.ASKED else 0.0,
        grown_at=BEGUN + timedelta(minutes=grown) if is_asked and grown is not None else None,
    )


def waiting(size: int = 0) -> PartitionMove:
    return partition(size=size, stage=Stage.ACCEPTED)


def moves(partitions: Mapping[int, PartitionMove], topic: str = "shop.orders", run: str = "cli/1") -> TopicMove:
    return TopicMove(
        topic=topic, identity="a", why=MoveReason.FACTOR, digest=topic, run=run, accepted_at=BEGUN,
        partitions=partitions,
    )  # fmt: skip


def ended(partitions: int, *, status: str = "done", run: str = "cli/1", topic: str = "shop.orders") -> EndedMove:
    return EndedMove(
        topic=topic, why=MoveReason.FACTOR, run=run, partitions=partitions, status=status,
        at=BEGUN + timedelta(minutes=5),
    )  # fmt: skip


def record(
    *topics: TopicMove, past: tuple[EndedMove, ...] = (), rates: tuple[OwnedRate, ...] = (), minutes: int = 10
) -> MovesRecord:
    """Return a record whose last step was so many minutes after the begin."""
    stepped = BEGUN + timedelta(minutes=minutes)
    speed = sum(found.bytes_per_s for move in topics for found in move.partitions.values())  # all have the same brokers
    return MovesRecord(
        cluster_id="c", topics=topics, ended=past, rates=rates, stepped_at=stepped, bytes_per_s=speed
    )  # fmt: skip


def said_of(moved: TopicMove, *past: EndedMove, minutes: int = 10) -> str:
    return status_of("prod", record(moved, past=past, minutes=minutes)).topics[0].text


@pytest.mark.parametrize(
    ("moved", "past", "sentence"),
    [
        pytest.param(moves({0: partition(60, 100)}), (), "moving 1 of 1 partition, 60 %, about 7 min", id="one"),
        pytest.param(
            moves({0: partition(50, 100), 1: partition(50, 100)}),
            (),
            "moving 2 of 2 partitions, 50 %, about 10 min",
            id="two at once are twice as fast",
        ),
        pytest.param(
            moves({0: partition(50, 100), 1: waiting()}),
            (),
            "moving 1 of 2 partitions, 25 %, about 30 min",
            id="one that waits is as large as the mean",
        ),
        pytest.param(
            moves({0: partition(50, 100), 1: waiting(300)}),
            (),
            "moving 1 of 2 partitions, 12 %, about 1 h 10 min",
            id="one that waits and was measured",
        ),
        pytest.param(
            moves({7: partition(50, 100)}),
            (ended(3),),
            "moving 1 of 4 partitions, 87 %, about 10 min",
            id="ended ones count",
        ),
        pytest.param(
            moves({7: partition(50, 100)}),
            (ended(3, status="dropped"), ended(3, run="cli/0"), ended(3, topic="other")),
            "moving 1 of 1 partition, 50 %, about 10 min",
            id="neither dropped ones count, nor those of another run or topic",
        ),
        pytest.param(moves({0: waiting(), 1: waiting()}), (), "2 of 2 partitions wait", id="nothing moves yet"),
        pytest.param(
            moves({0: partition(50, 100, Stage.CANCELLING), 1: partition(90, 100)}),
            (),
            "moving 1 of 2 partitions, cancelling 1 of 2 partitions, 90 %, about 1 min",
            id="what is cancelled is neither copied nor awaited",
        ),
        pytest.param(moves({0: partition(0, 0, grown=None)}), (), "moving 1 of 1 partition", id="not measured yet"),
        pytest.param(
            replace(moves({}), leader_entries=("0:1",)),
            (),
            "ended; its throttle entries are still to be removed",
            id="only entries are left",
        ),
    ],
)
def test_the_sentence_of_a_topic_says_what_moves_how_much_is_copied_and_how_long_it_takes(
    moved: TopicMove, past: tuple[EndedMove, ...], sentence: str
) -> None:
    assert said_of(moved, *past) == sentence


@pytest.mark.parametrize(
    ("grown", "now", "stands_still"),
    [
        pytest.param(10, 19, False, id="nine minutes"),
        pytest.param(10, 20, True, id="ten minutes"),
        pytest.param(None, 9, False, id="never grown, asked nine minutes ago"),
        pytest.param(None, 10, True, id="never grown, asked ten minutes ago"),
    ],
)
def test_a_move_that_copied_nothing_for_ten_minutes_stands_still(
    grown: int | None, now: int, stands_still: bool
) -> None:
    said = said_of(moves({0: partition(40, 100, grown=grown)}), minutes=now)
    assert ("1 stands still" in said) is stands_still


def test_a_copy_that_is_complete_stands_not_still() -> None:
    assert "still" not in said_of(moves({0: partition(100, 100)}), minutes=60)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(partition(100, 100), id="complete"),
        pytest.param(partition(60, 100, Stage.CANCELLING), id="cancelled"),
        pytest.param(waiting(100), id="waiting"),
    ],
)
def test_only_what_copies_now_has_a_speed(other: PartitionMove) -> None:
    alone, both = (
        status_of("prod", record(moves(p))) for p in ({0: partition(60, 100)}, {0: partition(60, 100), 1: other})
    )
    assert both.bytes_per_s == alone.bytes_per_s > 0


def test_the_forecast_comes_from_what_was_copied_and_not_from_the_throttle() -> None:
    slow = replace(record(moves({0: partition(30, 100)})), rates=(OwnedRate(broker=1, rate=1000 * MIB),))
    found = status_of("prod", slow)
    assert found.left_s == 70 * 60 / 3
    assert found.throttle == 1000 * MIB


def test_all_topics_together_have_one_percent_one_speed_and_one_forecast() -> None:
    two = record(moves({0: partition(50, 100)}), moves({0: partition(50, 100), 1: waiting(200)}, topic="shop.carts"))
    found = status_of("prod", two)
    assert found.text == "moving 2 of 3 partitions of 2 topics, 25 %, about 30 min"
    assert speed(found.bytes_per_s) == "170.7KiB/s"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param(record(), "nothing moves", id="idle"),
        pytest.param(
            record(rates=(OwnedRate(broker=3, rate=5),)), "throttle rates are still to be removed", id="a rate is owed"
        ),
    ],
)
def test_a_record_without_topics_says_whether_rates_are_left(given: MovesRecord, sentence: str) -> None:
    assert status_of("prod", given).text == sentence


def test_ended_moves_come_newest_first() -> None:
    past = (ended(1, topic="first"), ended(1, topic="last"))
    assert [found.topic for found in status_of("prod", record(past=past)).ended] == ["last", "first"]
