"""Topic configs as Kafka defines them, and how their values are read, compared and written.

Names, types and ranges are data: ``topic_configs.json`` has the forms of each config, by the release that each began
with. A type never changes, so reading a value and writing its canonical form need no release; ``config_checks.py`` says
whether the brokers of a release take the value. Reading follows Kafka's own parser, so that two spellings that a broker
reads alike are one value here.

Source: org.apache.kafka.common.config.ConfigDef#parseType, and LogConfig of each release (kafka.log.LogConfig before
3.5, org.apache.kafka.storage.internals.log.LogConfig since).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.release import CAPPED_MIN_ISR, NEWEST, OLDEST, Release, Releases
from topicops.model.specs.vendors import vendor_of

ConfigType = Literal["BOOLEAN", "DOUBLE", "INT", "LIST", "LONG", "STRING"]
Unit = Literal["ms", "bytes"]
ConfigValue = bool | int | float | str | tuple[str, ...]

UNITS: Mapping[Unit, Mapping[str, int]] = {
    "ms": {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000},
    "bytes": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40},
}
"""Suffixes that people may write after a whole number, by the unit of the config; the smallest comes first."""
SMALLEST_UNITS: Mapping[Unit, str] = {unit: next(iter(words)) for unit, words in UNITS.items()}

AS_TOTAL = -2
"""A local retention that follows the total one."""

MIN_ISR = "min.insync.replicas"
LARGEST_INT = 2**31 - 1
_VALUES_KEPT = 4096
"""Number of values whose reading is remembered: many topics share one."""
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

    kind: Literal["any", "range", "enum", "list", "version"]
    """``version``: one of the config's ``names``."""
    min: int = 0
    max: int = 0
    also: tuple[int, ...] = ()
    """Allowed outside the range."""
    values: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    """Allowed items of a list; empty: see ``pattern``."""
    pattern: str | None = None
    """Pattern that each item of a list must match."""
    or_exactly: str | None = None
    """A list of this one item is fine too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A config as the releases from ``since`` on have it, until the one that begins with its next form."""

    since: Release
    default: str
    """Kafka's own, in its text form; a broker may have another (``broker_synonyms``)."""
    valid: str
    """The constraint as Kafka prints it."""
    constraint: Constraint
    broker_synonyms: tuple[str, ...]
    """The broker's settings that a missing override falls back to, nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """One config as the brokers of one release have it."""

    name: str
    words: str
    """Sentence that editors show."""
    type: ConfigType
    since: Release
    removed_in: Release | None
    """The first release without it."""
    deprecated_since: Release | None
    names: Mapping[str, Release]
    """The names that ``message.format.version`` may have, each with the first release that knows it."""
    forms: tuple[Form, ...]
    """Forms of all releases, the oldest first."""
    release: Release
    """Release whose brokers have ``form``."""
    form: Form
    vendor: str = ""
    """Whose config it is; empty for Kafka's own."""

    @property
    def default(self) -> str:
        return self.form.default

    @property
    def valid(self) -> str:
        return self.form.valid

    @property
    def constraint(self) -> Constraint:
        return self.form.constraint

    @property
    def differs_by_release(self) -> bool:
        """Whether some releases take other values than others."""
        return bool(self.names) or any(form.constraint != self.constraint for form in self.forms)

    @property
    def broker_synonyms(self) -> tuple[str, ...]:
        """Of all releases, nearest first."""
        return tuple(dict.fromkeys(name for form in reversed(self.forms) for name in form.broker_synonyms))

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


class _FormRow(msgspec.Struct):
    """What differs from the form before."""

    since: str
    default: str | None = None
    valid: str | None = None
    constraint: Constraint | None = None
    broker_synonyms: tuple[str, ...] | None = None


class _ConfigRow(msgspec.Struct):
    """A config of ``topic_configs.json``."""

    name: str
    words: str
    type: ConfigType
    since: str
    forms: tuple[_FormRow, ...]
    removed_in: str | None = None
    deprecated_since: str | None = None
    names: Mapping[str, str] = {}


def _read_configs() -> ConfigTable:
    """Return every config, as the newest release has it, or had it last."""
    text = resources.files("topicops.model.specs").joinpath("topic_configs.json").read_bytes()
    return MappingProxyType({row.name: _config(row) for row in msgspec.json.decode(text, type=list[_ConfigRow])})


def _config(row: _ConfigRow) -> TopicConfig:
    forms = _forms(row.forms)
    return TopicConfig(
        name=row.name,
        words=row.words,
        type=row.type,
        since=_release(row.since),
        removed_in=_release(row.removed_in) if row.removed_in else None,
        deprecated_since=_release(row.deprecated_since) if row.deprecated_since else None,
        names=MappingProxyType({name: _release(since) for name, since in row.names.items()}),
        forms=forms,
        release=NEWEST,
        form=forms[-1],
    )


def _forms(rows: Sequence[_FormRow]) -> tuple[Form, ...]:
    said: dict[str, object] = {}
    forms = []
    for row in rows:
        said |= {name: value for name in row.__struct_fields__ if (value := getattr(row, name)) is not None}
        forms.append(msgspec.convert({**said, "since": _release(row.since)}, Form))
    return tuple(forms)


def _release(text: str) -> Release:
    found = Release.parse(text)
    if found is None:
        raise ValueError(f"{text!r} is no release")
    return found


TOPIC_CONFIGS: ConfigTable = _read_configs()
"""Every config of any release by name, in its newest form."""


def config_of(name: str) -> TopicConfig | None:
    """Return a config of any release, or of a vendor; None where there is none of this name."""
    return TOPIC_CONFIGS.get(name) or vendor_config(name)


@lru_cache(_VALUES_KEPT)
def vendor_config(name: str) -> TopicConfig | None:
    """Return a config of a vendor, whose values only its own brokers judge, beyond their type."""
    vendor, oldest = vendor_of(name), str(OLDEST)
    if vendor is None:
        return None
    form = _FormRow(oldest, default="", valid="", constraint=Constraint(kind="any"), broker_synonyms=())
    words = f"A config of {vendor.vendor}, whose brokers alone judge its values."
    kind = msgspec.convert(vendor.configs.get(name, "STRING"), ConfigType)
    return replace(_config(_ConfigRow(name, words, kind, oldest, (form,))), vendor=vendor.vendor)


@cache
def configs_of(release: Release) -> ConfigTable:
    """Return the configs of brokers of this release, or of ``NEWEST`` or ``OLDEST`` where it is beyond them."""
    known = max(OLDEST, min(release, NEWEST))
    return MappingProxyType(
        {
            name: replace(config, release=known, form=[form for form in config.forms if form.since <= known][-1])
            for name, config in TOPIC_CONFIGS.items()
            if config.since <= known and (config.removed_in is None or known < config.removed_in)
        }
    )


def parse(name: str, text: str) -> ConfigValue:
    """Return the value of ``text`` as a broker reads it: bool, int, float, str, or a tuple for a list.

    A value of the right type; ``config_checks.py`` asks whether brokers take it.

    Raises ``ConfigValueError``: no release has such a config, or the text is not of its type.
    """
    config = config_of(name)
    if config is None:
        raise ConfigValueError(f"Kafka has no topic config {name}")
    return typed(config, text)


def typed(config: TopicConfig, text: str) -> ConfigValue:
    """Parse as ``parse``, for this config."""
    text = _java_trim(text)
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


@lru_cache(_VALUES_KEPT)
def canonical(name: str, text: str) -> str:
    """Return the one spelling of the value of ``text``: equal exactly when a broker treats two values alike.

    Raises: ConfigValueError, as ``parse``.
    """
    value = parse(name, text)
    if isinstance(value, bool):
        return str(value).lower()
    if name == "cleanup.policy" and isinstance(value, tuple):
        return ",".join(sorted(set(value)))  # the log asks only whether a word is in it
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        shown = repr(value + 0.0)  # minus nought is nought
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(shown, shown)
    return str(value)


def canonical_written(name: str, text: str) -> str:
    """Spell as ``canonical``, what people write: with units, and without spellings that readers disagree about.

    Raises:
        AmbiguousNumberError: ``010``, ``1_000``, ``0x10``, ``1e3``, ``1:30`` for a whole number.
        UnknownUnitError: a unit that is not one of the config's.
        ConfigValueError: as ``parse``.
    """
    config = config_of(name)
    return canonical(name, text if config is None else without_unit(config, text))


def canonical_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return ``canonical_values`` of what a topic sets itself.

    An empty list of throttled replicas, which Kafka's tools leave behind, throttles nothing: it is no override.
    """
    return canonical_values({n: text for n, text in overrides.items() if text.strip() or n not in THROTTLE_LISTS})


def canonical_values(configs: Mapping[str, str]) -> dict[str, str]:
    """Return ``configs`` with canonical values; a name that no release has, or text that is not of its type, stays."""
    return {name: _canonical_or_raw(name, text) for name, text in configs.items()}


def min_insync_replicas(
    overrides: Mapping[str, str], broker_defaults: BrokerDefaults | None, brokers: Collection[int] | None = None
) -> int:
    """Return the topic's own value as brokers read it, else the largest default of a broker, else Kafka's, which is 1.

    Args:
        brokers: Those whose defaults count; None means all.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.9): the leader's own default counts.
    """
    own = own_min_insync_replicas(overrides)
    if own is not None:
        return own
    given = {
        defaults.get(MIN_ISR, "")
        for broker, defaults in (broker_defaults or {}).items()
        if not isinstance(defaults, str) and (brokers is None or broker in brokers)
    }
    found = (own_min_insync_replicas({MIN_ISR: default}) for default in given)
    return max((default for default in found if default is not None), default=1)


def needed_in_sync(least: int, replicas: int, releases: Releases | None) -> int:
    """Return how many replicas of a partition must be in sync, so that brokers take records with ``acks=all``.

    Args:
        least: The topic's ``min.insync.replicas``.
        releases: None: not known, and the stricter rule of older brokers counts.

    Source: kafka.cluster.Partition#effectiveMinIsr (3.7 and later).
    """
    return min(least, replicas) if caps_min_isr(releases) else least


def caps_min_isr(releases: Releases | None) -> bool:
    """Return whether all brokers take ``min.insync.replicas`` for no more than the number of replicas."""
    return releases is not None and releases.oldest >= CAPPED_MIN_ISR


def own_min_insync_replicas(configs: Mapping[str, str]) -> int | None:
    """Return the value among these configs as brokers read it, at most Kafka's largest ``int``; None without one."""
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
"""Most characters of a number, so that no text is slow to read. Kafka allows more, which people do not write."""


def _java_trim(text: str) -> str:
    """Trim as ``String.trim``: everything up to U+0020 goes, other blanks stay."""
    return text.strip("".join(map(chr, range(0x21))))


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


def _canonical_or_raw(name: str, text: str) -> str:
    try:
        return canonical(name, text)
    except ConfigValueError:
        return text


def without_unit(config: TopicConfig, text: str) -> str:
    """Return a whole number without its unit: ``604800000`` for ``7d``; any other text stays as it is.

    Raises as ``canonical_written``.
    """
    if not config.is_whole_number:
        return text
    text = _java_trim(text)
    _require_number_length(text)
    if AMBIGUOUS_NUMBER.fullmatch(text):
        raise AmbiguousNumberError("readers of YAML disagree about this number")
    found = _WITH_UNIT.fullmatch(text)
    if not found or config.unit is None:
        return text
    return str(times_unit(found, UNITS[config.unit]))


def times_unit(found: re.Match[str], units: Mapping[str, int]) -> int:
    """Return the whole number of a match of number and unit; see ``read_duration_ms`` for durations outside configs."""
    unit = found["unit"]
    if unit not in units or found["blank"]:
        raise UnknownUnitError(f"known units: {' '.join(units)}, right behind a whole number")
    if found["fraction"] or found["number"].startswith("-"):
        raise ConfigValueError("a unit goes with a whole number from 0 on; take a smaller unit")
    return int(found["number"]) * units[unit]


def local_retention(local: int, total: int) -> int:
    """Return what stays on the broker's own disk of a tiered topic: -2 there means as much as is kept in all.

    Source: org.apache.kafka.storage.internals.log.LogConfig#localRetentionMs, #localRetentionBytes (3.9).
    """
    return total if local == AS_TOTAL else local


def read_duration_ms(text: str) -> int:
    """Return milliseconds of ``30s``, ``2m`` and the like, which must have a unit.

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


def read_size(text: str) -> int:
    """Return the bytes of ``50MiB`` and the like; a number without a unit is bytes.

    Raises: AmbiguousNumberError, UnknownUnitError, ConfigValueError.
    """
    _require_number_length(text)
    if AMBIGUOUS_NUMBER.fullmatch(text):
        raise AmbiguousNumberError("readers of YAML disagree about this number")
    found = _WITH_UNIT.fullmatch(text)
    size = times_unit(found, UNITS["bytes"]) if found else _integer(text, bits=64)
    if not 0 <= size < 1 << 63:
        raise ConfigValueError("not a number of bytes from 0 on that 64 bits hold")
    return size
