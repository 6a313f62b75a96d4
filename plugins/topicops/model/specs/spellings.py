"""The only value that a refused spelling can mean, and plain numbers in larger units.

A function returns None where a person must decide: ``5GB`` may be GB or GiB, ``30`` may be seconds or minutes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from topicops.model.specs.topic_config import TOPIC_CONFIGS, UNITS, TopicConfig, Unit

_MOST_DIGITS = 10
_DECIMAL = re.compile(r"([+-]?)([0-9][0-9_]*)([A-Za-z]*)")
_NUMBER_AND_UNIT = re.compile(r"\s*([0-9]+)\s*([A-Za-z]+)\s*")
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

_UNIT_WORDS: Mapping[Unit, Mapping[str, str]] = {
    "ms": {
        "ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
        "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
        "m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
        "h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
        "d": "d", "day": "d", "days": "d",
    },
    "bytes": {"b": "B", "byte": "B", "bytes": "B", "kib": "KiB", "mib": "MiB", "gib": "GiB", "tib": "TiB"},
}  # fmt: skip
"""Words for units in lower case; KB, MB, GB and TB are not here: some people mean 1,000 by the K and some 1,024."""


def plain_number(text: str) -> str | None:
    """Return ``10`` for ``010``, ``1000`` for ``1_000``; a unit after the number stays."""
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    sign, digits, unit = found.groups()
    return f"{'-' if sign == '-' else ''}{digits.replace('_', '').lstrip('0') or '0'}{unit}"


def known_unit(text: str, unit: Unit) -> str | None:
    """Return ``7 days`` as ``7d``."""
    found = _NUMBER_AND_UNIT.fullmatch(text)
    if found is None:
        return None
    number, word = found.groups()
    # `M` may have been meant as months, mebibytes or minutes.
    known = None if word == "M" else _UNIT_WORDS[unit].get(word.lower())
    return f"{number}{known}" if known else None


_LIKELY: Mapping[Unit, Mapping[str, str]] = {
    "ms": {"m": "m"},
    "bytes": {f"{letter}{b}": f"{letter.upper()}iB" for letter in "kmgt" for b in ("", "b")},
}


def likely_unit(text: str, unit: Unit) -> str:
    """Return what to write where ``known_unit`` does not know: for ``1w``, ``1GB`` and ``30M`` a value to agree to."""
    found = _NUMBER_AND_UNIT.fullmatch(text)
    number, word = found.groups() if found else ("", "")
    if unit == "ms" and word.lower() in ("w", "week", "weeks") and len(number) < _MOST_DIGITS:
        return f"write {7 * int(number)}d"
    likely = _LIKELY[unit].get(word.lower())
    return f"write {number}{likely} if that is meant" if likely else f"write it like {'7d' if unit == 'ms' else '1GiB'}"


def utc_time(text: str) -> str | None:
    """Return a time with an offset, as RFC 3339 in UTC."""
    if not _LOCAL_TIME.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):  # a day that does not exist, or outside the years that Python knows
        return None
    return time.isoformat().replace("+00:00", "Z")


def exact_word(text: str, words: tuple[str, ...]) -> str | None:
    """Return the one of ``words`` that differs from ``text`` by case or blanks only; in a list, for each item."""
    by_lower_case = {word.lower(): word for word in words}
    meant = [by_lower_case.get(item.strip().lower()) for item in text.split(",")]
    return ",".join(word for word in meant if word is not None) if all(meant) else None


def config_name_of_broker_setting(name: str) -> str | None:
    """Return ``retention.ms`` for ``log.retention.hours``: the topic config that stands for a broker's setting."""
    return next((config.name for config in TOPIC_CONFIGS.values() if name in config.broker_synonyms), None)


def human_unit(config: TopicConfig, canonical: str) -> str | None:
    """Return ``7d`` for 604800000 ms, ``1GiB`` for 1073741824 bytes; None where the number itself is clearest."""
    if config.unit is None or not config.is_whole_number:
        return None
    number = int(canonical)
    if number < 0:
        return "no limit" if number == -1 and "retention" in config.name else None
    count, unit = largest_unit(number, config.unit)
    return f"{count}{unit}" if count != number else None


def largest_unit(number: int, unit: Unit) -> tuple[int, str]:
    """Return ``(7, "d")`` for 604800000 ms: the number in the largest unit that divides it; for 0, in the smallest."""
    smallest_first = sorted((size, name) for name, size in UNITS[unit].items())
    size, name = max((each for each in smallest_first if number and number % each[0] == 0), default=smallest_first[0])
    return number // size, name


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1900, 3000)
"""A time outside of these is no time of a run or a review, and its sum with a duration may be in no calendar."""


def in_utc(time: datetime) -> datetime:
    """Return the same moment in UTC. Raises ``ValueError``: The time has no zone, or is of a year that no run has."""
    if time.tzinfo is None or time.year not in _YEARS:
        raise ValueError(f"{time.isoformat()} is no time in UTC of the years {_YEARS[0]} to {_YEARS[-1]}")
    return time.astimezone(UTC)


def time_of_ms(ms: int) -> datetime | None:
    """Return the time that is this many ms after 1970; None where no calendar has it."""
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
