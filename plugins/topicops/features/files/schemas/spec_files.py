"""JSON Schema 2020-12 of the files that people write, made from the models, for editors.

It takes what ``validate`` takes, whichever way YAML's plain scalars are typed: a number may be quoted, and a text may
look like a number. It cannot say what needs two files, so an editor finds less than ``validate``.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from typing import assert_never

from topicops.model.release import OLDEST
from topicops.model.specs import files as kinds
from topicops.model.specs.config_checks import ranges_by_release
from topicops.model.specs.desired import API_VERSION
from topicops.model.specs.environment import Written
from topicops.model.specs.files import FieldKind, Kind, fields_of
from topicops.model.specs.topic_config import TOPIC_CONFIGS, UNITS, TopicConfig, Unit, parse
from topicops.steps.specs.validate import MODELS

Schema = dict[str, object]

KINDS: Mapping[str, type[Written]] = {kind.lower(): model for kind, model in MODELS.items()}
"""Kinds of files by the name of their schema, ``topic.v1.json``."""

_WHOLE = "(0|[1-9][0-9]*)"
_WHOLE_NUMBER = rf"^\s*[+-]?{_WHOLE}\s*$"
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)$"
_DOUBLE = r"^\s*[+-]?(NaN|Infinity|0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+[fFdD]?|[0-9.]+([eE][+-]?[0-9]+)?[fFdD]?)\s*$"
_BOOLEAN = r"^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*$"
_TEXT_FORM_OF_ASSIGNMENT = r"^\s*[0-9]+\s*(:\s*[0-9]+\s*)*(,\s*[0-9]+\s*(:\s*[0-9]+\s*)*)*$"


def _pattern(pattern: str, message: str) -> Schema:
    """Add the sentence that editors show instead of the pattern. Source: yaml-language-server, patternErrorMessage."""
    return {"pattern": pattern, "patternErrorMessage": message}


_UNIT_MESSAGES: Mapping[Unit, str] = {
    "ms": "a whole number with a unit right behind it, such as 7d, 12h, 30m or 500ms",
    "bytes": "a whole number with a unit right behind it, such as 1GiB, 512MiB or 64KiB",
}
_DIGITS = "a whole number in plain digits, such as 12"
_NAME: Schema = _pattern("^[A-Za-z0-9._-]+$", "letters, digits, dot, underscore and dash") | {"maxLength": 249}
_LARGEST_EXACT = 2**53
"""Above it an editor's numbers are rounded, so a bound says nothing there."""


def schema_of(kind: str) -> Schema:
    """Return the whole schema of one kind of file; a key of ``KINDS``."""
    definitions: dict[str, Schema] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:topicops:schema:{kind}:v1",
        "title": f"topicops {kind}, {API_VERSION}",
        **_object(KINDS[kind], definitions, kind),
        **(_TOMBSTONES if kind == "topic" else {}),
        "$defs": dict(sorted(definitions.items())),
    }


_TOMBSTONES: Schema = {
    "if": {
        "properties": {
            "lifecycle": {"type": "object", "properties": {"state": {"const": "absent"}}, "required": ["state"]}
        },
        "required": ["lifecycle"],
    },
    "then": {"properties": {"spec": {"type": "null"}, "lifecycle": {"required": ["reason"]}}},
    "else": {"required": ["spec"]},
}
"""A tombstone has no spec; every other topic has one."""


def _object(model: type[Written], definitions: dict[str, Schema], kind: str) -> Schema:
    fields, words = fields_of(model), words_of(model)
    return {
        "type": "object",
        "properties": {name: _property(name, field, words[name], definitions, kind) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.is_required],
        "additionalProperties": False,
    }


def _property(name: str, field: FieldKind, words: str, definitions: dict[str, Schema], kind: str) -> Schema:
    fixed = {"apiVersion": API_VERSION, "kind": kind.capitalize()}.get(name)
    if fixed is not None:
        return {"const": fixed, "description": words}
    schema = _schema(field.kind, definitions, kind) | (_NAME if name == "name" else {})
    schema = {**(schema if field.is_required else _or_null(schema)), "description": words}
    default = _as_json(field.default)
    return schema if default is None else {**schema, "default": default}


def words_of(model: type[Written]) -> dict[str, str]:
    """Return the sentence that the source has under each field of a model, by the field's name in the file.

    Pydantic could read them (``use_attribute_docstrings``), but would do so in every command that imports the models.
    """
    words = sentences_of(model)
    return {str(info.alias): words[name] for name, info in model.model_fields.items()}


def sentences_of(kind: type) -> dict[str, str]:
    """Return the sentence that the source has under each field of a class and of its bases of ours, in one line."""
    words: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if base.__module__.startswith("topicops.")]):
        for statement, following in pairwise(ast.walk(ast.parse(inspect.getsource(each)))):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    words[name] = " ".join(text.split()).replace("``", "`")
    return words


def _or_null(schema: Schema) -> Schema:
    """Allow nothing behind the colon: then the field is not given."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    nulls: Schema = {"enum": None, "anyOf": {"type": "null"}, "type": "null"}
    name = next(name for name in nulls if name in schema)
    found = schema[name]
    return {**schema, name: [*(found if isinstance(found, list | tuple) else [found]), nulls[name]]}


def _as_json(default: object) -> object:
    match default:
        case StrEnum():
            return default.value
        case timedelta():
            return f"{round(default.total_seconds())}s"
        case bool() | int() | str():
            return default
        case _:
            return None


def _schema(value: Kind, definitions: dict[str, Schema], kind: str) -> Schema:
    """Return the schema of one kind of value, without null; models and configs are added to ``definitions``."""
    match value:
        case kinds.TextKind():
            return {"type": ["string", "number", "boolean"]} | ({"maxLength": value.longest} if value.longest else {})
        case kinds.WordKind():
            return {"enum": list(value.words)}
        case kinds.IntegerKind():
            limits = {"minimum": value.lowest, "maximum": value.highest}
            bounds = {name: bound for name, bound in limits.items() if bound is not None}
            return {"type": ["integer", "string"], **_pattern(_WHOLE_NUMBER, _DIGITS), **bounds}
        case kinds.PlainKind.BOOLEAN:
            return {"type": ["boolean", "string"], **_pattern("^(true|false)$", "true or false")}
        case kinds.PlainKind.TIME:
            return {
                "type": "string",
                "format": "date-time",
                **_pattern(_TIME, "a time in UTC, such as 2030-01-31T12:00:00Z"),
            }
        case kinds.PlainKind.DURATION:
            return {"type": "string", **_pattern(_with_unit("ms", always=True), _UNIT_MESSAGES["ms"])}
        case kinds.ListKind():
            return {"type": "array", "items": _schema(value.item, definitions, kind)}
        case kinds.EntriesKind():
            pattern = value.key.pattern
            words = f"a key matches {pattern}"
            names = {"propertyNames": _pattern(f"^{pattern}$", words)} if pattern else {}
            found = _or_null(_schema(value.value, definitions, kind))
            return {"type": "object", "additionalProperties": found, **names}
        case kinds.PlainKind.CONFIGS:
            properties = {name: _config(config) for name, config in sorted(TOPIC_CONFIGS.items())}
            definitions["configs"] = {"type": "object", "properties": properties, "additionalProperties": False}
            return {"$ref": "#/$defs/configs"}
        case kinds.ModelKind():
            name = value.model.__name__
            definitions[name] = definitions.get(name) or _object(value.model, definitions, kind)
            return {"$ref": f"#/$defs/{name}"}
        case kinds.PlainKind.AS_WRITTEN:
            return _assignment()
        case _:
            assert_never(value)


def _with_unit(unit: Unit, *, always: bool = False) -> str:
    units = "|".join(UNITS[unit])
    return rf"^\s*{_WHOLE}({units})\s*$" if always else rf"^\s*([+-]?{_WHOLE}|{_WHOLE}({units}))\s*$"


def _assignment() -> Schema:
    broker: Schema = {
        "type": ["integer", "string"],
        "minimum": 0,
        **_pattern(rf"^\s*\+?{_WHOLE}\s*$", "the id of a broker"),
    }
    row: Schema = {"type": "array", "items": broker, "minItems": 1, "uniqueItems": True}
    names = _pattern(f"^{_WHOLE}$", "the number of a partition")
    by_partition = {"type": "object", "propertyNames": names, "additionalProperties": row, "minProperties": 1}
    return {
        "anyOf": [by_partition, {"type": ["string", "integer"], **_pattern(_TEXT_FORM_OF_ASSIGNMENT, "as 1:2:3,2:3:1")}]
    }


def _config(config: TopicConfig) -> Schema:
    """Return what one config may be; the keywords that begin with x- are for people who read the schema."""
    schema = _config_value(config)
    schema["description"] = " ".join([config.words, *_words_on_releases(config)])
    default = parse(config.name, config.default)
    schema["default"] = config.default if isinstance(default, tuple) else default
    schema["x-type"], schema["x-valid"], schema["x-since"] = config.type, config.valid, str(config.since)
    if len(valid := ranges_by_release(config)) > 1:
        schema["x-valid-by-release"] = {str(since): text for since, text in valid.items()}
    if config.unit:
        schema["x-unit"] = config.unit
    if config.removed_in:
        schema["x-removed-in"] = str(config.removed_in)
    if config.deprecated_since:
        schema["deprecated"] = True
    return schema


def _words_on_releases(config: TopicConfig) -> Iterator[str]:
    """Yield which releases have the config, and which take what, if not all take the same."""
    if config.since > OLDEST:
        yield f"Since Kafka {config.since}."
    if config.removed_in:
        yield f"Gone since Kafka {config.removed_in}."
    first, *others = ranges_by_release(config).items()
    if others:
        yield f"Valid: {first[1]}" + "".join(f"; since Kafka {since}: {valid}" for since, valid in others) + "."


def _config_value(config: TopicConfig) -> Schema:
    match config.type:
        case "INT" | "LONG":
            pattern = _with_unit(config.unit) if config.unit else _WHOLE_NUMBER
            message = f"{_UNIT_MESSAGES[config.unit]}; or a plain number such as -1" if config.unit else _DIGITS
            bounds = _bounds_of(config)
            if also := config.constraint.also:
                bounds = {"anyOf": [bounds, {"enum": list(also)}]}
            return {"type": ["integer", "string", "null"], **_pattern(pattern, message), **bounds}
        case "DOUBLE":
            return {
                "type": ["number", "string", "null"],
                **_pattern(_DOUBLE, "a number, such as 0.5"),
                **_bounds_of(config),
            }
        case "BOOLEAN":
            return {"type": ["boolean", "string", "null"], **_pattern(_BOOLEAN, "true or false")}
        case "LIST":
            items = config.constraint.items
            examples = [*items, ",".join(items)] if items else ["0:1001,1:1002"]
            message = f"a text with commas, such as {' or '.join(examples)}"
            return {
                "type": ["string", "integer", "null"],
                **_pattern(_list_pattern(config), message),
                "examples": examples,
            }
        case "STRING" if config.constraint.kind == "enum":
            words = dict.fromkeys(word for form in reversed(config.forms) for word in form.constraint.values)
            return {"enum": [*words, None]}
        case "STRING":
            return {"type": ["string", "number", "null"]}


def _bounds_of(config: TopicConfig) -> Schema:
    """Return the widest range of any release: a schema knows no cluster."""
    least = min(form.constraint.min for form in config.forms)
    most = max(form.constraint.max for form in config.forms)
    bounds: Schema = {"minimum": least} if least > -_LARGEST_EXACT else {}
    return bounds | ({"maximum": most} if most < _LARGEST_EXACT else {})


def _list_pattern(config: TopicConfig) -> str:
    limits = config.constraint
    item = f"({'|'.join(map(re.escape, limits.items))})" if limits.items else "([0-9]+:[0-9]+)"
    several = rf"^\s*({item}(\s*,\s*{item})*)?\s*$"
    return several if limits.or_exactly is None else rf"{several}|^\s*{re.escape(limits.or_exactly)}\s*$"
