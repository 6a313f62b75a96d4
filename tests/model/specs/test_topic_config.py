"""Topic configs read as a broker reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicops.model.release import USUAL, Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import (
    TOPIC_CONFIGS,
    AmbiguousNumberError,
    ConfigValue,
    ConfigValueError,
    TopicConfig,
    UnknownUnitError,
    canonical,
    canonical_overrides,
    canonical_written,
    configs_of,
    parse,
)

THROTTLE = "leader.replication.throttled.replicas"


def test_the_table_holds_the_40_configs_of_all_releases_36_of_them_of_kafka_3_9() -> None:
    assert len(TOPIC_CONFIGS) == 40
    assert len(configs_of(USUAL)) == 36
    assert [name for name, config in TOPIC_CONFIGS.items() if name != config.name] == []


def test_every_default_is_canonical() -> None:
    assert {name: canonical(name, config.default) for name, config in TOPIC_CONFIGS.items()} == {
        name: config.default for name, config in TOPIC_CONFIGS.items()
    }


RANGES = [config for config in configs_of(USUAL).values() if config.is_whole_number]


@pytest.mark.parametrize("config", RANGES, ids=lambda config: config.name)
def test_a_range_holds_its_ends_and_nothing_beyond(config: TopicConfig) -> None:
    limits = config.constraint
    inside = {limits.min, limits.max, int(config.default), *limits.also}
    outside = {limits.min - 1, limits.max + 1} - set(limits.also)

    assert {number for number in inside | outside if is_taken(config.name, str(number))} == inside


def is_taken(name: str, text: str) -> bool:
    return config_problem(name, text, USUAL) == ""


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("retention.ms", " 1000\n", 1000, id="trimmed"),
        pytest.param("retention.ms", "007", 7, id="leading zeros"),
        pytest.param("retention.ms", "+5", 5, id="plus sign"),
        pytest.param("retention.ms", "-1", -1, id="minus sign"),
        pytest.param("retention.ms", "\u0663", 3, id="a digit of another script"),
        pytest.param("preallocate", "TrUe", True, id="boolean in any case"),
        pytest.param("min.cleanable.dirty.ratio", ".5", 0.5, id="double without a zero"),
        pytest.param("min.cleanable.dirty.ratio", "0.5f", 0.5, id="double with Java's suffix"),
        pytest.param("min.cleanable.dirty.ratio", "0x1p-1", 0.5, id="hexadecimal double"),
        pytest.param("min.cleanable.dirty.ratio", "1e-400", 0.0, id="double too small to hold"),
        pytest.param("cleanup.policy", " delete ,\tcompact ", ("delete", "compact"), id="list with blanks"),
        pytest.param("cleanup.policy", "", (), id="empty list"),
        pytest.param("compression.type", " zstd ", "zstd", id="trimmed word"),
        pytest.param("compression.gzip.level", "-1", -1, id="allowed outside the range"),
        pytest.param(THROTTLE, "0:1,", ("0:1", ""), id="throttle list with an empty item"),
        pytest.param(THROTTLE, "*", ("*",), id="all replicas throttled"),
        pytest.param("message.format.version", "3.7-IV4", "3.7-IV4", id="release with IV"),
    ],
)
def test_a_value_is_read_as_kafka_reads_it(name: str, text: str, value: ConfigValue) -> None:
    assert parse(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", ""),
        ("retention.ms", "1.0"),
        ("retention.ms", "0x10"),
        ("retention.ms", "1_000"),
        ("retention.ms", "7d"),
        ("retention.ms", "-2"),
        ("retention.ms", "9223372036854775808"),
        ("retention.ms", "9" * 5000),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "13"),
        ("preallocate", "yes"),
        ("preallocate", ""),
        ("min.cleanable.dirty.ratio", "Infinity"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "1_0"),
        ("min.cleanable.dirty.ratio", "0x1p999999"),
        ("cleanup.policy", "delete,"),
        ("cleanup.policy", "DELETE"),
        ("compression.type", "GZIP"),
        ("compression.gzip.level", "0"),
        (THROTTLE, "*,*"),
        (THROTTLE, "100:"),
        (THROTTLE, "100: 0"),
        ("message.format.version", ""),
        ("message.format.version", "4.0"),
        ("no.such.config", "1"),
    ],
)
def test_a_value_that_a_broker_refuses_is_refused(name: str, text: str) -> None:
    assert not is_taken(name, text)


@pytest.mark.parametrize(
    ("name", "text"), [("retention.ms", ""), ("retention.ms", "7d"), ("preallocate", "yes"), ("no.such.config", "1")]
)
def test_a_value_of_another_type_is_not_read(name: str, text: str) -> None:
    with pytest.raises(ConfigValueError):
        parse(name, text)


@pytest.mark.parametrize(
    ("name", "text"), [("segment.bytes", "13"), ("retention.ms", "-2"), ("compression.type", "brotli")]
)
def test_a_value_that_no_release_takes_is_still_read_where_it_is_live(name: str, text: str) -> None:
    """``segment.bytes: 1000`` was set before the upgrade to a release that refuses it, and is compared as a number."""
    assert canonical(name, f" {text} ") == text
    assert canonical_overrides({name: f" {text} "}) == {name: text}


@pytest.mark.parametrize(
    ("name", "text", "release", "problem"),
    [
        ("segment.bytes", "1000", Release(4, 0), ""),
        ("segment.bytes", "1000", Release(4, 1), "Kafka 4.1 takes 1048576 or more"),
        ("compression.type", "zstd", Release(2, 1), ""),
        ("compression.type", "zstd", Release(2, 0), "Kafka 2.0 takes one of uncompressed, snappy, lz4, gzip, producer"),
        ("message.format.version", "2.5", Release(1, 1), "Kafka 1.1 knows no release of that name"),
        ("min.insync.replicas", "0", Release(1, 1), "at least 1"),
        ("compression.gzip.level", "0", Release(3, 9), "from 1 to 9 or -1"),
        ("compression.gzip.level", "9", Release(3, 7), "compression.gzip.level comes with Kafka 3.8"),
        (
            "message.downconversion.enable",
            "true",
            Release(4, 1),
            "message.downconversion.enable is gone since Kafka 4.0",
        ),
        ("no.such.config", "1", Release(3, 9), "Kafka has no topic config no.such.config"),
    ],
)
def test_a_problem_names_the_release_where_releases_differ(
    name: str, text: str, release: Release, problem: str
) -> None:
    assert config_problem(name, text, release) == problem


def test_not_a_number_passes_the_range_check_as_it_does_in_kafka() -> None:
    assert canonical("min.cleanable.dirty.ratio", "NaN") == "NaN"


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("retention.ms", " 1000 ", "001000"),
        ("preallocate", "FALSE", "false"),
        ("cleanup.policy", "delete , compact", "compact,delete"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("min.cleanable.dirty.ratio", "0.50", "5e-1"),
    ],
)
def test_two_spellings_of_one_value_have_one_canonical_text(name: str, one: str, other: str) -> None:
    assert canonical(name, one) == canonical(name, other)


@given(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=12) | st.integers().map(str) | st.floats().map(str))
def test_canonical_text_is_its_own_canonical_text(name: str, text: str) -> None:
    try:
        once = canonical(name, text)
    except ConfigValueError:
        return
    assert canonical(name, once) == once


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "90m", "5400000"),
        ("retention.ms", "250ms", "250"),
        ("retention.ms", "0s", "0"),
        ("retention.ms", "106751991167d", "9223372036828800000"),
        ("retention.bytes", "10GiB", "10737418240"),
        ("retention.bytes", "2TiB", "2199023255552"),
        ("segment.bytes", "1048576B", "1048576"),
        ("segment.bytes", " 1MiB ", "1048576"),
        ("flush.messages", "10", "10"),
        ("retention.ms", "-1", "-1"),
        ("cleanup.policy", "compact", "compact"),
    ],
)
def test_people_may_write_units(name: str, text: str, expected: str) -> None:
    assert canonical_written(name, text) == expected


@pytest.mark.parametrize("text", ["010", "00", "-07", "1_000", "0x10", "0o17", "0b1", "1e3", "1.5E3", "1:30", "007d"])
def test_a_number_that_readers_of_yaml_disagree_about_is_refused_from_people(text: str) -> None:
    with pytest.raises(AmbiguousNumberError):
        canonical_written("retention.ms", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "7 days"),
        ("retention.ms", "7w"),
        ("retention.ms", "7 d"),
        ("retention.ms", "7D"),
        ("retention.ms", "1GiB"),
        ("retention.bytes", "5GB"),
        ("retention.bytes", "1d"),
        ("retention.bytes", "1kib"),
    ],
)
def test_a_foreign_unit_is_told_from_a_bad_number(name: str, text: str) -> None:
    with pytest.raises(UnknownUnitError):
        canonical_written(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "1.5h"),
        ("retention.ms", "-1d"),
        ("retention.ms", "106751991168d"),
        ("flush.messages", "10k"),
        ("retention.ms", "forever"),
        ("retention.ms", "9" * 5000 + "d"),
    ],
)
def test_a_unit_does_not_make_every_number_valid(name: str, text: str) -> None:
    with pytest.raises(ConfigValueError) as caught:
        canonical_written(name, text)
    assert type(caught.value) is ConfigValueError


def test_overrides_that_kafka_cannot_read_keep_their_raw_text() -> None:
    live = {"retention.ms": " 1000 ", "preallocate": "maybe", "from.the.future": "X"}

    assert canonical_overrides(live) == {"retention.ms": "1000", "preallocate": "maybe", "from.the.future": "X"}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("0.8.2", True),
        ("0.10.0", True),
        ("0.10.0-IV1", True),
        ("0.10.0-IV2", False),
        ("3.7.1", True),
        ("3.9-IV0", True),
        ("4.0-IV1", True),
        ("4.0", False),
        ("3.9-IV", False),
        ("9.9", False),
    ],
)
def test_release_names_are_those_of_a_3_9_broker(text: str, known: bool) -> None:
    assert is_taken("message.format.version", text) is known
