import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import (
    TARGET,
    change_set,
    configure_change,
    create_change,
    delete_change,
    expand_change,
    location,
)
from fixtures.rich_plan import resealed
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.plans.changes import GateWord, digest_of
from topicops.model.plans.plan import (
    Blocked,
    BrokerLoad,
    ChangeSet,
    Drift,
    GatedChange,
    GroupUse,
    LoadTable,
    Loss,
    Paused,
    Plan,
    RackLoad,
    RackLossRow,
    RackLossTable,
    Share,
    TopicActivity,
)
from topicops.model.plans.plan_file import changes_from_json, changes_to_json, plan_from_json, plan_to_json
from topicops.model.specs.environment import Risk

FULL = replace(
    change_set(
        [
            create_change("a", configs={"retention.ms": "5"}),
            replace(expand_change("b", risk=Risk.RISKY), notes=("keys move",)),
            replace(
                configure_change(
                    "c", before={"flush.ms": "5", "segment.ms": None}, after={"flush.ms": None, "segment.ms": "9"}
                ),
                broker_defaults={"segment.ms": "604800000"},
            ),
            replace(delete_change("d"), topic_id=None),
        ]
    ),
    blocked=(
        Blocked(
            topic="e",
            codes=("TOP401", "TOP402"),
            reasons=("fewer", "other"),
            way_out="set 3",
            location=location("e"),
            reassignment='{"version":1}',
        ),
    ),
    drift=(Drift(topic="f", config="flush.ms", value="\u0007<b>", location=location("f")),),
    unmanaged=("g", "h"),
    paused=(Paused(topic="i", reason="by hand", until="2024-05-01T12:00:00Z", location=location("i")),),
    activity={
        "d": TopicActivity(
            end_offsets={0: 5, 1: 0},
            groups=("billing",),
            last_record_ms=1_700_000_000_000,
            group_uses={"billing": GroupUse(state="Stable", lag=3)},
        ),
        "j": TopicActivity(end_offsets=None, groups=None),
    },
    load=LoadTable(
        brokers=(
            BrokerLoad(broker=1, rack="r1", before=Share(replicas=3, leaders=1), after=Share(replicas=9, leaders=3)),
            BrokerLoad(broker=2, rack=None, before=Share(replicas=0, leaders=0), after=Share(replicas=6, leaders=2)),
        ),
        racks=(
            RackLoad(rack="r1", brokers=1, before=Share(replicas=3, leaders=1), after=Share(replicas=9, leaders=3)),
        ),
    ),
    rack_losses=RackLossTable(
        racks=(
            RackLossRow(
                rack="r1",
                brokers=1,
                before=Loss(offline=0, below_min_isr=1, moved_leaders=1),
                after=Loss(offline=2, below_min_isr=1, moved_leaders=3),
            ),
        ),
        brokers_without_rack=(2,),
    ),
    warnings=("no broker answered",),
)


def gated(found: ChangeSet, *words: GateWord) -> Plan:
    every = zip(found.changes, words, strict=True)
    entries = tuple(
        GatedChange(
            change=change,
            digest=digest_of(change, found.target),
            gate=word,
            reasons=() if word is GateWord.RUN else (f"is {word}",),
            approvable=word is GateWord.HELD,
        )
        for change, word in every
    )
    return Plan(change_set=found, changes=entries)


PLAN = gated(FULL, GateWord.RUN, GateWord.HELD, GateWord.SKIPPED, GateWord.HELD)


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
    empty = gated(change_set([]))
    document = json.loads(plan_to_json(empty))
    assert (document["applyable"], document["changes"]) == (False, [])
    assert plan_from_json(plan_to_json(empty)) == empty


@pytest.mark.parametrize(
    ("word", "applyable"), [(GateWord.RUN, True), (GateWord.HELD, True), (GateWord.SKIPPED, False)]
)
def test_a_plan_is_applyable_when_something_may_run_or_be_approved(word: GateWord, applyable: bool) -> None:
    plan = gated(change_set([create_change("a")]), word)
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
        "warnings",
        "command_approves",
        "summary",
        "checksum",
    ]
    expansion = document["changes"][1]
    assert expansion["address"] == "topic.b"
    assert expansion["actions"] == ["expand"]
    assert expansion["before"] == {"partitions": 3, "assignment": {"0": [1, 2, 3], "1": [2, 3, 1], "2": [3, 1, 2]}}
    assert expansion["after"] == {"partitions": 6, "assignment": {"3": [1, 2, 3], "4": [2, 3, 1], "5": [3, 1, 2]}}
    assert expansion["location"] == {"file": "topics/shop/b.yaml", "line": 4, "column": 9}
    assert (expansion["gate"], expansion["reasons"]) == ("held", ["is held"])
    assert document["blocked"][0]["address"] == "topic.e"
    assert document["summary"] == {
        "create": 1,
        "expand": 1,
        "configure": 1,
        "delete": 1,
        "run": 1,
        "held": 2,
        "skipped": 1,
        "blocked": 1,
        "drift": 1,
        "unmanaged": 2,
        "paused": 1,
    }


def test_no_control_character_reaches_the_file() -> None:
    text = plan_to_json(PLAN)
    assert all(character == "\n" or 32 <= ord(character) < 127 for character in text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"partitions": 6', '"partitions": 7', id="a number"),
        pytest.param('"gate": "held"', '"gate": "run"', id="the gate's word"),
        pytest.param('"live_brokers": 3', '"live_brokers": 4', id="a fact"),
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
    with pytest.raises(ArtifactError, match=r"topic\.b: the digest does not match the change"):
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
    found = change_set(
        [create_change("a", partitions, configs={"x": value}), replace(delete_change("d"), reason=reason)]
    )
    plan = gated(found, GateWord.RUN, GateWord.HELD)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.target == TARGET
