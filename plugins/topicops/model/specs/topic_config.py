"""Topic configs as Kafka defines them, and how their values are read, compared and written.

Names, types and ranges are data, one file for each of ``RELEASES``. Reading follows Kafka's own parser, so that a value
is refused here exactly when a broker refuses it, and two spellings that a broker reads alike are one value here.

Source: org.apache.kafka.common.config.ConfigDef#parseType and org.apache.kafka.storage.internals.log.LogConfig (3.9).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

from topicops.model.release import CAPPED_MIN_ISR, Releases

ConfigType = Literal["BOOLEAN", "DOUBLE", "INT", "LIST", "LONG", "STRING"]
Unit = Literal["ms", "bytes"]
ConfigValue = bool | int | float | str | tuple[str, ...]

UNITS: Mapping[Unit, Mapping[str, int]] = {
    "ms": {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000},
    "bytes": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
}
"""What people may write after a whole number, by the unit of the config."""

AS_TOTAL = -2
"""A local retention that follows the total one."""

MIN_ISR = "min.insync.replicas"
LARGEST_INT = 2**31 - 1
_VALUES_KEPT = 4096
"""How many values are remembered as read: many topics share one."""
THROTTLE_LISTS = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
"""Owned by Kafka's reassignment tools while a reassignment runs."""


class ConfigValueError(ValueError):
    """A value that no broker takes; the text says why."""


class AmbiguousNumberError(ConfigValueError):
    """A spelling that some readers of YAML take for another number, or for text."""


class UnknownUnitError(ConfigValueError):
    """A number followed by a unit that is not one of ``UNITS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What a value must satisfy once its type is right; which fields count depends on ``kind``."""

    kind: Literal["range", "enum", "list", "version"]
    min: int = 0
    max: int = 0
    also: tuple[int, ...] = ()
    """Allowed outside the range."""
    values: tuple[str, ...] = ()
    case_sensitive: bool = True
    items: tuple[str, ...] = ()
    """What a list may hold; empty: see ``pattern``."""
    pattern: str | None = None
    """What each item of a list must match."""
    or_exactly: str | None = None
    """A list of this one item is fine too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """One config of a release's table."""

    name: str
    type: ConfigType
    default: str
    """Kafka's own, in its text form; a broker may have another (``broker_synonyms``)."""
    valid: str
    """The constraint as Kafka prints it."""
    constraint: Constraint
    since: str
    removed_in: str | None
    deprecated_since: str | None
    importance: str
    broker_synonyms: tuple[str, ...]
    """The broker's settings that a missing override falls back to, nearest first."""
    broker_default: str | None

    @property
    def unit(self) -> Unit | None:
        if self.name.endswith(".ms"):
            return "ms"
        return "bytes" if self.name.endswith(".bytes") else None

    @property
    def is_whole_number(self) -> bool:
        return self.type in ("INT", "LONG")


ConfigTable = Mapping[str, TopicConfig]
"""The configs of one release, by name."""

RELEASES = ("3.9",)
"""Releases that have a table, ``topic_configs_<release>.json``, the oldest first; see ``configs_of``."""


def _load(release: str) -> ConfigTable:
    text = resources.files("topicops.model.specs").joinpath(f"topic_configs_{release}.json").read_bytes()
    return MappingProxyType({config.name: config for config in msgspec.json.decode(text, type=list[TopicConfig])})


CONFIG_TABLES: Mapping[str, ConfigTable] = {release: _load(release) for release in RELEASES}
TOPIC_CONFIGS: ConfigTable = {name: config for table in CONFIG_TABLES.values() for name, config in table.items()}
"""Every config by name, as the newest release that has it defines it."""


def release(text: str) -> tuple[int, ...]:
    """``3.9`` or ``3.9.1`` as numbers to compare, without the patch number; empty if it is neither."""
    parts = text.split(".")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        return ()
    return int(parts[0]), int(parts[1])


def configs_of(version: tuple[int, ...], tables: Mapping[str, ConfigTable]) -> ConfigTable:
    """The table of the newest release that is not newer than ``version``; the oldest table for an older version."""
    oldest, *others = sorted(tables, key=release)
    return tables[next((name for name in reversed(others) if release(name) <= version), oldest)]


def parse(name: str, text: str) -> ConfigValue:
    """The value of ``text`` as a broker reads it: bool, int, float, str, or a tuple for a list.

    Raises:
        ConfigValueError: there is no such config, or the brokers would refuse the value.
    """
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        raise ConfigValueError(f"Kafka has no topic config {name}")
    value = _typed(config, _java_trim(text))
    _check(config, value)
    return value


def canonical(name: str, text: str) -> str:
    """The one spelling of the value of ``text``: equal exactly when a broker treats two values alike.

    Raises: ConfigValueError, as ``parse``.
    """
    return _canonical(name, text)


def canonical_written(name: str, text: str) -> str:
    """As ``canonical``, for what people write: with units, and without spellings that readers disagree about.

    Raises:
        AmbiguousNumberError: ``010``, ``1_000``, ``0x10``, ``1e3``, ``1:30`` for a whole number.
        UnknownUnitError: a unit that is not one of the config's.
        ConfigValueError: the brokers would refuse the value.
    """
    config = TOPIC_CONFIGS.get(name)
    if config is not None and config.is_whole_number:
        text = _without_unit(config, _java_trim(text))
    return canonical(name, text)


def check_written(config: TopicConfig, text: str) -> None:
    """Raises as ``canonical_written`` unless brokers of the config's release take ``text``."""
    text = _java_trim(text)
    _check(config, _typed(config, _java_trim(_without_unit(config, text) if config.is_whole_number else text)))


def canonical_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """``overrides`` with canonical values; a name or value that Kafka 3.9 does not know keeps its raw text."""
    return {name: _canonical_or_raw(name, text) for name, text in overrides.items()}


@lru_cache(_VALUES_KEPT)
def config_problem(config: str, text: str) -> str:
    """Why a broker would refuse the value; empty when it accepts it."""
    try:
        parse(config, text)
    except ConfigValueError as error:
        return str(error)
    return ""


def min_insync_replicas(overrides: Mapping[str, str], broker_defaults: Mapping[str, str] | None) -> int:
    """The topic's own value as brokers read it, else their default, else Kafka's, which is 1."""
    own, default = own_min_insync_replicas(overrides), own_min_insync_replicas(broker_defaults or {})
    return own if own is not None else 1 if default is None else default


def needed_in_sync(least: int, replicas: int, releases: Releases | None) -> int:
    """How many replicas of a partition must be in sync, so that brokers take records with ``acks=all``.

    Args:
        least: The topic's ``min.insync.replicas``.
        releases: None: not known, and the stricter rule of older brokers counts.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.7 and later).
    """
    return min(least, replicas) if caps_min_isr(releases) else least


def caps_min_isr(releases: Releases | None) -> bool:
    """Whether all brokers take ``min.insync.replicas`` for no more than the number of replicas."""
    return releases is not None and releases.oldest >= CAPPED_MIN_ISR


def own_min_insync_replicas(configs: Mapping[str, str]) -> int | None:
    """The value among these configs as brokers read it, at most Kafka's largest ``int``; None: there is none."""
    text = _canonical_or_raw(MIN_ISR, configs[MIN_ISR]) if MIN_ISR in configs else ""
    return min(int(text), LARGEST_INT) if text.isdecimal() and len(text) <= LONGEST_NUMBER else None


AMBIGUOUS_NUMBER = re.compile(
    r"""[+-]?(?:
          0[0-9_]++(?:\.[0-9_]*+)?[A-Za-z]*+        # leading zero: octal to some
        | [0-9]++_[0-9_]*+(?:\.[0-9_]*+)?[A-Za-z]*+
        | 0[xX][0-9a-fA-F_]++ | 0[oO][0-7_]++ | 0[bB][01_]++
        | (?:[0-9]++\.?+[0-9]*+|\.[0-9]++)[eE][+-]?[0-9]++
        | [0-9]++(?::[0-9]++)++(?:\.[0-9]*+)?       # base 60 to some
    )""",
    re.VERBOSE,
)
"""Whole numbers that readers of YAML 1.1, YAML 1.2 and people read differently."""

_INTEGER = re.compile(r"[+-]?\d+")
_WITH_UNIT = re.compile(r"(?P<number>[+-]?[0-9]+(?P<fraction>\.[0-9]+)?)(?P<blank>\s*)(?P<unit>[^\W\d_].*)", re.DOTALL)
_JAVA_DOUBLE = re.compile(
    r"""(?P<sign>[+-]?)(?:
          (?P<word>NaN|Infinity)
        | (?:0[xX](?P<hex>[0-9a-fA-F]++\.?+[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP](?P<power>[+-]?[0-9]++))[fFdD]?
        | (?P<decimal>(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)[fFdD]?
    )""",
    re.VERBOSE,
)
_LIST_BLANKS = " \t\n\x0b\f\r"
_BITS: Mapping[str, int] = {"INT": 32, "LONG": 64}
LONGEST_NUMBER = 100
"""How many characters a number may have, so that no text is long to read. Kafka takes more, which nobody writes."""


def _java_trim(text: str) -> str:
    """As ``String.trim``: everything up to U+0020 goes, other blanks stay."""
    return text.strip("".join(map(chr, range(0x21))))


def _typed(config: TopicConfig, text: str) -> ConfigValue:
    match config.type:
        case "BOOLEAN":
            return _boolean(text)
        case "INT" | "LONG":
            return _integer(text, bits=_BITS[config.type])
        case "DOUBLE":
            return _double(text)
        case "LIST":
            return tuple(item.strip(_LIST_BLANKS) for item in text.split(",")) if text else ()
        case "STRING":
            return text


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigValueError("only true and false are known")
    return text.lower() == "true"


def _require_number_length(text: str) -> None:
    """Raise ``ConfigValueError`` for more characters than a number may have."""
    if len(text) > LONGEST_NUMBER:
        raise ConfigValueError(f"{len(text):,} characters; a number has at most {LONGEST_NUMBER}")


def _integer(text: str, *, bits: int) -> int:
    _require_number_length(text)
    if not _INTEGER.fullmatch(text):
        raise ConfigValueError("not a whole number")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ConfigValueError(f"more than {bits} bits can hold")
    return value


def _double(text: str) -> float:
    _require_number_length(text)
    found = _JAVA_DOUBLE.fullmatch(text)
    if not found:
        raise ConfigValueError("not a number")
    if found["word"]:
        return float(found["sign"] + found["word"])
    if found["hex"]:
        return _hexadecimal(f"{found['sign']}0x{found['hex']}p{found['power']}")
    return float(found["sign"] + found["decimal"])


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:  # Java makes it infinite
        return float("-inf" if text.startswith("-") else "inf")


def _check(config: TopicConfig, value: ConfigValue) -> None:
    """Raise ``ConfigValueError`` where the type is right and the value is not."""
    match config.constraint.kind:
        case "range" if isinstance(value, int | float):
            _check_range(config.constraint, value)
        case "enum" if isinstance(value, str) and value not in config.constraint.values:
            raise ConfigValueError(f"one of {', '.join(config.constraint.values)}")
        case "list" if isinstance(value, tuple):
            _check_list(config.constraint, value)
        case "version" if isinstance(value, str) and not is_release_name(value):
            raise ConfigValueError("not a release that Kafka 3.9 knows")
        case _:
            return


def _check_range(constraint: Constraint, value: float) -> None:
    # Written as Kafka writes it, two comparisons that NaN passes.
    if value in constraint.also or not (value < constraint.min or value > constraint.max):
        return
    extra = "".join(f" or {number}" for number in constraint.also)
    if constraint.max >= (1 << 31) - 1:
        raise ConfigValueError(f"at least {constraint.min}{extra}")
    raise ConfigValueError(f"from {constraint.min} to {constraint.max}{extra}")


def _check_list(constraint: Constraint, items: tuple[str, ...]) -> None:
    if constraint.or_exactly is not None and items == (constraint.or_exactly,):
        return
    for item in items:
        if constraint.items and item not in constraint.items:
            raise ConfigValueError(f"a list of {', '.join(constraint.items)}; {item!r} is none of them")
        # ASCII digits only: Kafka's expression spells out 0-9.
        if constraint.pattern is not None and not re.search(constraint.pattern, item):
            raise ConfigValueError(f"{constraint.or_exactly} or a list of partition:broker; {item!r} is neither")


_RELEASE_IV: Mapping[str, int] = {
    "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2,
    "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3,
    "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1, "4.0": 2,
}  # fmt: skip
"""Release to how many ``-IVn`` it has. Source: org.apache.kafka.server.common.MetadataVersion (3.9.2)."""
_RELEASES_WITHOUT_IV = frozenset({"0.8.0", "0.8.1", "0.8.2", "0.9.0"})
_NOT_YET_RELEASED = frozenset({"4.0"})


def is_release_name(text: str) -> bool:
    """Whether a 3.9 broker finds a metadata version under ``text``; patch numbers behind it are ignored."""
    key = ".".join(text.split(".")[: 3 if text.startswith("0.") else 2])
    release, dash, number = key.partition("-IV")
    if not dash:
        return release in _RELEASES_WITHOUT_IV or (release in _RELEASE_IV and release not in _NOT_YET_RELEASED)
    return number in {str(n) for n in range(_RELEASE_IV.get(release, 0))}


@lru_cache(_VALUES_KEPT)
def _canonical(name: str, text: str) -> str:
    value = parse(name, text)
    if isinstance(value, bool):
        return str(value).lower()
    if name == "cleanup.policy" and isinstance(value, tuple):
        return ",".join(sorted(set(value)))  # the log asks only whether a word is in it
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_text(value + 0.0)  # minus nought is nought
    return str(value)


def _java_text(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def _canonical_or_raw(name: str, text: str) -> str:
    try:
        return canonical(name, text)
    except ConfigValueError:
        return text


def _without_unit(config: TopicConfig, text: str) -> str:
    """``text`` as a plain number: ``7d`` becomes ``604800000``. What is no number at all stays as it is."""
    _require_number_length(text)
    if AMBIGUOUS_NUMBER.fullmatch(text):
        raise AmbiguousNumberError("readers of YAML disagree about this number")
    found = _WITH_UNIT.fullmatch(text)
    if not found or config.unit is None:
        return text
    return str(times_unit(found, UNITS[config.unit]))


def times_unit(found: re.Match[str], units: Mapping[str, int]) -> int:
    """The whole number of a match of number and unit; see ``read_duration_ms`` for durations outside configs."""
    unit = found["unit"]
    if unit not in units or found["blank"]:
        raise UnknownUnitError(f"known units: {' '.join(units)}, right behind a whole number")
    if found["fraction"] or found["number"].startswith("-"):
        raise ConfigValueError("a unit goes with a whole number from 0 on; take a smaller unit")
    return int(found["number"]) * units[unit]


def local_retention(local: int, total: int) -> int:
    """What stays on the broker's own disk of a tiered topic: -2 there means as much as is kept in all.

    Source: org.apache.kafka.storage.internals.log.LogConfig#localRetentionMs, #localRetentionBytes (3.9).
    """
    return total if local == AS_TOTAL else local


def read_duration_ms(text: str) -> int:
    """Milliseconds of ``30s``, ``2m`` and the like, which must have a unit.

    Raises: AmbiguousNumberError, UnknownUnitError, ConfigValueError.
    """
    _require_number_length(text)
    if AMBIGUOUS_NUMBER.fullmatch(text):
        raise AmbiguousNumberError("readers of YAML disagree about this number")
    found = _WITH_UNIT.fullmatch(text)
    if found:
        return times_unit(found, UNITS["ms"])
    if _INTEGER.fullmatch(text):
        raise UnknownUnitError(f"a duration needs a unit; known units: {' '.join(UNITS['ms'])}")
    raise ConfigValueError("not a duration such as 30s")
