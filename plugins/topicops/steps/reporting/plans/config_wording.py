"""A config's value for reviewers: also in a larger unit, and whether it is an override or the broker default."""

from __future__ import annotations

from topicops.model.cluster.broker_defaults import Default, DefaultOnBrokers
from topicops.model.specs.spellings import largest_unit
from topicops.model.specs.topic_config import SMALLEST_UNITS, TOPIC_CONFIGS

_LONGEST_INTEGER = 19
"""The digits of a 64-bit integer. A znode may hold more than Python converts to a number."""
_LONGEST_COUNT = 9_999
"""A larger count in another unit is no easier to read than the number itself."""
_WITHOUT_END = frozenset({"retention.ms", "retention.bytes"})
"""For these configs -1 means no limit."""


def config_text(name: str, value: str) -> str:
    """``retention.ms: 604800000 (7d)``, or ``retention.ms: 7 (7ms)``."""
    return f"{name}: {_shown(name, value)}"


def config_change_text(name: str, before: str | None, after: str | None, default: Default) -> str:
    """``retention.ms: 604800000 (7d, broker default) -> 86400000 (1d, override)``.

    Args:
        before: Canonical; None: no override, so that the brokers' default is in force.
        after: Canonical; None: the override is removed.
        default: Empty: not known.
    """
    both_overrides = before is not None and after is not None
    sides = [_side(name, value, default, alone=both_overrides) for value in (before, after)]
    return f"{name}: {' -> '.join(sides)}"


def default_in_units(name: str, default: Default) -> str:
    """``7d``, or ``7d (broker 1), 1h (brokers 2, 3)`` where brokers differ; empty: not known."""
    return ", ".join(
        f"{'not known' if row.value is None else in_units(name, row.value)}{f' ({row.whose})' if row.whose else ''}"
        for row in default
    )


def in_units(name: str, value: str) -> str:
    """``7d``, ``7ms``, ``no limit``; a value without a unit as it is, and ``""`` for an empty one."""
    return _with_unit(name, value) or value or '""'


def _side(name: str, value: str | None, default: Default, *, alone: bool) -> str:
    """One value; ``alone``: both values are overrides, so the word is left out."""
    if value is not None:
        return _shown(name, value, "" if alone else "override")
    return ", ".join(_default_side(name, row) for row in default) or "(broker default, not known)"


def _default_side(name: str, row: DefaultOnBrokers) -> str:
    whose = f"default of {row.whose}" if row.whose else "broker default"
    if row.value is None:
        return f"({whose}, not known)"
    return _shown(name, row.value, whose)


def _shown(name: str, value: str, *remarks: str) -> str:
    """The value as Kafka has it, and in brackets the same with its unit."""
    said = ", ".join(remark for remark in (_with_unit(name, value), *remarks) if remark)
    shown = value or '""'
    return f"{shown} ({said})" if said else shown


def _with_unit(name: str, value: str) -> str:
    """The number in the largest unit that divides it, or in its own; empty for a config without a unit."""
    if value == "-1" and name in _WITHOUT_END:
        return "no limit"
    unit_of_config = TOPIC_CONFIGS[name].unit if name in TOPIC_CONFIGS else None
    if unit_of_config is None or not value.isdecimal() or len(value) > _LONGEST_INTEGER:
        return ""
    count, unit = largest_unit(int(value), unit_of_config)
    return f"{count}{unit}" if count <= _LONGEST_COUNT else f"{value}{SMALLEST_UNITS[unit_of_config]}"
