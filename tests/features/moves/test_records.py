"""The record of moves: what is accepted, what a person cancels, and what of it is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from fakes.builders import configure_change
from fixtures.moves.cluster import MB
from fixtures.moves.mover import Mover, world
from topicops.features.moves.carrying.step import accept, asked_to_cancel
from topicops.features.moves.record import KEPT_ENDED, MOVES, MovesRecord, PartitionMove, read_moves
from topicops.model.errors import ArtifactError
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def accepted() -> Mover:
    mover = world({"a": {0: (1,), 1: (2,)}}, size=3000 * MB, at_once=1)
    mover.accept("a", {0: (2, 3), 1: (2, 3)})
    return mover


def test_an_accepted_change_says_who_asked_for_it_and_from_where_to_where() -> None:
    [move] = accepted().record.topics
    assert (move.topic, move.identity, move.run, move.approver) == ("a", "id-1", "cli/r1", "admin")
    assert move.partitions == {
        0: PartitionMove(origin=(1,), target=(2, 3)),
        1: PartitionMove(origin=(2,), target=(2, 3)),
    }


def test_accepting_twice_changes_nothing() -> None:
    mover = world({"a": {0: (1,)}})
    gated = mover.accept("a", {0: (2, 3)})
    assert accept(mover.record, [gated], "cli/r2", {}, NOW) == mover.record


def test_a_topic_that_still_moves_keeps_its_change() -> None:
    mover = accepted()
    before = mover.record
    other = mover.accept("a", {1: (3, 4)})
    assert mover.record == before
    assert other.digest not in {move.digest for move in mover.record.topics}


def test_a_throttle_of_a_person_ends_with_the_last_of_the_moves_that_it_was_for() -> None:
    mover = world({"a": {0: (1,)}, "b": {0: (1,)}, "c": {0: (1,)}}, size=3000 * MB)
    mover.accept("a", {0: (2, 3)})
    mover.change_throttle(20 * MB)
    mover.accept("b", {0: (2, 3)})
    assert mover.record.throttle == 20 * MB
    mover.steps()
    assert mover.record.is_idle
    mover.accept("c", {0: (2, 3)})
    assert mover.record.throttle is None


def test_only_changes_that_reassign_are_accepted() -> None:
    gated = GatedChange(change=configure_change("a"), digest="d", gate=GateWord.RUN)
    record = MovesRecord(cluster_id="c")
    assert accept(record, [gated], "cli/r1", {}, NOW) == record


def test_entries_that_are_owed_go_over_to_the_next_move_of_the_same_topic() -> None:
    mover = accepted()
    [move] = mover.record.topics
    owed = replace(move, partitions={}, leader_entries=("0:1",), follower_entries=("0:2",))
    mover.record = replace(mover.record, topics=(owed,))
    mover.accept("a", {1: (3, 4)})
    [move] = mover.record.topics
    assert (move.leader_entries, move.follower_entries, [*move.partitions]) == (("0:1",), ("0:2",), [1])


def test_entries_of_a_deleted_topic_do_not_go_over_to_the_next_one_of_its_name() -> None:
    mover = accepted()
    [move] = mover.record.topics
    owed = replace(move, identity="older", partitions={}, leader_entries=("0:1",))
    mover.record = replace(mover.record, topics=(owed,))
    mover.accept("a", {1: (3, 4)})
    assert mover.record.topics[0].leader_entries == ()


def test_a_cancel_ends_at_once_what_was_not_started_and_marks_the_rest() -> None:
    mover = accepted()
    mover.step()
    [moving] = [at.partition for at, _, _ in mover.record.moving()]
    mover.cancel("a", "unknown")
    [move] = mover.record.topics
    assert {p: found.why_cancelled for p, found in move.partitions.items()} == {moving: "it was asked for"}
    assert [(end.status, end.partitions) for end in mover.record.ended] == [("cancelled", 1)]


def test_a_cancel_of_what_was_not_started_leaves_nothing() -> None:
    record = asked_to_cancel(accepted().record, ["a"], NOW)
    assert record.is_idle


def test_the_record_keeps_the_newest_ends() -> None:
    mover = world({"a": {0: (1, 2)}})
    for number in range(KEPT_ENDED + 5):
        mover.accept("a", {0: (2, 1)})
        mover.keep(asked_to_cancel(mover.record, ["a"], NOW.replace(microsecond=number)))
    assert len(mover.record.ended) == KEPT_ENDED
    assert mover.record.ended[-1].at.microsecond == KEPT_ENDED + 4


def test_a_record_comes_back_from_its_file_as_it_was() -> None:
    mover = accepted()
    mover.step()
    text = msgspec.json.encode(mover.record)
    assert msgspec.json.decode(text, type=MovesRecord) == mover.record


KEPT = """{"cluster_id":"c","format_version":"1.0","topics":[{"topic":"a","identity":"id","why":"drain","digest":"d",
"run":"cli/1","approver":"ann","accepted_at":"2026-01-31T12:00:00Z","partitions":{"0":{"origin":[1],"target":[2],
"stage":"asked","asked_at":"2026-01-31T12:01:00Z","seen":true,"doubted_at":null,"copied_bytes":5,"size_bytes":9,
"grown_at":null,"gap_bytes":null,"gap_at":null,"why_cancelled":""}},"drained":[1],"leader_entries":["0:1"],
"follower_entries":["0:2"]}],"rates":[{"broker":1,"rate":50,"was":null}],"throttle":null,"ended":[{"topic":"b",
"why":"factor","run":"cli/0","partitions":2,"status":"done","message":"","at":"2026-01-30T12:00:00Z"}],
"notes":["a waits"],"stepped_at":"2026-01-31T12:02:00Z"}"""


def test_a_record_that_an_earlier_topicops_has_kept_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "moves").mkdir()
    (tmp_path / "moves/local.json").write_text(KEPT, encoding="utf-8")

    found = read_moves(tmp_path, "local")

    assert found is not None
    MOVES.of(tmp_path, "local").write(found)
    written, kept = json.loads((tmp_path / "moves/local.json").read_text(encoding="utf-8")), json.loads(KEPT)
    others = kept.keys() - {"topics", "rates"}
    assert {name: written[name] for name in others} == {name: kept[name] for name in others}
    [rate], [kept_rate] = written["rates"], kept["rates"]
    assert rate | kept_rate == rate
    partition = written["topics"][0]["partitions"]["0"]
    assert partition | kept["topics"][0]["partitions"]["0"] == partition


@pytest.mark.parametrize(
    ("written", "damaged"),
    [
        pytest.param(b'"origin":[1]', b'"origin":[]', id="no replicas before"),
        pytest.param(b'"target":[2,3]', b'"target":[]', id="no replicas after"),
        pytest.param(b'"accepted_at":"2026-01-31T12:00:00Z"', b'"accepted_at":"2026-01-31T12:00:00"', id="no zone"),
    ],
)
def test_a_record_of_which_steps_and_pages_could_make_nothing_is_damaged(
    tmp_path: Path, written: bytes, damaged: bytes
) -> None:
    MOVES.of(tmp_path, "local").write(accepted().record)
    path = tmp_path / "moves/local.json"
    text = path.read_bytes()
    assert written in text
    path.write_bytes(text.replace(written, damaged))
    with pytest.raises(ArtifactError, match="repair or remove it"):
        read_moves(tmp_path, "local")
