"""The history of runs: each run adds itself, and people ask when something began and ended.

Where nobody chose an engine, Python answers: in the rows of 8,760 runs it takes a third of the seconds that Spark takes
(benchmarks/results/history.json).
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topicops import __version__
from topicops.edges.extras import has_extra, require_extra
from topicops.edges.history.append import append
from topicops.edges.history.places import known_environments
from topicops.edges.history.spool import SpooledHistory
from topicops.flow.runs.run import EngineChoice, Notes, Run, home_folder, now
from topicops.flow.runs.values import RunResults
from topicops.model.errors import TopicopsError, UsageError
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import Delta
from topicops.model.plans.plan import Plan
from topicops.model.runs.history import (
    DIFFERENCES,
    FAILING_RULES,
    UNHEALTHY,
    HistoryEntry,
    Mode,
    PastOutcome,
    RunRow,
    Span,
    SpanQuestion,
    SpansFound,
    TopicHistory,
    TrendRun,
    Trends,
)
from topicops.model.runs.reading import Reading
from topicops.model.runs.results import IN_PLACE, QualitySuite
from topicops.model.specs.topic_config import ConfigValueError, read_duration_ms
from topicops.steps.history.rows import delta_rows, outcome_rows, quality_rows, unhealthy_rows

if TYPE_CHECKING:
    from topicops.edges.history.reading import History

COMPACTION_S = 1.0
"""After this time a run begins no further file of a compaction; a later run goes on."""
SUITES: tuple[QualitySuite, ...] = ("before", "after")


def record(run: Run, results: RunResults, notes: Notes, *, mode: Mode | None = None) -> None:
    """Add the run to the history. A problem never fails the run: it becomes one of its notes.

    Args:
        mode: None means ``apply`` or ``plan``, by whether the run could send changes.
    """
    try:
        _add(run, _entry_of(run, results, mode))
    except TopicopsError as error:
        sentence = _unrecorded(error)
        run.progress(sentence)
        with suppress(TopicopsError):  # the disk that refused the history may refuse the note too
            notes.add([sentence])


def drift_since(environment: str, since: str, *, engine: EngineChoice = "auto", only: str | None = None) -> SpansFound:
    """When each difference began and ended, of those that there were since then.

    Args:
        since: ``7d``, or a day or time in RFC 3339.
        only: A glob; topics that do not match it are left out.

    Raises:
        UsageError: The environment has no history, or ``since`` cannot be read.
    """
    found = _asked(environment, DIFFERENCES, engine, since_time(since, now()))
    if only is None:
        return found
    return replace(found, spans=tuple(span for span in found.spans if fnmatchcase(span.key[0] or "", only)))


def quality_since(environment: str, since: str | None, *, engine: EngineChoice = "auto") -> SpansFound:
    """When each quality rule began to fail and held again. Raises ``UsageError``, as ``drift_since``."""
    return _asked(environment, FAILING_RULES, engine, since_time(since, now()) if since else None)


def topic_history(environment: str, topic: str, *, engine: EngineChoice = "auto") -> TopicHistory:
    """All that the history has of a topic. Raises ``UsageError`` for an environment without history."""
    history = _history(environment, engine)
    with _one_session(engine):
        differences = _spans(history, DIFFERENCES, engine, topic=topic)
        unhealthy = _spans(history, UNHEALTHY, engine, topic=topic)
    outcomes = _outcomes(history, topic)
    _compact_if_due(history)
    return TopicHistory(
        environment=environment,
        topic=topic,
        differences=differences,
        unhealthy=unhealthy,
        outcomes=outcomes,
        warnings=tuple(history.warnings),
    )


def trends(home: Path, environment: str, *, most: int) -> Trends:
    """The last ``most`` runs that read the cluster. Raises ``UsageError`` for an environment without history."""
    history = _history(environment, "python", home)
    columns = (
        "run", "recorded_at", "read_at", "partitions", "in_place", "not_in_place",
        "missing", "different", "tombstoned", "held", "blocked",
    )  # fmt: skip
    newest: dict[str, tuple[Any, ...]] = {}
    for row in sorted(history.rows("runs", columns), key=lambda row: row[1]):
        if row[2] is not None:
            newest[row[0]] = row
    runs = tuple(_trend_run(*row) for row in sorted(newest.values(), key=lambda row: row[2])[-most:])
    recorded = {run.run: newest[run.run][1] for run in runs}
    failed: dict[str, dict[str, int]] = {}
    for run, at, rule, success, count in history.rows(
        "quality", ("run", "recorded_at", "rule", "success", "rows_failed")
    ):
        if recorded.get(run) == at:
            failed.setdefault(rule, {})[run] = 0 if success else max(1, count)
    return Trends(runs=runs, failed_rows=failed, warnings=tuple(history.warnings))


def _trend_run(
    run: str,
    recorded_at: datetime,
    read_at: datetime,
    partitions: int | None,
    in_place: int | None,
    not_in_place: int | None,
    *counts: int | None,
) -> TrendRun:
    missing, different, tombstoned, held, blocked = counts
    return TrendRun(
        run=run,
        at=read_at,
        seconds=max(0.0, (recorded_at - read_at).total_seconds()),
        partitions=partitions,
        differing=None if missing is None else missing + (different or 0) + (tombstoned or 0),
        waiting=None if held is None else held + (blocked or 0),
        changes=(in_place or 0) + (not_in_place or 0),
    )


def since_time(text: str, at: datetime) -> datetime:
    """The time that ``7d`` before ``at`` is, or the time itself. Raises ``UsageError``."""
    try:
        return at - timedelta(milliseconds=read_duration_ms(text))
    except (ConfigValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--since {text}: write 36h, 7d, 2026-01-31 or 2026-01-31T08:00:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=at.tzinfo)


def _add(run: Run, entry: HistoryEntry) -> None:
    append(run.home, entry)
    if "pyarrow" in sys.modules:
        from topicops.edges.history.compaction import compact, is_due

        today, deadline = now().date(), time.monotonic() + COMPACTION_S
        if is_due(run.home, today):
            compact(run.home, today, is_late=lambda: time.monotonic() > deadline)


def _unrecorded(error: TopicopsError) -> str:
    return f"this run is not in the history, or the history is not compacted: {error}"


def _entry_of(run: Run, results: RunResults, mode: Mode | None) -> HistoryEntry:
    outcomes, delta, environment = results.outcomes, results.delta, results.environment
    reports = [report for report in (results.quality_before, results.quality_after) if report]
    rules = [result for report in reports for result in report.results]
    row = RunRow(
        mode=mode or ("apply" if results.has_applied else "plan"),
        topicops=__version__,
        checked_before=results.quality_before is not None,
        checked_after=results.quality_after is not None,
        in_place=sum(outcome.status in IN_PLACE for outcome in outcomes),
        not_in_place=sum(outcome.status not in IN_PLACE for outcome in outcomes),
        rules=len(rules),
        rules_failed=sum(not rule.success for rule in rules),
    )
    return HistoryEntry(
        environment=run.environment,
        run=run.name,
        recorded_at=now(),
        runs=(_with_counts(_with_plan(_with_reading(row, results.reading), results.plan), delta),),
        deltas=tuple(delta_rows(delta, environment)) if delta and environment else (),
        quality=tuple(quality_rows(reports)),
        unhealthy=tuple(unhealthy_rows(reports)),
        outcomes=tuple(outcome_rows(outcomes)),
    )


def _with_reading(row: RunRow, read: Reading | None) -> RunRow:
    if read is None:
        return row
    return replace(
        row,
        read_at=read.read_at,
        source=read.source,
        cluster_id=read.cluster_id,
        topics=read.topics,
        partitions=read.partitions,
        brokers=read.brokers,
    )


def _with_plan(row: RunRow, plan: Plan | None) -> RunRow:
    if plan is None:
        return row
    return replace(
        row,
        commit=plan.change_set.source.commit,
        changes=len(plan.changes),
        held=len(plan.with_gate(GateWord.HELD)),
        skipped=len(plan.with_gate(GateWord.SKIPPED)),
        blocked=len(plan.change_set.blocked),
    )


def _with_counts(row: RunRow, delta: Delta | None) -> RunRow:
    if delta is None:
        return row
    return replace(row, compared=True, **{str(name): count for name, count in delta.counts.items()})  # type: ignore[arg-type]


def _history(environment: str, engine: EngineChoice, home: Path | None = None) -> History | SpooledHistory:
    """Without pyarrow, what runs without pyarrow have left."""
    if engine == "spark":
        require_extra("spark")
    home = home or home_folder()
    known = known_environments(home)
    if environment not in known:
        others = f"there is one of {', '.join(known)}" if known else "no run of this TOPICOPS_HOME has left one"
        raise UsageError(f"{home / 'history'}: no history of {environment}; {others}")
    if not has_extra("spark"):
        return SpooledHistory(home, environment)
    from topicops.edges.history.reading import History

    return History(home, environment)


def _asked(environment: str, question: SpanQuestion, engine: EngineChoice, since: datetime | None) -> SpansFound:
    history = _history(environment, engine)
    spans = _spans(history, question, engine, since=since)
    _compact_if_due(history)
    return SpansFound(environment=environment, since=since, spans=spans, warnings=tuple(history.warnings))


def _spans(
    history: History | SpooledHistory,
    question: SpanQuestion,
    engine: EngineChoice,
    *,
    since: datetime | None = None,
    topic: str | None = None,
) -> tuple[Span, ...]:
    from topicops.steps.history.spans import ordered_lanes, span_order, spans
    from topicops.steps.history.table_rows import RUN_COLUMNS, lane_runs, sighting_columns, sightings

    # Before the other rows: a run that is added meanwhile must not be known without its own.
    lanes = ordered_lanes(lane_runs(question, history.rows("runs", RUN_COLUMNS)))
    if engine == "spark" and not isinstance(history, SpooledHistory):
        from topicops.edges.spark.history import spark_spans
        from topicops.edges.spark.session import spark_session

        with spark_session() as spark:
            found = spark_spans(spark, history, question, lanes, since=since, topic=topic)
        return tuple(sorted(found, key=span_order))
    rows = history.rows(question.table, sighting_columns(question), topic=topic)
    return spans(lanes, sightings(question, rows), since=since)


def _one_session(engine: EngineChoice) -> AbstractContextManager[object]:
    """Around several questions, so that Spark starts once."""
    if engine != "spark":
        return nullcontext()
    from topicops.edges.spark.session import spark_session

    return spark_session()


def _outcomes(history: History | SpooledHistory, topic: str) -> tuple[PastOutcome, ...]:
    """What runs did with the topic, as their newest entries have it."""
    newest: dict[str, datetime] = {}
    for run, recorded_at in history.rows("runs", ("run", "recorded_at")):
        newest[run] = max(recorded_at, newest.get(run, recorded_at))
    columns = ("run", "recorded_at", "action", "status", "message")
    found = {
        PastOutcome(run=run, at=at, action=action, status=status, message=message)
        for run, at, action, status, message in history.rows("outcomes", columns, topic=topic)
        if run in newest and at >= newest[run]
    }
    return tuple(sorted(found, key=lambda outcome: (outcome.at, outcome.run, outcome.action)))


def _compact_if_due(history: History | SpooledHistory) -> None:
    """For homes whose runs never read pyarrow in: who asks pays. A home that may only be read stays as it is."""
    if isinstance(history, SpooledHistory):
        return
    from topicops.edges.history.compaction import compact, is_due

    today, deadline = now().date(), time.monotonic() + COMPACTION_S
    try:
        if is_due(history.home, today):
            compact(history.home, today, is_late=lambda: time.monotonic() > deadline)
    except TopicopsError as error:
        history.warnings.append(f"the history is not compacted: {error}")
