"""JSON Schema 2020-12 of JSON that topicops writes for other programs, made from the type that is written.

It accepts every minor version: it ignores unknown fields, and requires none that came later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from topicops.model.codes import Code
from topicops.model.plans.changes import Action
from topicops.model.plans.plan_file import PlanFile

Schema = dict[str, object]

VALUES_BY_ACTION: Mapping[Action, tuple[Sequence[str] | None, Sequence[str] | None]] = {
    "create": (None, ("partitions", "replication_factor", "configs", "assignment")),
    "expand": (("partitions",), ("partitions", "assignment")),
    "configure": (("configs",), ("configs",)),
    "delete": (("topic_id", "partitions"), None),
}
"""Fields that ``before`` and ``after`` of each action must have; None: they are null."""

DESCRIPTIONS: Mapping[str, str] = {
    "PlanFile.format_version": "A reader refuses another major version, and ignores what a minor one adds.",
    "PlanFile.fingerprint": "SHA-256 over target and sorted digests; an approval may name it.",
    "PlanFile.applyable": "Whether anything runs, or could with an approval.",
    "PlanFile.complete": "False: the plan was not finished and must not be applied.",
    "PlanFile.errored": "True: making the plan failed and it must not be applied.",
    "PlanFile.source": "What the plan was made from.",
    "PlanFile.target": "The cluster of the plan.",
    "PlanFile.facts": "What the gate knew of the cluster.",
    "PlanFile.changes": "What apply may do, in its order: create, expand, configure, delete; sorted by topic in each.",
    "PlanFile.blocked": "Topics whose difference no change can remove now.",
    "PlanFile.drift": "Live overrides that no spec names, left alone.",
    "PlanFile.unmanaged": "Live topics that no spec names.",
    "PlanFile.paused": "Topics that are left alone until a time.",
    "PlanFile.activity": "Traffic on topics that are to be deleted, by topic; in no digest.",
    "PlanFile.load": "What brokers and racks hold before and after all changes; in no digest.",
    "PlanFile.rack_losses": "What the loss of a rack costs before and after all changes; in no digest.",
    "PlanFile.warnings": "What could not be read; sentences.",
    "PlanFile.command_approves": "The highest risk that --approve lets run; null: it counts for nothing.",
    "PlanFile.summary": "Counts: each action, each word of the gate, blocked, drift, unmanaged, paused.",
    "PlanFile.checksum": "SHA-256 over the canonical JSON of all the rest.",
    "GatedEntry.address": "topic.<name>",
    "GatedEntry.topic": "The topic's name.",
    "GatedEntry.owner": "As the spec names it.",
    "GatedEntry.actions": "Exactly one.",
    "GatedEntry.before": "The live values that change.",
    "GatedEntry.after": "The values after the change.",
    "GatedEntry.reason": "Of a delete: the reason in the tombstone.",
    "GatedEntry.location": "The line of the spec that asks for it.",
    "GatedEntry.risk": "From low to high: safe, notice, risky, destructive.",
    "GatedEntry.codes": "Why the risk is what it is.",
    "GatedEntry.reversible": "Whether a later change can undo it.",
    "GatedEntry.digest": "SHA-256 that names the change to an approval.",
    "GatedEntry.notes": "Sentences for the reviewer; in no digest.",
    "GatedEntry.broker_defaults": "Broker values where `before` or `after` has no override, by config.",
    "GatedEntry.differing_defaults": "The same by value, where brokers differ or some gave none (null).",
    "GatedEntry.precondition": "What must still be true when the request is sent.",
    "GatedEntry.gate": "Whether it runs, waits for an approval, or stays out of this run (`dropped` before 1.2).",
    "GatedEntry.reasons": "Why it is held or skipped, with both numbers and the place of the limit.",
    "GatedEntry.in_question": "True: it is held, and an approval that names it lets it run.",
}

_PARTITIONS: Schema = {"pattern": "^(0|[1-9][0-9]*)$"}
_CODE: Schema = {"type": "string", "pattern": "^(TOP[1-8][0-9]{2}|[VQ][0-9]{2})$"}
"""Codes are not listed: a program that reads them must take those of later versions too."""


def schema_of_output(name: str, kind: type) -> Schema:
    """Return the whole schema of ``kind``, the type that is dumped."""
    root, parts = _components(kind)
    _, of_plan = _components(PlanFile)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:topicops:schema:{name}:v1",
        "title": f"topicops {name}, format version 1",
        **root,
        "$defs": {
            part: _part_of_plan(part, found) if part in of_plan else _with_all_required(found)
            for part, found in sorted(parts.items())
        },
    }


def _components(kind: type) -> tuple[Schema, dict[str, Schema]]:
    """What msgspec says of a type, and of each class in it by name."""
    (root,), parts = msgspec.json.schema_components([kind], schema_hook=_of_object)
    return root, parts | ({Code.__name__: _CODE} if Code.__name__ in parts else {})


def _of_object(kind: type) -> Schema:
    """The schema of ``object``, the one type that msgspec does not know and that is dumped."""
    if kind is not object:
        raise NotImplementedError(kind)
    return {"description": "Any value."}


def _fields(schema: Schema) -> dict[str, Schema]:
    return msgspec.convert(schema.get("properties", {}), dict[str, Schema])


def _with_all_required(schema: Schema) -> Schema:
    """A field with a default is always written too."""
    if "properties" not in schema:
        return schema
    fields = _fields(schema)
    with_default = [name for name, field in fields.items() if "default" in field]
    for name in with_default:
        del fields[name]["default"]
    required = [*msgspec.convert(schema["required"], list[str]), *with_default]
    return {**schema, "properties": fields, "required": required}


def _part_of_plan(name: str, schema: Schema) -> Schema:
    fields = _fields(schema)
    for field, found in fields.items():
        if text := DESCRIPTIONS.get(f"{name}.{field}"):
            found["description"] = text
    match name:
        case "GatedEntry":
            return {**schema, "properties": fields, "allOf": [_of_action(action) for action in VALUES_BY_ACTION]}
        case "TopicValues":
            fields["assignment"]["propertyNames"] = _PARTITIONS
        case "Blocked":
            fields = {"address": {"type": "string"}, **fields}
    return {**schema, "properties": fields} if fields else schema


def _of_action(action: Action) -> Schema:
    before, after = VALUES_BY_ACTION[action]
    return {
        "if": {"properties": {"actions": {"const": [action]}}},
        "then": {"properties": {"before": _required(before), "after": _required(after)}},
    }


def _required(fields: Sequence[str] | None) -> Schema:
    return {"type": "null"} if fields is None else {"type": "object", "required": list(fields)}
