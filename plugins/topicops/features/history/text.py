"""The answers of the history as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from topicops.features.history.asking import History, drift_since
from topicops.features.history.lines import Difference, FailingRule, Trouble, UnhealthyTopic
from topicops.features.history.spans import RunPoint, Span
from topicops.model.json_types import json_text
from topicops.model.plans.delta import TopicClass
from topicops.model.printable import or_not_set, plural, printable

_AS_A_WHOLE = {
    TopicClass.MISSING.value: "described in a file, but not live",
    TopicClass.TOMBSTONED.value: "live, although a tombstone deletes it",
    TopicClass.UNMANAGED.value: "live, but no file describes it",
}


def spans_text(found: History, noun: str) -> str:
    """Three lines for each trouble, then how many of ``noun`` there are."""
    lines = [line for span in found.spans for line in _span_lines(span)]
    return "\n".join([*lines, *([""] if lines else []), _counts(found, noun)])


def shown_drift_since(
    environment: str, since: str, only: str | None, *, as_json: bool
) -> tuple[str, Sequence[str], bool]:
    """Return when each difference began and ended, warnings, and whether a difference is still there."""
    found = drift_since(environment, since, only=only)
    text = json_text(found) if as_json else spans_text(found, "difference")
    return text, found.left_out, any(span.ended is None for span in found.spans)


def topic_text(found: History) -> str:
    """Three lines for each trouble of a topic, then one for each change of it."""
    lines = [line for span in found.spans for line in _span_lines(span)]
    for outcome in found.outcomes:
        message = f" ({outcome.message})" if outcome.message else ""
        lines.append(printable(f"{_time(outcome.at)} {outcome.action}: {outcome.status}{message}, run {outcome.run}"))
    return "\n".join(lines) or f"The history of {found.environment} has nothing about this topic."


def _span_lines(span: Span) -> Iterator[str]:
    yield printable(_sentence(span.what))
    yield f"  began {_point(span.began)}"
    yield f"  ended {_point(span.ended)}" if span.ended else "  still there"


def _sentence(trouble: Trouble) -> str:
    match trouble:
        case Difference(field=None):
            return f"{trouble.topic}: {_AS_A_WHOLE.get(trouble.topic_class, trouble.topic_class)}{_owner(trouble)}"
        case Difference():
            name = (trouble.field or "").removeprefix("configs.")
            values = f"{or_not_set(trouble.desired)} in the files, {or_not_set(trouble.live)} live"
            return f"{trouble.topic}: {name}: {values}{_owner(trouble)}"
        case FailingRule():
            rows = plural(trouble.rows_failed, "row")
            return f"{trouble.rule} ({trouble.severity}), {trouble.suite} the changes: {rows} failed when it began"
        case UnhealthyTopic():
            place = "the topic" if trouble.partition is None else f"partition {trouble.partition}"
            return f"{place} breaks rule {trouble.rule} ({trouble.suite} the changes)"


def _owner(difference: Difference) -> str:
    return f" (owner {difference.owner})" if difference.owner else ""


def _point(point: RunPoint) -> str:
    return printable(f"{_time(point.at)}, run {point.run}, commit {(point.commit or 'none')[:12]}")


def _counts(found: History, noun: str) -> str:
    lasting = sum(span.ended is None for span in found.spans)
    since = f" since {_time(found.since)}" if found.since else ""
    if not found.spans:
        return f"No {noun}{since}."
    seen = f" at {_time(found.newest.at)}" if lasting and found.newest else ""
    return f"{plural(len(found.spans), noun)}{since}: {len(found.spans) - lasting} ended, {lasting} still there{seen}."


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
