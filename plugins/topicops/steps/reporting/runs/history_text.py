"""The history as text and JSON: when differences and failing rules began and ended, and what became of a topic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypedDict

from topicops.model.json_types import FormatVersion, Time
from topicops.model.plans.delta import TopicClass
from topicops.model.printable import or_not_set, plural, printable
from topicops.model.runs.history import PastOutcome, RunPoint, Span, SpansFound, TopicHistory
from topicops.steps.reporting.json_text import json_text

FORMAT_VERSION = "1.0"
_AS_A_WHOLE = {
    TopicClass.MISSING.value: "described in a file, but not live",
    TopicClass.TOMBSTONED.value: "live, although a tombstone deletes it",
    TopicClass.UNMANAGED.value: "live, but no file describes it",
}


class RunPointJson(TypedDict):
    run: str
    at: Time
    commit: str | None


class TimesJson(TypedDict):
    began: RunPointJson
    last: RunPointJson
    ended: RunPointJson | None
    """None while it lasts."""
    runs: int


_Class = TypedDict("_Class", {"class": str | None})


class DifferenceJson(_Class, TimesJson):
    topic: str | None
    field: str | None
    desired: str | None
    live: str | None
    owner: str | None


class FailingRuleJson(TimesJson):
    suite: str
    rule: str | None
    severity: str | None
    rows_failed: int | None


class UnhealthyJson(TimesJson):
    suite: str
    rule: str | None
    partition: int | None
    shown: Mapping[str, object]


class OutcomeJson(TypedDict):
    run: str
    at: Time
    action: str
    status: str
    message: str


class _Head(TypedDict):
    format_version: FormatVersion
    environment: str
    since: Time | None


class DifferencesJson(_Head):
    differences: Sequence[DifferenceJson]


class FailingRulesJson(_Head):
    failing: Sequence[FailingRuleJson]


class TopicHistoryJson(TypedDict):
    format_version: FormatVersion
    environment: str
    topic: str
    differences: Sequence[DifferenceJson]
    unhealthy: Sequence[UnhealthyJson]
    outcomes: Sequence[OutcomeJson]


def differences_text(found: SpansFound) -> str:
    """Three lines for each difference, then the counts."""
    lines = [line for span in found.spans for line in _difference_lines(span)]
    return "\n".join([*lines, *([""] if lines else []), _counts(found, "difference")])


def differences_json(found: SpansFound) -> str:
    return json_text(DifferencesJson(**_head(found), differences=[_difference_json(span) for span in found.spans]))


def failing_rules_text(found: SpansFound) -> str:
    """Three lines for each time in which a rule failed, then the counts."""
    lines = [line for span in found.spans for line in _rule_lines(span)]
    return "\n".join([*lines, *([""] if lines else []), _counts(found, "failing rule")])


def failing_rules_json(found: SpansFound) -> str:
    return json_text(FailingRulesJson(**_head(found), failing=[_rule_json(span) for span in found.spans]))


def topic_history_text(found: TopicHistory) -> str:
    return "\n".join([*_topic_lines(found)] or [f"The history of {found.environment} has nothing about this topic."])


def topic_history_json(found: TopicHistory) -> str:
    history: TopicHistoryJson = {
        "format_version": FORMAT_VERSION,
        "environment": found.environment,
        "topic": found.topic,
        "differences": [_difference_json(span) for span in found.differences],
        "unhealthy": [_unhealthy_json(span) for span in found.unhealthy],
        "outcomes": [_outcome_json(outcome) for outcome in found.outcomes],
    }
    return json_text(history)


def _topic_lines(found: TopicHistory) -> Iterator[str]:
    for span in found.differences:
        yield from _difference_lines(span)
    for span in found.unhealthy:
        rule, _, partition = span.key
        place = f"partition {partition}" if partition is not None else "the topic"
        yield f"{place} breaks rule {printable(f'{rule} ({span.lane} the changes)')}"
        yield from _times(span)
    for outcome in found.outcomes:
        message = f" ({outcome.message})" if outcome.message else ""
        yield printable(f"{_time(outcome.at)} {outcome.action}: {outcome.status}{message}, run {outcome.run}")


def _difference_lines(span: Span) -> Iterator[str]:
    topic, topic_class, field, desired, live = span.key
    name = (field or "").removeprefix("configs.")
    values = f"{name}: {or_not_set(desired)} in the files, {or_not_set(live)} live"
    owner = f" (owner {span.detail})" if span.detail else ""
    yield printable(f"{topic}: {values if field else _AS_A_WHOLE.get(topic_class or '', topic_class)}{owner}")
    yield from _times(span)


def _rule_lines(span: Span) -> Iterator[str]:
    rule, severity = span.key
    yield printable(f"{rule} ({severity}), {span.lane} the changes: {span.detail} rows failed in the last of its runs")
    yield from _times(span)


def _times(span: Span) -> Iterator[str]:
    yield f"  began {_point(span.began)}"
    yield f"  ended {_point(span.ended)}" if span.ended else f"  still so {_point(span.last)}"


def _point(point: RunPoint) -> str:
    return printable(f"{_time(point.at)}, run {point.run}, commit {(point.commit or 'none')[:12]}")


def _counts(found: SpansFound, noun: str) -> str:
    lasting = sum(span.ended is None for span in found.spans)
    since = f" since {_time(found.since)}" if found.since else ""
    if not found.spans:
        return f"No {noun}{since}."
    return f"{plural(len(found.spans), noun)}{since}: {len(found.spans) - lasting} ended, {lasting} still there."


def _head(found: SpansFound) -> _Head:
    since = _time(found.since) if found.since else None
    return {"format_version": FORMAT_VERSION, "environment": found.environment, "since": since}


def _difference_json(span: Span) -> DifferenceJson:
    topic, topic_class, field, desired, live = span.key
    return {
        "topic": topic,
        "class": topic_class,
        "field": field or None,
        "desired": desired,
        "live": live,
        "owner": span.detail,
        **_times_json(span),
    }


def _rule_json(span: Span) -> FailingRuleJson:
    rule, severity = span.key
    failed = int(span.detail) if span.detail is not None else None
    return {"suite": span.lane, "rule": rule, "severity": severity, "rows_failed": failed, **_times_json(span)}


def _unhealthy_json(span: Span) -> UnhealthyJson:
    rule, _, partition = span.key
    return {
        "suite": span.lane,
        "rule": rule,
        "partition": int(partition) if partition is not None else None,
        "shown": json.loads(span.detail or "{}"),
        **_times_json(span),
    }


def _times_json(span: Span) -> TimesJson:
    ended = _point_json(span.ended) if span.ended else None
    return {"began": _point_json(span.began), "last": _point_json(span.last), "ended": ended, "runs": span.runs}


def _point_json(point: RunPoint) -> RunPointJson:
    return {"run": point.run, "at": _time(point.at), "commit": point.commit}


def _outcome_json(outcome: PastOutcome) -> OutcomeJson:
    return {
        "run": outcome.run,
        "at": _time(outcome.at),
        "action": outcome.action,
        "status": outcome.status,
        "message": outcome.message,
    }


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
