"""JSON Schema 2020-12 of JSON that topicops writes for other programs, made from the type that is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from topicops.model.codes import Code

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
Schema: TypeAlias = dict[str, JsonValue]

_CODE: Schema = {"type": "string", "pattern": "^(TOP[1-8][0-9]{2}|[VQ][0-9]{2})$"}
"""Codes are not listed: a program that reads them must take those of later versions too."""


def written_schema(name: str, kind: object, definition: Callable[[str, Schema], Schema]) -> Schema:
    """The whole schema of ``kind``.

    Args:
        definition: Completes what msgspec says of one class, which it gets with the class's name.
    """
    (root,), definitions = msgspec.json.schema_components([kind], schema_hook=_of_object)
    defs: Schema = {
        each: _CODE if each == Code.__name__ else definition(each, _json(found))
        for each, found in sorted(definitions.items())
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:topicops:schema:{name}:v1",
        "title": f"topicops {name}, format version 1",
        **_json(root),
        "$defs": defs,
    }


def as_object(value: JsonValue) -> Schema:
    """The same value. Raises ``TypeError`` unless it is an object."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not a JSON object")
    return value


def _of_object(kind: type) -> dict[str, object]:
    """The schema of ``object``, the one type that msgspec does not know and that is dumped."""
    if kind is not object:
        raise NotImplementedError(kind)
    return {"description": "Any value."}


def _json(value: object) -> Schema:
    return as_object(json.loads(json.dumps(value)))
