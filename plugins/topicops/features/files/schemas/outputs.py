"""JSON Schema 2020-12 of JSON that topicops writes for other programs, made from the type that is written.

It accepts every minor version: it ignores unknown fields, and requires none that came later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import structs

from topicops.features.files.schemas.spec_files import sentences_of
from topicops.model.codes import Code
from topicops.model.plans.changes import Action
from topicops.model.plans.plan_file import GatedEntry, PlanFile
from topicops.model.runs.results import QualityResult

Schema = dict[str, object]

VALUES_BY_ACTION: Mapping[Action, tuple[Sequence[str] | None, Sequence[str] | None]] = {
    "create": (None, ("partitions", "replication_factor", "configs", "assignment")),
    "expand": (("partitions",), ("partitions", "assignment")),
    "configure": (("configs",), ("configs",)),
    "delete": (("topic_id", "partitions"), None),
}
"""Fields that ``before`` and ``after`` of each action must have; None means that they are null."""

_PARTITIONS: Schema = {"pattern": "^(0|[1-9][0-9]*)$"}
_CODE: Schema = {"type": "string", "pattern": "^(TOP[1-8][0-9]{2}|[VQ][0-9]{2})$"}
"""Schema of a code. It lists none: a program that reads codes must accept those of later versions too."""


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
            for part, found in sorted(_described(kind, parts).items())
        },
    }


def _described(kind: type, parts: Mapping[str, Schema]) -> dict[str, Schema]:
    """Give the fields of the type, and of the classes whose fields are documented, the sentences under them."""
    classes = {each.__name__: each for each in (kind, PlanFile, GatedEntry, QualityResult)}
    return {name: _with_words(found, classes[name]) if name in classes else found for name, found in parts.items()}


def _with_words(schema: Schema, kind: type) -> Schema:
    words = sentences_of(kind)
    if issubclass(kind, msgspec.Struct):
        words |= {field.encode_name: words[field.name] for field in structs.fields(kind) if field.name in words}
    fields = {
        name: {**found, "description": words[name]} if name in words else found
        for name, found in _fields(schema).items()
    }
    return {**schema, "properties": fields} if fields else schema


def _components(kind: type) -> tuple[Schema, dict[str, Schema]]:
    """Return what msgspec says of a type, and of each class in it by name."""
    (root,), parts = msgspec.json.schema_components([kind], schema_hook=_of_object)
    return root, parts | ({Code.__name__: _CODE} if Code.__name__ in parts else {})


def _of_object(kind: type) -> Schema:
    """Return the schema of ``object``, the one type that msgspec does not know and that is dumped."""
    if kind is not object:
        raise NotImplementedError(kind)
    return {"description": "Any value."}


def _fields(schema: Schema) -> dict[str, Schema]:
    return msgspec.convert(schema.get("properties", {}), dict[str, Schema])


def _with_all_required(schema: Schema) -> Schema:
    """Require fields with a default too: they are always written."""
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
    match name:
        case "GatedEntry":
            return {**schema, "properties": fields, "allOf": [_of_action(action) for action in VALUES_BY_ACTION]}
        case "TopicValues":
            fields["assignment"]["propertyNames"] = _PARTITIONS
        case "Blocked":
            fields = {"address": {"type": "string"}, **fields}
    return {**schema, "properties": fields} if fields else schema


def _of_action(action: Action) -> Schema:
    shapes: dict[str, Schema] = {
        name: {"type": "null"} if fields is None else {"type": "object", "required": list(fields)}
        for name, fields in zip(("before", "after"), VALUES_BY_ACTION[action], strict=True)
    }
    return {"if": {"properties": {"actions": {"const": [action]}}}, "then": {"properties": shapes}}
