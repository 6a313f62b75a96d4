"""Times from outside: of any zone and any year, and never an error of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from topicops.model.specs.spellings import in_utc, time_of_ms


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
