"""The schema takes every plan that is written, and refuses what no plan can be."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fakes.builders import configure_change, create_change, delete_change, expand_change, live_topic
from fakes.changes import reassign_topic
from fixtures.any_plan import any_plans
from fixtures.rich_plan import rich_plan
from fixtures.schemas.outputs import VALUES_BY_ACTION, schema_of_output
from topicops.model.plans.changes import ACTIONS, before_and_after
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import PlanFile, plan_from_json, plan_to_json

Json = dict[str, Any]
PLAN_SCHEMA: Any = schema_of_output("plan", PlanFile)
CHANGES = (
    create_change("a"),
    expand_change("b"),
    configure_change("c"),
    reassign_topic(live_topic("e", 1), (2, 3, 1)),
    delete_change("d"),
)


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(PLAN_SCHEMA)


def complaints(document: Json) -> list[str]:
    return [error.message for error in validator().iter_errors(document)]


def rich_document() -> Json:
    document: Json = json.loads(plan_to_json(rich_plan()))
    return document


def test_it_is_a_schema_of_2020_12() -> None:
    Draft202012Validator.check_schema(PLAN_SCHEMA)


def test_a_plan_with_something_of_everything_is_taken() -> None:
    document = rich_document()
    assert {change["actions"][0] for change in document["changes"]} == set(ACTIONS)
    parts = ("blocked", "drift", "unmanaged", "paused", "activity", "load", "rack_losses", "warnings")
    assert all(document[name] for name in parts)
    assert complaints(document) == []


@given(plan=any_plans(st.text(max_size=20)))
@settings(max_examples=30)
def test_any_plan_is_taken_and_comes_back_as_it_was(plan: Plan) -> None:
    text = plan_to_json(plan)
    assert complaints(json.loads(text)) == []
    assert plan_from_json(text) == plan


def test_what_a_newer_minor_version_adds_is_taken() -> None:
    newer: Json = {**rich_document(), "format_version": "1.99", "novelty": {"a": 1}}
    newer["changes"][0]["novelty"] = [1]
    newer["target"]["novelty"] = "x"
    assert complaints(newer) == []


def test_a_plan_of_format_1_0_is_taken() -> None:
    document = {**rich_document(), "format_version": "1.0"}
    del document["load"], document["rack_losses"]
    for change in document["changes"]:
        change.pop("owner"), change.pop("broker_defaults", None), change.pop("differing_defaults", None)
    for entry in (*document["blocked"], *document["drift"], *document["paused"]):
        del entry["owner"]
    assert complaints(document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("format_version", "2.0", id="another major version"),
        pytest.param("fingerprint", "ab", id="a fingerprint that is none"),
        pytest.param("changes.0.gate", "maybe", id="another word of the gate"),
        pytest.param("changes.0.risk", "high", id="another risk"),
        pytest.param("changes.0.actions", [], id="no action"),
        pytest.param("changes.0.actions", ["create", "delete"], id="two actions"),
        pytest.param("changes.0.actions", ["replace"], id="another action"),
        pytest.param("changes.0.before", {"partitions": 3}, id="a create of what is live"),
        pytest.param("changes.0.after", None, id="a create of nothing"),
        pytest.param("changes.0.after", {"partitions": 3}, id="a create without an assignment"),
        pytest.param("changes.0.after.assignment", {"x": [1]}, id="a partition that is no number"),
        pytest.param("changes.0.after.assignment", {"0": ["1"]}, id="a broker that is no number"),
        pytest.param("changes.4.after", {}, id="a delete that leaves something"),
        pytest.param("blocked.0.codes", "TOP401", id="codes that are no list"),
        pytest.param("target", {}, id="no target"),
        pytest.param("summary", {"create": "1"}, id="a count that is no number"),
    ],
)
def test_what_no_plan_can_be_is_refused(path: str, value: object) -> None:
    document = rich_document()
    put(document, path, value)
    assert complaints(document) != []


def put(document: Json, path: str, value: object) -> None:
    *above, last = path.split(".")
    place: Any = document
    for name in above:
        place = place[int(name)] if name.isdecimal() else place[name]
    place[last] = value


@pytest.mark.parametrize("field", sorted(rich_document()))
def test_only_what_came_later_may_be_missing(field: str) -> None:
    document = rich_document()
    del document[field]
    assert (complaints(document) == []) == (
        field in ("load", "rack_losses", "log_bytes", "command_approves", "throttle", "move_obstacles")
    )


def test_both_sides_of_every_action_are_known_to_the_schema() -> None:
    assert set(VALUES_BY_ACTION) == set(ACTIONS)
    for change in CHANGES:
        for written, needed in zip(before_and_after(change), VALUES_BY_ACTION[change.action], strict=True):
            assert (written is None) == (needed is None)
            assert set(needed or ()) <= set(written or ())


def test_every_field_of_a_plan_and_a_change_is_explained() -> None:
    definitions = PLAN_SCHEMA["$defs"]
    for name in ("PlanFile", "GatedEntry"):
        assert [field for field, found in definitions[name]["properties"].items() if "description" not in found] == []
    assert set(rich_document()) == set(definitions["PlanFile"]["properties"])
    assert {field for change in rich_document()["changes"] for field in change} == set(
        definitions["GatedEntry"]["properties"]
    )


def test_the_glob_is_written_only_for_a_plan_of_some_topics() -> None:
    plan = rich_plan()
    some = replace(plan, change_set=replace(plan.change_set, source=replace(plan.change_set.source, only="pay.*")))
    assert "only" not in json.loads(plan_to_json(plan))["source"]
    assert json.loads(plan_to_json(some))["source"]["only"] == "pay.*"
    assert plan_from_json(plan_to_json(some)) == some


def test_every_part_that_is_written_is_in_the_schema() -> None:
    definitions = PLAN_SCHEMA["$defs"]
    document = rich_document()
    parts = {"Blocked": document["blocked"][0], "Drift": document["drift"][0], "Paused": document["paused"][0]}
    parts |= {
        "ClusterState": document["facts"],
        "Target": document["target"],
        "PlanSource": document["source"] | {"only": "*"},
    }
    assert {name: set(part) for name, part in parts.items()} == {
        name: set(definitions[name]["properties"]) for name in parts
    }
