"""What each kind of file holds at each place: the order of the fields, and the type of each text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from topicops.model.specs.document import Fields, FileKind, Items, Node, Text
from topicops.model.specs.environment import Written
from topicops.model.specs.files import (
    AsWrittenKind,
    BooleanKind,
    ConfigsKind,
    DurationKind,
    EntriesKind,
    IntegerKind,
    Kind,
    ListKind,
    ModelKind,
    TextKind,
    TimeKind,
    TopicSpec,
    WordKind,
    fields_of,
)
from topicops.model.specs.topic_config import ConfigValueError, canonical_written, read_duration_ms
from topicops.steps.specs.fields import WHOLE_NUMBER
from topicops.steps.specs.validate import MODELS

ORDERS: Mapping[type[Written], tuple[str, ...]] = {
    TopicSpec: (
        "profile", "partitions", "replicationFactor", "keyed", "placement", "rackAware", "assignment", "configs",
    ),
}  # fmt: skip
"""Models whose fields are written in another order than the model has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a place in a file may hold; a place without a layout is left as it is written."""

    fields: Mapping[str, Layout] = field(default_factory=dict)
    """In the order in which they are written."""
    each: Layout | None = None
    """The layout of each item of a list, and of each value of a mapping with free keys."""
    holds_configs: bool = False
    leaf: type | None = None
    """``int``, ``bool``, ``timedelta`` or ``str``; None: the text stays as it is written."""

    def below(self, key: str) -> Layout | None:
        return self.fields.get(key, self.each)


def _layout_of(kind: Kind) -> Layout:
    match kind:
        case ModelKind():
            return _layout_of_model(kind.model)
        case ListKind():
            return Layout(each=_layout_of(kind.item))
        case EntriesKind():
            return Layout(each=_layout_of(kind.value))
        case ConfigsKind():
            return Layout(holds_configs=True)
        case AsWrittenKind():
            return Layout()
        case IntegerKind():
            return Layout(leaf=int)
        case BooleanKind():
            return Layout(leaf=bool)
        case DurationKind():
            return Layout(leaf=timedelta)
        case TextKind() | WordKind() | TimeKind():
            return Layout(leaf=str)
        case _:
            assert_never(kind)


def _layout_of_model(model: type[Written]) -> Layout:
    found = {name: _layout_of(each.kind) for name, each in fields_of(model).items()}
    return Layout(fields={name: found[name] for name in ORDERS.get(model, tuple(found))})


LAYOUTS: Mapping[FileKind, Layout] = {kind: _layout_of_model(model) for kind, model in MODELS.items()}


CanonicalValue = str | int | None | list["CanonicalValue"] | dict[str, "CanonicalValue"]


def canonical_value(node: Node, layout: Layout | None) -> CanonicalValue:
    """The values of a file without their spelling: equal exactly when ``validate`` reads two files alike."""
    match node:
        case Text():
            return None if node.is_null else _canonical_text(node.text, layout)
        case Items():
            return [canonical_value(item, layout.each if layout else None) for item in node.items]
        case Fields() if layout is not None and layout.holds_configs:
            return {key.text: _canonical_config(key.text, value) for key, value in node.entries}
        case Fields():
            return {
                key.text: canonical_value(value, layout.below(key.text) if layout else None)
                for key, value in node.entries
            }


def _canonical_text(text: str, layout: Layout | None) -> CanonicalValue:
    if layout is not None and layout.leaf is int and WHOLE_NUMBER.fullmatch(text.strip()):
        return int(text) if len(text) < 100 else text
    if layout is not None and layout.leaf is timedelta:
        try:
            return read_duration_ms(text.strip())
        except ConfigValueError:
            return text
    return text


def _canonical_config(name: str, node: Node) -> CanonicalValue:
    if not isinstance(node, Text) or node.is_null:
        return canonical_value(node, None)
    try:
        return canonical_written(name, node.text)
    except ConfigValueError:
        return node.text
