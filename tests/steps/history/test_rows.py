"""The rows that a run leaves in the history, and what a reader sees of spans."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from fakes.builders import environment
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.history import DIFFERENCES, LaneRun, RunPoint, Sighting, Span, SpansFound, TopicHistory
from topicops.model.runs.results import FailingRow, QualityReport, QualityResult
from topicops.steps.history.rows import delta_rows, quality_rows, unhealthy_rows
from topicops.steps.history.spans import ordered_lanes, spans
from topicops.steps.history.table_rows import lane_runs
from topicops.steps.reporting.runs.history_text import differences_text, failing_rules_text, topic_history_text

AT = datetime(2026, 11, 22, 9, tzinfo=UTC)


def found(topic: str, topic_class: TopicClass, *changed: str, **sides: DesiredRow | LiveRow) -> TopicDelta:
    return TopicDelta(topic=topic, presence="both", topic_class=topic_class, changed=frozenset(changed), **sides)  # type: ignore[arg-type]


def test_each_field_that_differs_is_a_row_with_both_values_and_the_owner() -> None:
    desired = DesiredRow("t", "present", 6, 3, "a", json.dumps({"x": "1", "y": "2"}), "team")
    live = LiveRow("t", 4, 2, 3, "b", json.dumps({"y": "3", "z": "4"}))
    changed = ("partitions", "replication_factor", "assignment", "configs")
    delta = Delta(topics=(found("t", TopicClass.DIFFERENT, *changed, desired=desired, live=live),), counts={})

    rows = [(row.field, row.desired, row.live, row.owner) for row in delta_rows(delta, environment())]

    assert rows == [
        ("partitions", "6", "4", "team"),
        ("replicationFactor", "3", "2 to 3", "team"),
        ("assignment", "a", "b", "team"),
        ("configs.x", "1", None, "team"),
        ("configs.y", "2", "3", "team"),
        ("configs.z", None, "4", "team"),
    ]


def test_paused_and_protected_topics_are_left_out() -> None:
    names = [("p", TopicClass.PAUSED), ("__consumer_offsets", TopicClass.UNMANAGED), ("u", TopicClass.UNMANAGED)]
    names += [("m", TopicClass.MISSING), ("t", TopicClass.TOMBSTONED)]
    delta = Delta(topics=tuple(found(name, word) for name, word in names), counts={})

    rows = [(row.topic, row.topic_class, row.field) for row in delta_rows(delta, environment())]

    assert rows == [("u", "unmanaged", ""), ("m", "missing", ""), ("t", "tombstoned", "")]


def test_a_broken_rule_is_a_row_and_so_is_each_partition_that_it_names() -> None:
    example = FailingRow(row={"topic": "t", "partition": 3, "isr": [1]}, was_so_before=True)
    whole = FailingRow(row={"brokers": 2})
    bad = QualityResult(
        rule="Q12",
        title="",
        severity="warning",
        success=False,
        rows_checked=9,
        rows_failed=2,
        examples=(example, whole),
    )
    report = QualityReport(
        suite="after", environment="e", cluster_id="c", run="r", checked_at=AT, seconds=1, results=(bad,)
    )

    [rule], [row] = quality_rows([report]), unhealthy_rows([report])

    assert (rule.suite, rule.rule, rule.success, rule.rows_failed) == ("after", "Q12", False, 2)
    assert (row.topic, row.partition, row.shown, row.so_before) == ("t", 3, '{"isr": [1]}', True)


def run(number: int) -> LaneRun:
    return LaneRun("", f"cli/{number}", AT, AT + timedelta(hours=number), f"{number}" * 40)


def test_a_run_without_the_difference_ends_a_span_and_the_same_values_begin_another() -> None:
    seen = [Sighting("", f"cli/{number}", AT, ("t",), "team") for number in (1, 2, 4)]

    first, second = spans(ordered_lanes(map(run, range(5))), seen)

    assert (first.began.run, first.last.run, first.ended and first.ended.run, first.runs) == (
        "cli/1",
        "cli/2",
        "cli/3",
        2,
    )
    assert (second.began.run, second.ended) == ("cli/4", None)


def test_a_run_that_compared_nothing_ends_no_span() -> None:
    values = [("cli/1", AT, AT, None, True, False, False), ("cli/2", AT, None, None, False, False, False)]
    assert [run.run for run in lane_runs(DIFFERENCES, values)] == ["cli/1"]


def span(*key: str | None, lane: str = "", ended: bool = False) -> Span:
    began = RunPoint("cli/1", AT, "c" * 40)
    end = RunPoint("cli/3\x1b", AT + timedelta(hours=1), None)
    return Span(lane, key, "7", began, began, end if ended else None, 1)


def test_the_texts_name_values_runs_and_times_without_control_characters() -> None:
    difference = span("t", "different", "configs.retention.ms", "1", None, ended=True)
    rule = span("Q12", "warning", lane="after")
    lines = ["  began 2026-11-22T09:00:00Z, run cli/1, commit cccccccccccc"]

    def given(*spans: Span) -> SpansFound:
        return SpansFound(environment="e", since=None, spans=spans, warnings=())

    assert differences_text(given(difference)).splitlines() == [
        "t: retention.ms: 1 in the files, not set live (owner 7)",
        *lines,
        "  ended 2026-11-22T10:00:00Z, run cli/3\\x1b, commit none",
        "",
        "1 difference: 1 ended, 0 still there.",
    ]
    assert failing_rules_text(given(rule)).splitlines() == [
        "Q12 (warning), after the changes: 7 rows failed in the last of its runs",
        *lines,
        "  still so 2026-11-22T09:00:00Z, run cli/1, commit cccccccccccc",
        "",
        "1 failing rule: 0 ended, 1 still there.",
    ]
    assert differences_text(given()) == "No difference."
    nothing = TopicHistory(environment="e", topic="t", differences=(), unhealthy=(), outcomes=(), warnings=())
    assert topic_history_text(nothing) == "The history of e has nothing about this topic."
