"""Times that come from outside: with any zone, and of any year."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from topicops.model.errors import UsageError
from topicops.model.specs.topic_config import ConfigValueError, read_duration_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = range(1900, 3000)
"""A time outside of these is no time of a run or a review, and its sum with a duration may be in no calendar."""


def in_utc(time: datetime) -> datetime:
    """Return the same moment in UTC.

    Raises:
        ValueError: The time has no zone, or is of a year that no run has.
    """
    if time.tzinfo is None or time.year not in _YEARS:
        raise ValueError(f"{time.isoformat()} is no time in UTC of the years {_YEARS[0]} to {_YEARS[-1]}")
    return time.astimezone(UTC)


def time_of_ms(ms: int) -> datetime | None:
    """Return the time that is this many ms after 1970; None where no calendar has it."""
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None


def since_time(text: str, at: datetime) -> datetime:
    """Return the time that ``7d`` before ``at`` is, or the time itself. Raises ``UsageError``."""
    try:
        return at - timedelta(milliseconds=read_duration_ms(text))
    except (ConfigValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--since {text}: write 36h, 7d, 2026-01-31 or 2026-01-31T08:00:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=at.tzinfo)
