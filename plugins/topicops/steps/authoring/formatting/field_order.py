"""What a kind of file holds at each place: the order of its fields, and how their texts are read."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Union, get_args, get_origin

from topicops.model.specs.document import Fields, FileKind, Items, Node, Text
from topicops.model.specs.environment import Written
from topicops.model.specs.files import AsWritten, TopicSpec
from topicops.model.specs.topic_config import ConfigValueError, canonical_written, read_duration_ms
from topicops.steps.specs.fields import WHOLE_NUMBER
from topicops.steps.specs.validate import MODELS

ORDERS: Mapping[type[Written], tuple[str, ...]] = {
    TopicSpec: (
        "profile", "partitions", "replicationFactor", "keyed", "placement", "rackAware", "assignment", "configs",
    ),
}  # fmt: skip
"""Where the order to write is not the order of the model's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What may stand at a place; nothing is known of a place without one."""

    fields: Mapping[str, Layout] = field(default_factory=dict)
    """In the order to write them."""
    each: Layout | None = None
    """Of every value of a mapping whose keys people choose, and of every item of a list."""
    holds_configs: bool = False
    leaf: type | None = None
    """``int``, ``bool``, ``timedelta`` or ``str``; None: left as it is written."""

    def below(self, key: str) -> Layout | None:
        return self.fields.get(key, self.each)


def _layout_of(annotation: object) -> Layout:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        is_free = any(isinstance(each, AsWritten) for each in arguments)
        return Layout() if is_free else _layout_of(arguments[0])
    if origin in (Union, types.UnionType):
        return _layout_of(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return Layout(each=_layout_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Layout(each=_layout_of(arguments[1]))
    if isinstance(annotation, type) and issubclass(annotation, Written):
        return _layout_of_model(annotation)
    return Layout(leaf=annotation if annotation in (int, bool, timedelta) and isinstance(annotation, type) else str)


def _layout_of_model(model: type[Written]) -> Layout:
    found = {}
    for name, info in model.model_fields.items():
        is_free = any(isinstance(each, AsWritten) for each in info.metadata)
        alias = info.alias or name
        found[alias] = Layout() if is_free else _layout_of(info.annotation)
        if name == "configs":
            found[alias] = Layout(holds_configs=True)
    order = ORDERS.get(model, tuple(found))
    return Layout(fields={name: found[name] for name in order})


LAYOUTS: Mapping[FileKind, Layout] = {kind: _layout_of_model(model) for kind, model in MODELS.items()}


Sense = str | int | None | list["Sense"] | dict[str, "Sense"]


def config_sense(node: Node, layout: Layout | None) -> Sense:
    """What a file says, whatever the spelling: equal for two files exactly when no reader of specs tells them apart."""
    match node:
        case Text():
            return None if node.is_null else _sense_of_text(node.text, layout)
        case Items():
            return [config_sense(item, layout.each if layout else None) for item in node.items]
        case Fields() if layout is not None and layout.holds_configs:
            return {key.text: _sense_of_config(key.text, value) for key, value in node.entries}
        case Fields():
            return {
                key.text: config_sense(value, layout.below(key.text) if layout else None) for key, value in node.entries
            }


def _sense_of_text(text: str, layout: Layout | None) -> Sense:
    if layout is not None and layout.leaf is int and WHOLE_NUMBER.fullmatch(text.strip()):
        return int(text) if len(text) < 100 else text
    if layout is not None and layout.leaf is timedelta:
        try:
            return read_duration_ms(text.strip())
        except ConfigValueError:
            return text
    return text


def _sense_of_config(name: str, node: Node) -> Sense:
    if not isinstance(node, Text) or node.is_null:
        return config_sense(node, None)
    try:
        return canonical_written(name, node.text)
    except ConfigValueError:
        return node.text
