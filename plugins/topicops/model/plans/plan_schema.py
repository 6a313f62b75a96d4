"""JSON Schema 2020-12 of ``plan.json``, made from what reads it, for programs of other people.

It takes every minor version: fields that it does not know are left alone, and none that came later is required.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from topicops.model.plans.changes import WORD_BEFORE_1_2, Action, GateWord
from topicops.model.plans.plan_file import PlanDocument

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
Schema: TypeAlias = dict[str, JsonValue]

SIDES: Mapping[Action, tuple[Sequence[str] | None, Sequence[str] | None]] = {
    "create": (None, ("partitions", "replication_factor", "configs", "assignment")),
    "expand": (("partitions",), ("partitions", "assignment")),
    "configure": (("configs",), ("configs",)),
    "delete": (("topic_id", "partitions"), None),
}
"""What ``before`` and ``after`` of each action hold at least; None: they are null."""

WORDS: Mapping[str, str] = {
    "PlanDocument.format_version": "A reader refuses another major version, and passes over what a minor one adds.",
    "PlanDocument.fingerprint": "SHA-256 over target and sorted digests; an approval may name it.",
    "PlanDocument.applyable": "Whether anything runs, or could with an approval.",
    "PlanDocument.complete": "False: the plan was not finished and must not be applied.",
    "PlanDocument.errored": "True: making the plan failed and it must not be applied.",
    "PlanDocument.source": "What the plan was made from.",
    "PlanDocument.target": "The cluster that it is for.",
    "PlanDocument.facts": "What the gate knew of the cluster.",
    "PlanDocument.changes": "What apply may do, in its order: create, expand, configure, delete; by topic in each.",
    "PlanDocument.blocked": "Topics whose difference no change can mend now.",
    "PlanDocument.drift": "Live overrides that no spec names, left alone.",
    "PlanDocument.unmanaged": "Live topics that no spec names.",
    "PlanDocument.paused": "Topics that are left alone until a time.",
    "PlanDocument.activity": "Traffic on topics that are to be deleted, by topic; in no digest.",
    "PlanDocument.load": "What brokers and racks hold before and after all changes; in no digest.",
    "PlanDocument.warnings": "What could not be asked, sentences.",
    "PlanDocument.summary": "Counts: each action, each word of the gate, blocked, drift, unmanaged, paused.",
    "PlanDocument.checksum": "SHA-256 over the canonical JSON of all the rest.",
    "GatedEntry.address": "topic.<name>",
    "GatedEntry.topic": "The topic's name.",
    "GatedEntry.owner": "As the spec names it. Since 1.1.",
    "GatedEntry.actions": "Exactly one.",
    "GatedEntry.before": "What is live of that which changes.",
    "GatedEntry.after": "What is to be.",
    "GatedEntry.reason": "Of a delete: the tombstone's.",
    "GatedEntry.location": "Where the spec asks for it.",
    "GatedEntry.risk": "From low to high: safe, notice, risky, destructive.",
    "GatedEntry.codes": "Why the risk is what it is.",
    "GatedEntry.reversible": "Whether a later change can undo it.",
    "GatedEntry.digest": "SHA-256 that names the change to an approval.",
    "GatedEntry.notes": "Sentences for the reviewer; in no digest.",
    "GatedEntry.broker_defaults": "What is in force where one side has no override, by config. Since 1.1.",
    "GatedEntry.precondition": "What must still be true when the request is sent.",
    "GatedEntry.gate": "Whether it runs, waits for an approval, or stays out of this run (`dropped` before 1.2).",
    "GatedEntry.reasons": "Why it is held or skipped, with both numbers and the place of the limit.",
    "GatedEntry.in_question": "Held, and an approval that names it lets it run.",
}

_PARTITIONS: Schema = {"pattern": "^(0|[1-9][0-9]*)$"}


def plan_schema() -> Schema:
    """The whole schema."""
    (root,), definitions = msgspec.json.schema_components([PlanDocument])
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "topicops plan, format version 1",
        **_json(root),
        "$defs": {name: _definition(name, _json(found)) for name, found in sorted(definitions.items())},
    }
    return schema


def _definition(name: str, schema: Schema) -> Schema:
    properties = _object(schema.get("properties", {}))
    for field, found in properties.items():
        words = WORDS.get(f"{name}.{field}")
        properties[field] = {**_object(found), **({"description": words} if words else {})}
    match name:
        case "GatedEntry":
            return {**schema, "allOf": [_of_action(action) for action in SIDES]}
        case "GateWord":
            return {**schema, "enum": [*GateWord, WORD_BEFORE_1_2]}
        case "Side":
            properties["assignment"] = {**_object(properties["assignment"]), "propertyNames": _PARTITIONS}
        case "Blocked":
            return {**schema, "properties": {"address": {"type": "string"}, **properties}}
    return schema


def _of_action(action: Action) -> Schema:
    before, after = SIDES[action]
    return {
        "if": {"properties": {"actions": {"const": [action]}}},
        "then": {"properties": {"before": _side(before), "after": _side(after)}},
    }


def _side(fields: Sequence[str] | None) -> Schema:
    return {"type": "null"} if fields is None else {"type": "object", "required": list(fields)}


def _json(value: object) -> Schema:
    return _object(json.loads(json.dumps(value)))


def _object(value: JsonValue) -> Schema:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no JSON object")
    return value
