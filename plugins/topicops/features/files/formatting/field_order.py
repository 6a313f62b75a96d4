"""What each kind of file holds at each place: the order of the fields, and the kind of each text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from topicops.model.specs.document import Fields, FileKind, Items, Node, Text
from topicops.model.specs.environment import Written
from topicops.model.specs.files import (
    EntriesKind,
    IntegerKind,
    Kind,
    ListKind,
    ModelKind,
    PlainKind,
    SizeKind,
    fields_of,
)
from topicops.model.specs.topic_config import ConfigValueError, canonical_written, read_duration_ms, read_size
from topicops.steps.specs.fields import WHOLE_NUMBER
from topicops.steps.specs.validate import MODELS


@dataclass(frozen=True, slots=True)
class ConfigKind:
    name: str


Place = Kind | ConfigKind | None
"""Kind of value that a place in a file may hold. None means that it is left as it is written."""
PLACES: Mapping[FileKind, Place] = {kind: ModelKind(model) for kind, model in MODELS.items()}

CanonicalValue = str | int | None | list["CanonicalValue"] | dict[str, "CanonicalValue"]


@cache
def _ordered(model: type[Written]) -> Mapping[str, Kind]:
    """Return the fields in order: the profile above the values that it gives, and configs, which are many, last."""
    places = {"profile": -1, "configs": 1}
    found = fields_of(model)
    return {name: found[name].kind for name in sorted(found, key=lambda name: places.get(name, 0))}


def order_of(place: Place) -> Mapping[str, int]:
    """Return the number of each field in the order in which fields are written; empty where any order is right."""
    names = _ordered(place.model) if isinstance(place, ModelKind) else ()
    return {name: number for number, name in enumerate(names)}


def below(place: Place, key: str = "") -> Place:
    """Return what a field of this place holds, or an item of its list."""
    match place:
        case ModelKind():
            return _ordered(place.model).get(key)
        case ListKind():
            return place.item
        case EntriesKind():
            return place.value
        case PlainKind.CONFIGS:
            return ConfigKind(key)
        case _:
            return None


def canonical_value(node: Node, place: Place) -> CanonicalValue:
    """Return the values of a file without their spelling: equal exactly when ``validate`` reads two files alike."""
    match node:
        case Text():
            return None if node.is_null else _canonical_text(node.text, place)
        case Items():
            return [canonical_value(item, below(place)) for item in node.items]
        case Fields():
            return {key.text: canonical_value(value, below(place, key.text)) for key, value in node.entries}


def _canonical_text(text: str, place: Place) -> CanonicalValue:
    try:
        match place:
            case IntegerKind() if WHOLE_NUMBER.fullmatch(text.strip()) and len(text) < 100:
                return int(text)
            case PlainKind.DURATION:
                return read_duration_ms(text.strip())
            case SizeKind():
                return read_size(text.strip())
            case ConfigKind():
                return canonical_written(place.name, text)
    except ConfigValueError:
        pass
    return text
