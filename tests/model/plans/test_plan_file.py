import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import create_change, delete_change
from fakes.changes import TARGET, plan_of
from fixtures.rich_plan import resealed, rich_plan
from topicops.model.cluster.snapshot import Assignment
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.plans.changes import ExpandTopic, GateWord
from topicops.model.plans.plan_file import changes_from_json, changes_to_json, plan_from_json, plan_to_json

PLAN = rich_plan()
FULL = PLAN.change_set


def test_a_change_set_comes_back_as_it_was() -> None:
    assert changes_from_json(changes_to_json(FULL)) == FULL


def test_a_plan_comes_back_as_it_was_and_is_written_the_same_again() -> None:
    text = plan_to_json(PLAN)
    assert plan_from_json(text) == PLAN
    assert plan_to_json(plan_from_json(text)) == text


def test_what_the_loss_of_a_rack_costs_is_in_no_digest_and_a_file_without_it_is_read() -> None:
    without = replace(PLAN, change_set=replace(FULL, rack_losses=None))
    assert without.fingerprint == PLAN.fingerprint
    assert "rack_losses" not in json.loads(plan_to_json(without))
    assert plan_from_json(plan_to_json(without)) == without


def test_an_empty_plan_is_not_applyable() -> None:
    empty = plan_of()
    document = json.loads(plan_to_json(empty))
    assert (document["applyable"], document["changes"]) == (False, [])
    assert plan_from_json(plan_to_json(empty)) == empty


@pytest.mark.parametrize(
    ("word", "applyable"), [(GateWord.RUN, True), (GateWord.HELD, True), (GateWord.SKIPPED, False)]
)
def test_a_plan_is_applyable_when_something_may_run_or_be_approved(word: GateWord, applyable: bool) -> None:
    plan = plan_of(create_change("a"), gates={"a": word})
    assert json.loads(plan_to_json(plan))["applyable"] is applyable


def test_the_file_has_the_documented_shape() -> None:
    document = json.loads(plan_to_json(PLAN))
    assert list(document) == [
        "format_version",
        "fingerprint",
        "applyable",
        "complete",
        "errored",
        "source",
        "target",
        "facts",
        "changes",
        "blocked",
        "drift",
        "unmanaged",
        "paused",
        "activity",
        "load",
        "rack_losses",
        "log_bytes",
        "throttle",
        "move_obstacles",
        "warnings",
        "command_approves",
        "summary",
        "checksum",
    ]
    expansion, entry = document["changes"][1], PLAN.changes[1]
    assert isinstance(entry.change, ExpandTopic)
    assert expansion["address"] == "topic.payments.refunds"
    assert expansion["actions"] == ["expand"]
    assert expansion["before"] == {"partitions": 6, "assignment": rows_of(entry.change.assignment_before)}
    assert expansion["after"] == {"partitions": 24, "assignment": rows_of(entry.change.assignment)}
    assert expansion["location"] == {"file": "topics/shop/payments.refunds.yaml", "line": 4, "column": 9}
    assert (expansion["gate"], expansion["reasons"]) == ("skipped", list(entry.reasons))
    assert document["blocked"][0]["address"] == "topic.shop.returns"
    assert document["summary"] == {
        "create": 1,
        "expand": 1,
        "configure": 2,
        "reassign": 1,
        "delete": 1,
        "run": 2,
        "held": 2,
        "skipped": 2,
        "blocked": 2,
        "drift": 1,
        "unmanaged": 2,
        "paused": 1,
    }


def rows_of(assignment: Assignment) -> dict[str, list[int]]:
    return {str(partition): list(row) for partition, row in assignment.items()}


def test_no_control_character_reaches_the_file() -> None:
    text = plan_to_json(replace(PLAN, change_set=replace(FULL, warnings=("\u0007<b>\u0085",))))
    assert all(character == "\n" or 32 <= ord(character) < 127 for character in text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"partitions": 6', '"partitions": 7', id="a number"),
        pytest.param('"gate": "held"', '"gate": "run"', id="the gate's word"),
        pytest.param('"live_brokers": 6', '"live_brokers": 7', id="a fact"),
    ],
)
def test_a_file_that_was_changed_by_hand_is_refused(old: str, new: str) -> None:
    text = plan_to_json(PLAN)
    assert old in text
    with pytest.raises(ArtifactError, match="checksum is wrong"):
        plan_from_json(text.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format_version": "1.0"'])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(ArtifactError, match="not readable JSON"):
        plan_from_json(text)


def test_a_file_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ArtifactError):
        plan_from_json(plan_to_json(PLAN)[:-200])


@pytest.mark.parametrize("version", ["2.0", "0.9", "", None, 1])
def test_another_major_format_is_refused(version: object) -> None:
    with pytest.raises(FormatVersionError, match="this program reads 1"):
        plan_from_json(resealed(plan_to_json(PLAN), format_version=version))


def test_a_newer_minor_format_is_read_without_what_it_adds() -> None:
    assert plan_from_json(resealed(plan_to_json(PLAN), format_version="1.7", novelty=[1])) == PLAN


def test_a_digest_that_is_not_that_of_its_change_is_refused() -> None:
    document = json.loads(plan_to_json(PLAN))
    document["changes"][1]["after"]["partitions"] = 7
    with pytest.raises(ArtifactError, match=r"topic\.payments\.refunds: the digest does not match the change"):
        plan_from_json(resealed(plan_to_json(PLAN), changes=document["changes"]))
    with pytest.raises(ArtifactError, match="the digest does not match"):
        changes_from_json(resealed(changes_to_json(FULL), target={**document["target"], "cluster_id": "other"}))


def test_a_fingerprint_of_other_changes_is_refused() -> None:
    with pytest.raises(ArtifactError, match="fingerprint"):
        plan_from_json(resealed(plan_to_json(PLAN), fingerprint="0" * 64))


def test_a_change_that_stands_twice_is_refused() -> None:
    twice = replace(PLAN, changes=(*PLAN.changes, PLAN.changes[0]))
    with pytest.raises(ArtifactError, match="the plan has a change twice, create "):
        plan_from_json(plan_to_json(twice))


@pytest.mark.parametrize("fields", [{"complete": False}, {"errored": True}])
def test_a_plan_that_is_not_complete_is_refused(fields: dict[str, bool]) -> None:
    with pytest.raises(ArtifactError, match="not complete"):
        plan_from_json(resealed(plan_to_json(PLAN), **fields))


def test_a_wrong_shape_under_a_right_checksum_is_refused() -> None:
    with pytest.raises(ArtifactError, match="has a wrong field"):
        plan_from_json(resealed(plan_to_json(PLAN), facts={"live_brokers": "three"}))


@given(reason=st.text(max_size=40), value=st.text(max_size=40), partitions=st.integers(1, 9))
def test_any_text_survives_the_way_through_the_file(reason: str, value: str, partitions: int) -> None:
    deletion = replace(delete_change("d"), reason=reason)
    plan = plan_of(create_change("a", partitions, configs={"x": value}), deletion, gates={"d": GateWord.HELD})
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.target == TARGET
