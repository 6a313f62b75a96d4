"""Ask the history: when troubles began and ended, and what became of a topic; the answers as values and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from topicops.features.ask.history.file import read_history
from topicops.features.ask.history.lines import (
    Difference,
    FailingRule,
    RunPoint,
    Span,
    TopicOutcome,
    Trouble,
    UnhealthyTopic,
    in_order,
    spans_of,
)
from topicops.flow.runs.run import home_folder, now
from topicops.model.json_types import FormatVersion, json_text
from topicops.model.plans.delta import TopicClass
from topicops.model.printable import or_not_set, plural, printable
from topicops.steps.clocks import since_time

_AS_A_WHOLE = {
    TopicClass.MISSING.value: "described in a file, but not live",
    TopicClass.TOMBSTONED.value: "live, although a tombstone deletes it",
    TopicClass.UNMANAGED.value: "live, but no file describes it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome(TopicOutcome):
    """A change of a topic that a run had to make."""

    run: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the history has of a question."""

    environment: str
    since: datetime | None = None
    """Time before which no trouble of the answer ended; None means the whole history."""
    newest: RunPoint | None
    """Last run that looked for troubles; None means that none did."""
    spans: Sequence[Span]
    """Spans by trouble, then by time."""
    outcomes: Sequence[PastOutcome] = ()
    """Outcomes of the topic that was asked about, oldest first."""
    left_out: Sequence[str]
    format_version: FormatVersion = "1.0"


def quality_since(environment: str, since: str | None) -> History:
    """Say when each quality rule began to fail and held again."""
    return _answer(environment, lambda trouble: isinstance(trouble, FailingRule), since=since)


def topic_history(environment: str, topic: str) -> History:
    """Give all that the history has of a topic."""
    return _answer(
        environment, lambda trouble: not isinstance(trouble, FailingRule) and trouble.topic == topic, topic=topic
    )


def _answer(
    environment: str, is_asked: Callable[[Trouble], bool], *, since: str | None = None, topic: str | None = None
) -> History:
    """Ask the history. Raises ``UsageError`` if the environment has none, or ``since`` cannot be read."""
    after = since_time(since, now()) if since else None
    lines, left_out = read_history(home_folder(), environment)
    known = spans_of(lines)
    spans = [
        span
        for span in (*known.ended, *known.open.values())
        if is_asked(span.what) and not (after and span.ended and span.ended.at < after)
    ]
    first_at = {(line.run, o): line.recorded_at for line in reversed(lines) for o in line.outcomes if o.topic == topic}
    outcomes = [PastOutcome(run=run, at=at, **asdict(outcome)) for (run, outcome), at in first_at.items()]
    return History(
        environment=environment,
        since=after,
        newest=known.newest,
        spans=in_order(spans),
        outcomes=sorted(outcomes, key=lambda outcome: outcome.at),
        left_out=left_out,
    )


def spans_text(found: History, noun: str) -> str:
    """Three lines for each trouble, then how many of ``noun`` there are."""
    since = f" since {_time(found.since)}" if found.since else ""
    if not found.spans:
        return f"No {noun}{since}."
    lasting = sum(span.ended is None for span in found.spans)
    seen = f" at {_time(found.newest.at)}" if lasting and found.newest else ""
    counts = f"{len(found.spans) - lasting} ended, {lasting} still there{seen}"
    lines = [line for span in found.spans for line in _span_lines(span)]
    return "\n".join([*lines, "", f"{plural(len(found.spans), noun)}{since}: {counts}."])


def shown_drift_since(
    environment: str, since: str, only: str | None, *, as_json: bool
) -> tuple[str, Sequence[str], bool]:
    """Say when each difference began and ended, of those that there were since then; topics outside ``only`` are not.

    Returns the text, warnings, and whether a difference is still there.
    """

    def is_asked(trouble: Trouble) -> bool:
        return isinstance(trouble, Difference) and (only is None or fnmatchcase(trouble.topic, only))

    found = _answer(environment, is_asked, since=since)
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
        case Difference():
            said = _AS_A_WHOLE.get(trouble.topic_class, trouble.topic_class)
            if trouble.field is not None:
                values = f"{or_not_set(trouble.desired)} in the files, {or_not_set(trouble.live)} live"
                said = f"{trouble.field.removeprefix('configs.')}: {values}"
            return f"{trouble.topic}: {said}{f' (owner {trouble.owner})' if trouble.owner else ''}"
        case FailingRule():
            rows = plural(trouble.rows_failed, "row")
            return f"{trouble.rule} ({trouble.severity}), {trouble.suite} the changes: {rows} failed when it began"
        case UnhealthyTopic():
            place = "the topic" if trouble.partition is None else f"partition {trouble.partition}"
            return f"{place} breaks rule {trouble.rule} ({trouble.suite} the changes)"


def _point(point: RunPoint) -> str:
    return printable(f"{_time(point.at)}, run {point.run}, commit {(point.commit or 'none')[:12]}")


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
