"""The table of many environments, for people and for programs."""

from __future__ import annotations

import json

from topicops.features.fleet.values import EnvironmentResult, FleetReport, Standing, fleet_markdown, fleet_text
from topicops.model.json_types import json_text

QUIET = EnvironmentResult(environment="prod-eu", result=Standing.UNCHANGED, counts={}, summary="No changes.")
HELD = EnvironmentResult(environment="a", result=Standing.HELD, summary="Plan: 1 to create.", counts={"create": 1})
DEAD = EnvironmentResult(
    environment="b",
    result=Standing.UNREACHABLE,
    counts={},
    summary="gone|\x1b[31m\nsecond line",
    code="TOP504",
    exit_status=1,
)
REPORT = FleetReport.of((QUIET, HELD, DEAD))


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
