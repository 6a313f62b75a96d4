"""The kinds of value that a field of a spec may have: the one place that reads the models' annotations.

The reader of files, the JSON Schema and the formatter each match on these kinds.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import StringConstraints

from topicops.model.choices import OneOf
from topicops.model.specs.environment import Configs, Written
from topicops.model.specs.files import AsWritten


@dataclass(frozen=True, slots=True)
class TextKind:
    longest: int | None = None
    """In characters."""
    pattern: str | None = None
    """What the whole text must match."""


@dataclass(frozen=True, slots=True)
class WordKind:
    words: Collection[str]
    """All that are allowed."""


@dataclass(frozen=True, slots=True)
class IntegerKind:
    lowest: int | None = None
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class BooleanKind:
    pass


@dataclass(frozen=True, slots=True)
class TimeKind:
    pass


@dataclass(frozen=True, slots=True)
class DurationKind:
    pass


@dataclass(frozen=True, slots=True)
class ListKind:
    item: Kind


@dataclass(frozen=True, slots=True)
class EntriesKind:
    """A mapping whose keys people choose."""

    key: TextKind
    value: Kind


@dataclass(frozen=True, slots=True)
class ConfigsKind:
    """Kafka's topic configs by name; a value may be null."""


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A mapping with the fields of ``model``."""

    model: type[Written]


@dataclass(frozen=True, slots=True)
class AsWrittenKind:
    """More than one form is allowed: a rule of its own reads the node."""


Kind = (
    TextKind | WordKind | IntegerKind | BooleanKind | TimeKind | DurationKind
    | ListKind | EntriesKind | ConfigsKind | ModelKind | AsWrittenKind
)  # fmt: skip


class Field(NamedTuple):
    kind: Kind
    is_required: bool
    default: object


def fields_of(model: type[Written]) -> dict[str, Field]:
    """The fields of ``model`` by their names in the file, in the model's order.

    Raises:
        TypeError: an annotation has no kind.
    """
    return {
        info.alias or name: Field(_kind_of(info.annotation, info.metadata), info.is_required(), info.default)
        for name, info in model.model_fields.items()
    }


def _kind_of(annotation: object, limits: Sequence[object] = ()) -> Kind:
    """``limits`` are what the model says beside the type; null is left out of the kind."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if any(isinstance(limit, AsWritten) for limit in limits):
        return AsWrittenKind()
    if choice := next((limit for limit in limits if isinstance(limit, OneOf)), None):
        return WordKind(choice.words)
    if annotation == Configs:
        return ConfigsKind()
    if origin is Annotated:
        return _kind_of(arguments[0], (*limits, *arguments[1:]))
    if origin in (Union, types.UnionType):
        (kept,) = [argument for argument in arguments if argument is not type(None)]
        return _kind_of(kept, limits)
    if origin is Literal:
        return WordKind(tuple(map(str, arguments)))
    if origin is tuple:
        return ListKind(_kind_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return EntriesKind(_text(get_args(arguments[0])), _kind_of(arguments[1]))
    return _kind_of_class(annotation, limits)


def _kind_of_class(annotation: object, limits: Sequence[object]) -> Kind:
    simple: Mapping[object, Kind] = {bool: BooleanKind(), datetime: TimeKind(), timedelta: DurationKind()}
    if annotation in simple:
        return simple[annotation]
    if annotation is int:
        lowest = next((int(str(limit.ge)) for limit in limits if isinstance(limit, Ge)), None)
        return IntegerKind(lowest, next((int(str(limit.le)) for limit in limits if isinstance(limit, Le)), None))
    if annotation is str:
        return _text(limits)
    if isinstance(annotation, type) and issubclass(annotation, Written):
        return ModelKind(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return WordKind(tuple(word.value for word in annotation))
    raise TypeError(f"no kind of value for {annotation!r}")


def _text(limits: Sequence[object]) -> TextKind:
    found = next((limit for limit in limits if isinstance(limit, StringConstraints)), StringConstraints())
    return TextKind(found.max_length, str(found.pattern) if found.pattern else None)
