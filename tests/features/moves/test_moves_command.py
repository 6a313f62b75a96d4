"""``topicops moves``: what a person asks for is in the record before the next step, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from features.moves.test_progress import MIB, moves, partition, waiting
from fixtures.simulated import CLUSTER_ID, Simulated
from topicops.features.moves.carrying.values import Stepped
from topicops.features.moves.record import MOVES, EndedMove, MovesRecord, OwnedRate, Stage
from topicops.features.moves.telling import commands
from topicops.flow.runs.run import EnvironmentRun, home_folder

RECORD = MovesRecord(
    cluster_id=CLUSTER_ID, topics=(moves({0: partition(30, 60), 1: waiting(60)}), moves({0: partition()}, "bills"))
)
IDLE = MovesRecord(cluster_id=CLUSTER_ID)


@pytest.fixture
def moving(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    """Two topics move; each step ends what is to be cancelled, and then one topic."""
    write(RECORD)
    monkeypatch.setattr(commands, "stepped", step)
    return simulated


def write(record: MovesRecord) -> None:
    MOVES.of(home_folder(), "local").write(record)


def read() -> MovesRecord:
    return MOVES.of(home_folder(), "local").read() or IDLE


def step(run: EnvironmentRun, lock_timeout_s: float) -> Stepped | None:
    record = read()
    move, *others = record.topics
    how = (
        "cancelled" if any(p.stage is Stage.CANCELLING or p.why_cancelled for p in move.partitions.values()) else "done"
    )
    ended = EndedMove(topic=move.topic, why=move.why, run=move.run, partitions=1, status=how, at=run.clock.utc())
    record = replace(record, topics=tuple(others), ended=(*record.ended, ended))
    write(record)
    return Stepped(record=record)


def test_a_broker_that_never_comes_back_owes_nothing_any_more(moving: Simulated) -> None:
    write(replace(IDLE, rates=(OwnedRate(broker=2, rate=1), OwnedRate(broker=9, rate=1))))

    ended = moving.workspace.run("moves", "--forget-broker", "9")

    assert (ended.status, [rate.broker for rate in read().rates]) == (0, [2])
    assert "If broker 9 comes back after all, `topicops doctor` names the rate that it still has." in ended.err


@pytest.mark.parametrize(
    ("broker", "said"),
    [
        pytest.param("2", "broker 2 is live: `topicops moves --step` removes our rate from it", id="live"),
        pytest.param("8", "topicops has set no rate on broker 8 in local that is still there", id="nothing is owed"),
    ],
)
def test_a_rate_that_a_step_can_remove_is_not_forgotten(moving: Simulated, broker: str, said: str) -> None:
    record = replace(IDLE, rates=(OwnedRate(broker=2, rate=1), OwnedRate(broker=9, rate=1)))
    write(record)

    ended = moving.workspace.run("moves", "--forget-broker", broker)

    assert said in ended.err
    assert (ended.status, read()) == (1, record)


def test_without_an_option_the_record_stays_as_it_is(moving: Simulated) -> None:
    ended = moving.workspace.run("moves")

    assert (ended.status, read()) == (0, RECORD)
    assert "local: moving 2 of 3 partitions of 2 topics" in ended.out


def test_one_step_is_made_and_then_what_is_left_is_shown(moving: Simulated) -> None:
    ended = moving.workspace.run("moves", "--step")

    assert "moving 1 of 1 partition of 1 topic" in ended.out
    assert "shop.orders: done" in ended.out


def test_watch_carries_all_moves_on_and_shows_each_round(moving: Simulated) -> None:
    ended = moving.workspace.run("moves", "--watch", "--every", "0s")

    assert ended.status == 0
    assert ended.err.splitlines()[-2:] == ["local: moving 1 of 1 partition of 1 topic", "local: nothing moves"]
    assert ended.out.startswith("local: nothing moves\nEnded:")


def test_watch_ends_with_a_status_of_its_own_where_a_move_came_to_nothing(
    moving: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drop(run: EnvironmentRun, lock_timeout_s: float) -> None:
        ended = EndedMove(
            topic="bills", why=RECORD.topics[0].why, run="cli/1", partitions=1, status="dropped", at=run.clock.utc()
        )
        write(replace(IDLE, ended=(ended,)))

    monkeypatch.setattr(commands, "stepped", drop)

    assert moving.workspace.run("moves", "--watch").status == 6


def test_a_move_that_came_to_nothing_counts_although_the_record_has_forgotten_it_when_all_have_ended(
    moving: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(run: EnvironmentRun, lock_timeout_s: float) -> None:
        record, [move, *others] = read(), read().topics
        how = "done" if record.ended else "dropped"
        ended = EndedMove(topic=move.topic, why=move.why, run=move.run, partitions=1, status=how, at=run.clock.utc())
        write(replace(record, topics=tuple(others), ended=(ended,)))  # as many as it keeps

    monkeypatch.setattr(commands, "stepped", end)

    assert moving.workspace.run("moves", "--watch", "--every", "0s").status == 6


def test_the_throttle_is_in_the_record_before_the_next_step(moving: Simulated) -> None:
    moving.workspace.run("moves", "--throttle", "100MiB")

    assert read().throttle == 100 * MIB


def test_what_is_to_be_cancelled_is_in_the_record_before_the_next_step(
    moving: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[MovesRecord] = []
    monkeypatch.setattr(commands, "stepped", lambda *_: seen.append(read()))

    moving.workspace.run("moves", "--cancel", "bills")
    moving.workspace.run("moves", "--cancel-all")

    asked = [[m.topic for m in record.topics if all(p.why_cancelled for p in m.partitions.values())] for record in seen]
    assert asked[0] == ["bills"]
    assert "bills" in asked[1]
    assert all(p.why_cancelled for move in seen[1].topics for p in move.partitions.values())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(("--cancel", "nowhere"), "topicops moves no replicas of nowhere in local; `topicops", id="topic"),
        pytest.param(("--cancel", "bills", "--cancel-all"), "leave --cancel out", id="twice"),
        pytest.param(("--throttle", "fast"), "'fast' is no number of bytes", id="size"),
        pytest.param(("--watch", "--every", "soon"), "'soon' is no duration", id="time"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_written(
    moving: Simulated, words: tuple[str, ...], problem: str
) -> None:
    ended = moving.workspace.run("moves", *words)

    assert problem in ended.err
    assert (ended.status, read()) == (1, RECORD)


@pytest.mark.parametrize("words", [("--cancel-all",), ("--throttle", "5MiB")], ids=["cancel", "throttle"])
def test_where_nothing_moves_there_is_nothing_to_cancel_or_to_throttle(
    simulated: Simulated, words: tuple[str, ...]
) -> None:
    assert "topicops moves nothing in local" in simulated.workspace.run("moves", *words).err


def test_whoever_stops_to_watch_is_told_what_goes_on(moving: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "stepped", interrupted)

    ended = moving.workspace.run("moves", "--watch")

    assert ended.status == 130
    assert "What moves goes on by itself" in ended.err
