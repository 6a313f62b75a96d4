"""What a refused spelling can only have meant; None where a person has to decide."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from topicops.model.specs.spellings import (
    config_name_of_broker_setting,
    exact_word,
    human_unit,
    in_utc,
    known_unit,
    plain_number,
    time_of_ms,
    utc_time,
)
from topicops.model.specs.topic_config import TOPIC_CONFIGS, Unit


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("010", "10"),
        ("1_000", "1000"),
        ("-07", "-7"),
        ("+007d", "7d"),
        ("00", "0"),
        ("0x1f", None),
        ("1:30", None),
        ("1.5", None),
    ],
)
def test_digits_that_people_read_in_one_way_are_a_number(text: str, meant: str | None) -> None:
    assert plain_number(text) == meant


@pytest.mark.parametrize(
    ("text", "unit", "meant"),
    [
        ("7 days", "ms", "7d"),
        ("90 Minutes", "ms", "90m"),
        ("30sec", "ms", "30s"),
        ("5 gib", "bytes", "5GiB"),
        ("10 bytes", "bytes", "10B"),
        ("5GB", "bytes", None),
        ("5 M", "bytes", None),
        ("5 M", "ms", None),
        ("7 weeks", "ms", None),
        ("1.5 days", "ms", None),
        ("7d", "bytes", None),
    ],
)
def test_a_word_for_a_unit_is_that_unit(text: str, unit: Unit, meant: str | None) -> None:
    assert known_unit(text, unit) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2030-01-31T12:00:00+02:00", "2030-01-31T10:00:00Z"),
        ("2030-01-31 12:00Z", "2030-01-31T12:00:00Z"),
        ("2030-01-31t12:00:00.5z", "2030-01-31T12:00:00.500000Z"),
        ("2030-02-30T12:00:00Z", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("2030-01-31", None),
        ("2030-01-31T12:00:00", None),
        ("tomorrow", None),
    ],
)
def test_a_time_with_an_offset_is_a_time_in_utc(text: str, meant: str | None) -> None:
    assert utc_time(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [("Compact", "compact"), ("DELETE , compact", "delete,compact"), ("compct", None), ("compact,x", None), ("", None)],
)
def test_words_are_known_whatever_their_case(text: str, meant: str | None) -> None:
    assert exact_word(text, ("delete", "compact")) == meant


def test_a_broker_setting_leads_to_the_config_of_a_topic() -> None:
    assert config_name_of_broker_setting("log.retention.hours") == "retention.ms"
    assert config_name_of_broker_setting("message.max.bytes") == "max.message.bytes"
    assert config_name_of_broker_setting("no.such.setting") is None


@pytest.mark.parametrize(
    ("config", "canonical", "shown"),
    [
        ("retention.ms", "604800000", "7d"),
        ("retention.ms", "90000", "90s"),
        ("retention.ms", "1", None),
        ("retention.ms", "0", None),
        ("retention.ms", "-1", "no limit"),
        ("remote.copy.lag.ms", "-1", None),
        ("local.retention.ms", "-2", None),
        ("segment.bytes", "1073741824", "1GiB"),
        ("segment.bytes", "1000", None),
        ("flush.messages", "1000", None),
        ("cleanup.policy", "delete", None),
    ],
)
def test_a_number_is_shown_in_the_largest_unit_that_fits(config: str, canonical: str, shown: str | None) -> None:
    assert human_unit(TOPIC_CONFIGS[config], canonical) == shown


def test_a_time_with_a_zone_is_the_same_moment_in_utc() -> None:
    assert in_utc(datetime.fromisoformat("2026-05-01T02:00:00+02:00")) == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-05-01T00:00:00"])
def test_a_time_that_no_run_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time in UTC of the years 1900 to 2999"):
        in_utc(datetime.fromisoformat(text))


@pytest.mark.parametrize("ms", [2**63 - 1, -(2**63), 10**18])
def test_ms_of_no_calendar_are_no_time(ms: int) -> None:
    assert time_of_ms(ms) is None
    assert time_of_ms(1_700_000_000_123) == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
