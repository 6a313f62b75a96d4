"""A plan says which moves have no room on the disk of their target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.builders import change_set, environment, live_topic, snapshot
from topicops.features.moves.asked.changes import move_obstacles
from topicops.features.moves.asked.room import without_room
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.plans.changes import MoveReason, Precondition, ReassignTopic
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.environment import Risk
from topicops.steps.planning.gate import gate
from topicops.steps.planning.placement.load import load_table
from topicops.steps.reporting.plan_wording import other_lines

Rows = Mapping[int, tuple[int, ...]]


def move(topic: str, before: Rows, after: Rows, copied_bytes: int | None) -> ReassignTopic:
    return ReassignTopic(
        topic=topic,
        location=Location(file="topics/a.yaml"),
        risk=Risk.RISKY,
        reversible=True,
        precondition=Precondition(identity=topic),
        why=MoveReason.FACTOR,
        assignment_before=before,
        assignment=after,
        copied_bytes=copied_bytes,
    )


def told(*free: int | None) -> Mapping[int, LogDirectories | str | None]:
    """Return the answers of broker 1, 2 and so on."""
    return {b: LogDirectories(held={}, free_bytes=each) for b, each in enumerate(free, start=1)}


FULL = "the disk of broker 2 has 109 bytes free, and 110 would be needed"


@pytest.mark.parametrize(
    ("free", "reasons"),
    [
        pytest.param((0, 110, 110), {}, id="a copy and a tenth of it"),
        pytest.param((0, 109, 110), {"a": FULL}, id="a byte less"),
        pytest.param((0, None, 110), {}, id="a broker that does not tell"),
    ],
)
def test_a_move_needs_room_for_its_copy_and_a_tenth_of_it(
    free: tuple[int | None, ...], reasons: Mapping[str, str]
) -> None:
    live = replace(snapshot(), log_directories=told(*free))
    assert without_room([move("a", {0: (1,)}, {0: (1, 2, 3)}, 200)], live) == reasons


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(move("a", {0: (1, 2)}, {0: (2, 1)}, 0), id="another order"),
        pytest.param(move("a", {0: (1,)}, {0: (2,)}, None), id="a size that is not known"),
    ],
)
def test_what_copies_nothing_or_an_unknown_size_is_not_held_back(change: ReassignTopic) -> None:
    live = replace(snapshot(), log_directories={**told(0, 0), 3: "broker 3 did not answer"})
    assert without_room([change], live) == {}


def test_topics_that_come_first_take_their_room_first() -> None:
    live = replace(snapshot(), log_directories=told(0, 250))
    moves = [move(topic, {0: (1,)}, {0: (2,)}, size) for topic, size in (("a", 100), ("b", 150), ("c", 100))]
    assert without_room(moves, live) == {"b": "the disk of broker 2 has 140 bytes free, and 165 would be needed"}


def test_a_broker_whose_id_is_0_may_be_full_too() -> None:
    live = replace(snapshot(), log_directories={0: LogDirectories(held={}, free_bytes=109)})
    assert without_room([move("a", {0: (1,)}, {0: (1, 0)}, 100)], live) == {"a": FULL.replace("broker 2", "broker 0")}


def test_a_plan_has_it_beside_what_else_stands_against_the_move() -> None:
    live = replace(snapshot(live_topic("a", assignment={0: (1,)})), log_directories=told(0, 109))
    (reasons,) = move_obstacles([move("a", {0: (1,)}, {0: (2,)}, 100)], live, environment()).values()
    assert reasons == ("the ISR of its partitions was not read", FULL)


def test_a_plan_says_what_is_free_on_the_disks_that_get_copies() -> None:
    live = replace(snapshot(live_topic("a", assignment={0: (1,)})), log_directories=told(900, 500, None))
    changes = [
        move("a", {0: (1,), 1: (2,)}, {0: (1, 2, 3), 1: (2, 1)}, 300),
        move("b", {0: (1,)}, {0: (2,)}, 150),
        move("c", {0: (1,)}, {0: (2,)}, None),
    ]

    table = load_table(live, changes)

    assert table.free_bytes == {1: 800, 2: 250}
    lines = other_lines(gate(replace(change_set(changes), load=table), environment()))
    assert "disk after the moves: broker 2 has 250B free, the least of 2 that get copies" in lines


def test_a_disk_that_the_copies_would_fill_has_nothing_left() -> None:
    live = replace(snapshot(), log_directories=told(0, 100))

    assert load_table(live, [move("a", {0: (1,)}, {0: (2,)}, 300)]).free_bytes == {2: 0}


def test_a_plan_without_copies_says_nothing_of_disks() -> None:
    live = replace(snapshot(), log_directories=told(10, 10))
    order = [move("a", {0: (1, 2)}, {0: (2, 1)}, 0)]

    assert load_table(live, order).free_bytes == {}
    assert not [line for line in other_lines(gate(change_set(order), environment())) if "disk after" in line]
