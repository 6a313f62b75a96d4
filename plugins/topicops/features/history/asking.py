"""Ask the history: when troubles began and ended, and what became of a topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.features.history.file import read_history
from topicops.features.history.lines import Difference, FailingRule, HistoryLine, Trouble
from topicops.features.history.spans import RunPoint, Span, in_order, spans_of
from topicops.flow.runs.run import home_folder, now
from topicops.model.json_types import FormatVersion
from topicops.steps.clocks import since_time


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOutcome:
    """A change of a topic that a run had to make."""

    run: str
    at: datetime
    action: str
    status: str
    message: str


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
    """Sentences about lines that cannot be read."""
    format_version: FormatVersion = "1.0"


def drift_since(environment: str, since: str, *, only: str | None = None) -> History:
    """When each difference began and ended, of those that there were since then.

    Args:
        since: ``7d``, or a day or time in RFC 3339.
        only: A glob; topics that do not match it are left out.

    Raises:
        UsageError: The environment has no history, or ``since`` cannot be read.
    """

    def is_asked(trouble: Trouble) -> bool:
        return isinstance(trouble, Difference) and (only is None or fnmatchcase(trouble.topic, only))

    return _answer(environment, is_asked, since=since)


def quality_since(environment: str, since: str | None) -> History:
    """When each quality rule began to fail and held again. Raises ``UsageError``, as ``drift_since``."""
    return _answer(environment, lambda trouble: isinstance(trouble, FailingRule), since=since)


def topic_history(environment: str, topic: str) -> History:
    """All that the history has of a topic. Raises ``UsageError`` for an environment without history."""
    return _answer(
        environment, lambda trouble: not isinstance(trouble, FailingRule) and trouble.topic == topic, topic=topic
    )


def trends(home: Path, environment: str, *, most: int) -> tuple[Sequence[HistoryLine], Sequence[str]]:
    """The last ``most`` runs that read the cluster, oldest first, and a sentence about each line that is left out.

    Raises:
        UsageError: The environment has no history.
    """
    lines, left_out = read_history(home, environment)
    read = {line.run: line for line in lines if line.read_at is not None}
    return sorted(read.values(), key=lambda line: line.at)[-most:], left_out


def _answer(
    environment: str, is_asked: Callable[[Trouble], bool], *, since: str | None = None, topic: str | None = None
) -> History:
    after = since_time(since, now()) if since else None
    lines, left_out = read_history(home_folder(), environment)
    known = spans_of(lines)
    spans = [
        span
        for span in (*known.ended, *known.open.values())
        if is_asked(span.what) and not (after and span.ended and span.ended.at < after)
    ]
    first_at = {(line.run, o): line.recorded_at for line in reversed(lines) for o in line.outcomes if o.topic == topic}
    outcomes = [
        PastOutcome(run=run, at=at, action=outcome.action, status=outcome.status, message=outcome.message)
        for (run, outcome), at in first_at.items()
    ]
    return History(
        environment=environment,
        since=after,
        newest=known.newest,
        spans=in_order(spans),
        outcomes=sorted(outcomes, key=lambda outcome: outcome.at),
        left_out=left_out,
    )
