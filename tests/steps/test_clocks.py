"""How this host's clock and a server's are compared."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from topicops.model.ports import Clock, ServerTime
from topicops.model.specs.environment import EnvironmentSpec
from topicops.steps.clocks import ahead_of, difference_text, passed_by_both, reached_by_either, rest_objection

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def told(at: datetime, *, asked: float = 100.0, answered: float = 101.0) -> ServerTime:
    return ServerTime(server="ZooKeeper", at=at, asked_at=asked, answered_at=answered)


def clock(utc: datetime, *, now: float = 101.0) -> Clock:
    return Clock(now=lambda: now, utc=lambda: utc)


def environment(cluster_class: str, rests_for: str = "PT24H") -> EnvironmentSpec:
    return msgspec.convert({"cluster": {"class": cluster_class}, "policy": {"restsFor": rests_for}}, EnvironmentSpec)


@pytest.mark.parametrize(
    ("utc", "now", "seconds"),
    [
        pytest.param(NOON, 101.0, 0, id="alike"),
        pytest.param(NOON + timedelta(seconds=1), 101.0, 0, id="within the time that the answer took"),
        pytest.param(NOON + timedelta(seconds=61), 101.0, 60, id="ahead"),
        pytest.param(NOON - timedelta(seconds=60), 101.0, -60, id="behind"),
        pytest.param(NOON + timedelta(seconds=600), 701.0, 0, id="ten minutes later"),
        pytest.param(NOON + timedelta(seconds=4201), 701.0, 3600, id="set an hour ahead since"),
    ],
)
def test_only_a_difference_that_is_certain_counts(utc: datetime, now: float, seconds: int) -> None:
    assert ahead_of(told(NOON), clock(utc, now=now)) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("ahead", "passed", "reached"),
    [
        pytest.param(3 * DAY, NOON, NOON + 6 * DAY, id="ahead"),
        pytest.param(-3 * DAY, NOON - 3 * DAY, NOON, id="behind"),
    ],
)
def test_what_waits_goes_by_the_earlier_clock_and_what_ends_by_none_that_is_younger(
    ahead: timedelta, passed: datetime, reached: datetime
) -> None:
    server, ours = told(NOON, asked=101.0), clock(NOON + ahead)

    assert (passed_by_both(server, ours), reached_by_either(server, ours)) == (passed, reached)
    assert (passed_by_both(None, ours), reached_by_either(None, ours)) == (NOON + ahead, NOON + ahead)


@pytest.mark.parametrize(
    ("server", "cluster_class", "rests_for", "begin"),
    [
        pytest.param(NOON, "production", "PT24H", None, id="alike"),
        pytest.param(NOON - 3 * DAY, "sandbox", "PT24H", "this host's clock is 3 days, 0:00:00 ahead", id="ahead"),
        pytest.param(NOON + 3 * DAY, "sandbox", "PT24H", "this host's clock is 3 days, 0:00:00 behind", id="behind"),
        pytest.param(NOON - DAY / 10, "production", "PT24H", None, id="a tenth"),
        pytest.param(NOON - DAY / 9, "production", "PT24H", "this host's clock is 2:40:00 ahead", id="over a tenth"),
        pytest.param(NOON - timedelta(seconds=5), "sandbox", "PT40S", "this host's clock is", id="a tenth of little"),
        pytest.param(NOON - 3 * DAY, "production", "PT0S", None, id="no time is compared"),
        pytest.param(None, "production", "PT24H", "no server tells its time", id="production without a server's time"),
        pytest.param(None, "production", "PT0S", None, id="production that compares no time"),
        pytest.param(None, "sandbox", "PT24H", None, id="a sandbox without a server's time"),
    ],
)
def test_a_rest_is_judged_only_by_clocks_that_agree(
    server: datetime | None, cluster_class: str, rests_for: str, begin: str | None
) -> None:
    found = rest_objection(
        told(server, asked=101.0) if server else None, clock(NOON), environment(cluster_class, rests_for)
    )

    assert found is None if begin is None else str(found).startswith(begin)
    assert found is None or "(TOP807)" in found


def test_both_times_are_named_where_they_differ_by_more_than_ten_seconds() -> None:
    differs = difference_text(told(NOON - timedelta(seconds=11), asked=101.0), clock(NOON))

    assert differs == (
        "this host's clock is 0:00:11 ahead of that of ZooKeeper: 2026-01-02T12:00:00Z here, "
        "2026-01-02T11:59:49Z there (TOP807)"
    )
    assert difference_text(told(NOON - timedelta(seconds=10), asked=101.0), clock(NOON)) == ""
    assert difference_text(None, clock(NOON)) == ""
