"""How many environments end as one: each has one standing, and the worst exit status is that of all."""

from __future__ import annotations

import json

import pytest

from topicops.features.fleet.values import (
    BROKEN,
    PENDING,
    EnvironmentResult,
    FleetReport,
    Standing,
    fleet_markdown,
    fleet_text,
    worst,
)
from topicops.model.errors import (
    ClusterUnreachableError,
    ExitStatus,
    LoginRefusedError,
    ShrunkenWorldError,
    SpecError,
    UndecodableZnodeError,
    UnsupportedTargetError,
)
from topicops.model.json_types import json_text


def result(standing: Standing, exit_status: int = 0) -> EnvironmentResult:
    return EnvironmentResult(
        environment=standing.value, result=standing, counts={}, summary="", exit_status=exit_status
    )


@pytest.mark.parametrize(
    ("error", "standing", "exit_status"),
    [
        (SpecError(()), Standing.INVALID, 1),
        (ClusterUnreachableError("gone"), Standing.UNREACHABLE, 1),
        (UnsupportedTargetError("KRaft"), Standing.WRONG_CLUSTER, 8),
        (ShrunkenWorldError("fewer"), Standing.WRONG_CLUSTER, 8),
        (LoginRefusedError("no"), Standing.FAILED, 1),
        (UndecodableZnodeError("/a", "damaged"), Standing.FAILED, 1),
        (KeyError("a mistake of ours"), Standing.FAILED, 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_error_is_a_standing_with_the_exit_status_of_its_own_run(
    error: Exception, standing: Standing, exit_status: int
) -> None:
    failed = EnvironmentResult.failed("prod", error)
    assert (failed.result, failed.exit_status) == (standing, exit_status)
    assert str(error) in failed.summary


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((0, 2, 0), ExitStatus.CHANGES_PENDING),
        ((2, 7), ExitStatus.NOT_VERIFIED),
        ((7, 1, 2), ExitStatus.ERROR),
        ((1, 8, 7), ExitStatus.WRONG_CLUSTER),
        ((0, 0), ExitStatus.SUCCESS),
        ((0, 6), ExitStatus.PARTLY_DONE),
    ],
)
def test_the_worst_status_is_that_of_the_whole(statuses: tuple[int, ...], expected: ExitStatus) -> None:
    assert worst(map(ExitStatus, statuses)) is expected


def test_each_environment_is_counted_once_in_the_order_of_the_standings() -> None:
    found = (Standing.UNREACHABLE, Standing.HELD, Standing.UNCHANGED, Standing.HELD)
    report = FleetReport.of([*map(result, found)])
    assert list(report.counts.items()) == [(Standing.UNCHANGED, 1), (Standing.HELD, 2), (Standing.UNREACHABLE, 1)]
    assert [broken.result for broken in report.broken] == [Standing.UNREACHABLE]
    assert PENDING & report.counts.keys()


def test_no_standing_is_both_broken_and_pending() -> None:
    assert not BROKEN & PENDING


UNCHANGED = EnvironmentResult(environment="prod-eu", result=Standing.UNCHANGED, counts={}, summary="No changes.")
HELD = EnvironmentResult(environment="a", result=Standing.HELD, summary="Plan: 1 to create.", counts={"create": 1})
DEAD = EnvironmentResult(
    environment="b",
    result=Standing.UNREACHABLE,
    counts={},
    summary="gone|\x1b[31m\nsecond line",
    code="TOP504",
    exit_status=1,
)
REPORT = FleetReport.of((UNCHANGED, HELD, DEAD))


def test_the_summary_begins_with_the_best_news() -> None:
    assert REPORT.summary == "1 of 3 environments without changes, 1 held, 1 unreachable."
    assert FleetReport.of((DEAD,)).summary == "1 of 1 environments unreachable."


def test_a_row_is_one_printable_line() -> None:
    assert fleet_text(REPORT).splitlines() == [
        "environment  result",
        "prod-eu      No changes.",
        "a            Plan: 1 to create.",
        "b            TOP504: gone|\\x1b[31m",
        "",
        "1 of 3 environments without changes, 1 held, 1 unreachable.",
    ]


def test_markdown_escapes_what_would_break_the_table() -> None:
    rows = fleet_markdown(REPORT).splitlines()
    assert rows[:3] == ["| environment | result |", "| --- | --- |", "| prod-eu | No changes. |"]
    assert rows[4].count(" | ") == 1
    assert "\x1b" not in rows[4]


def test_json_has_the_whole_text_and_every_environment() -> None:
    found = json.loads(json_text(REPORT))
    assert (found["exit_status"], found["counts"]) == (1, {"without changes": 1, "held": 1, "unreachable": 1})
    assert found["environments"][2] == {
        "environment": "b",
        "result": "unreachable",
        "summary": "gone|\x1b[31m\nsecond line",
        "code": "TOP504",
        "exit_status": 1,
        "counts": {},
        "path": None,
        "fingerprint": None,
    }
