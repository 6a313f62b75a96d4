"""Schedules in words: which are taken, and when ``every`` begins."""

from __future__ import annotations

from itertools import pairwise

import pytest
from croniter import croniter

from topicops.model.specs.schedules import AIRFLOW_WORDS, cron_of, schedule_problem

EVERY = ("every 1m", "every 5m", "every 30m", "every 60m", "every 1h", "every 6h", "every 24h", "every 1d")


@pytest.mark.parametrize(
    "written", [*AIRFLOW_WORDS, "none", *EVERY, "0 6 * * *", "*/15 8-18 * * mon-fri", "0,30 0-23/2 1 JAN 7"]
)
def test_a_schedule_is_taken(written: str) -> None:
    assert schedule_problem(written) is None


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("hourly", "'hourly' is no schedule"),
        ("every 7m", "must divide an hour or a day"),
        ("every 36h", "must divide an hour or a day"),
        ("every 2d", "must divide an hour or a day"),
        ("every 0m", "is no schedule"),
        ("60 * * * *", "'60' is no minute"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 0 0 * *", "'0' is no day of the month"),
        ("0 0 * 13 *", "'13' is no month"),
        ("0 0 * * fry", "'fry' is no day of the week"),
        ("0 18-8 * * *", "'18-8' is no hour"),
        ("0 0 * *", "is no schedule"),
        ("", "is no schedule"),
    ],
)
def test_what_is_no_schedule_says_why(written: str, problem: str) -> None:
    assert problem in str(schedule_problem(written))
    with pytest.raises(ValueError, match="write `every 5m`"):
        cron_of(written, "local")


@pytest.mark.parametrize("written", EVERY)
@pytest.mark.parametrize("environment", ["local", "prod-eu", "prod-us"])
def test_every_becomes_a_cron_that_fires_so_often(written: str, environment: str) -> None:
    minutes = int(written[6:-1]) * {"m": 1, "h": 60, "d": 1440}[written[-1]]
    times = croniter(str(cron_of(written, environment)), 1_800_000_000)
    fired = [times.get_next(float) for _ in range(50)]
    assert {late - early for early, late in pairwise(fired)} == {minutes * 60.0}


def test_twenty_environments_start_at_many_minutes_and_each_always_at_its_own() -> None:
    names = [f"cluster-{number}" for number in range(20)]
    crons = [cron_of("every 1h", name) for name in names]
    assert len(set(crons)) > 12
    assert crons == [cron_of("every 1h", name) for name in names]


def test_a_cron_stays_as_a_person_wrote_it_and_none_is_no_schedule() -> None:
    assert cron_of("0 6 * * *", "local") == "0 6 * * *"
    assert cron_of("@daily", "local") == "@daily"
    assert cron_of("none", "local") is None
