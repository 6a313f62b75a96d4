"""A config's value as a reviewer reads it: what it is in plain units, and who says so."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.specs.spellings import largest_unit
from topicops.model.specs.topic_config import TOPIC_CONFIGS

_LONGEST_INTEGER = 19
"""Digits of 64 bits; a znode may hold more, which Python would not even read."""
_LONGEST_COUNT = 9_999
"""Above it a larger unit reads no better than the number itself."""
_WITHOUT_END = frozenset({"retention.ms", "retention.bytes"})
"""Here -1 means that nothing goes."""


def config_words(name: str, value: str) -> str:
    """``retention.ms: 604800000 (7d)``."""
    return f"{name}: {_joined(value, _in_plain_units(name, value))}"


def config_change_words(name: str, before: str | None, after: str | None, broker_defaults: Mapping[str, str]) -> str:
    """``retention.ms: 604800000 (7d, broker default) -> 86400000 (1d, override)``.

    Args:
        before: Canonical; None: no override, so that the brokers' default is in force.
        after: Canonical; None: the override goes.
        broker_defaults: No entry: not known.
    """
    both_overrides = before is not None and after is not None
    sides = [_side(name, value, broker_defaults.get(name), alone=both_overrides) for value in (before, after)]
    return f"{name}: {' -> '.join(sides)}"


def _side(name: str, value: str | None, default: str | None, *, alone: bool) -> str:
    """``alone``: the other side comes from the same place, which then goes without saying."""
    if value is not None:
        return _joined(value, _in_plain_units(name, value), "" if alone else "override")
    if default is None:
        return "(broker default, not known)"
    return _joined(default, _in_plain_units(name, default), "broker default")


def _joined(value: str, *remarks: str) -> str:
    said = ", ".join(remark for remark in remarks if remark)
    shown = value or '""'
    return f"{shown} ({said})" if said else shown


def _in_plain_units(name: str, value: str) -> str:
    """In the largest unit that leaves no rest; empty where that is no help."""
    if value == "-1" and name in _WITHOUT_END:
        return "no limit"
    unit_of_config = TOPIC_CONFIGS[name].unit if name in TOPIC_CONFIGS else None
    if unit_of_config is None or not value.isdecimal() or len(value) > _LONGEST_INTEGER:
        return ""
    number = int(value)
    count, unit = largest_unit(number, unit_of_config)
    return f"{count}{unit}" if count != number and count <= _LONGEST_COUNT else ""
