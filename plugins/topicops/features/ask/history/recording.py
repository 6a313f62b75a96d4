"""Add a run to the history, once its steps are done."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from topicops.features.ask.history.file import append
from topicops.features.ask.history.lines import (
    Difference,
    FailingRule,
    HistoryLine,
    Moves,
    PlanCounts,
    TopicOutcome,
    Trouble,
    UnhealthyTopic,
    in_order,
    is_older,
    spans_of,
)
from topicops.flow.runs.run import EnvironmentRun, note, now
from topicops.flow.runs.values import RunMode, RunResults
from topicops.model.errors import TopicopsError, log_error, sentence
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import Delta, DesiredRow, LiveRow, TopicClass, TopicDelta
from topicops.model.runs.results import IN_PLACE, NO_FAILURE, QualityReport
from topicops.model.specs.environment import Environment

logger = logging.getLogger(__name__)


def record(run: EnvironmentRun, results: RunResults, *, mode: RunMode | None) -> None:
    """Add the run to the history. A problem, whatever it is, becomes a note of the run, and never fails it.

    Without a ``mode`` the results tell it: ``apply``, ``verify`` or ``plan``.
    """
    if results.environment is None and results.plan is None:
        return
    try:
        is_check = bool(results.checks) and results.delta is None
        told: RunMode = "apply" if results.has_applied else "verify" if is_check else "plan"
        line = _line_of(run, results, mode or told)
        sight = sight_of(results.delta, results.environment, results.left_out, _reports(results))
        append(run.home, run.environment, lambda before: with_moves(line, sight, before))
    except Exception as error:  # noqa: BLE001 - requests may have been sent, and the report must say so
        log_error(logger, "the history is not written", error, level=logging.INFO)
        said = f"this run is not in the history: {sentence(error)}"
        run.progress(said)
        with suppress(TopicopsError):  # the disk that refused the history refuses the note too
            note(run, [said])


def _line_of(run: EnvironmentRun, results: RunResults, mode: RunMode) -> HistoryLine:
    outcomes, plan, delta, reading = results.outcomes, results.plan, results.delta, results.reading
    facts = results.facts_before
    rules = [result for report in _reports(results) for result in report.results]
    return HistoryLine(
        environment=run.environment,
        run=run.name,
        mode=mode,
        recorded_at=now(),
        read_at=reading.read_at if reading else None,
        commit=plan.change_set.source.commit if plan else None,
        cluster_id=reading.cluster_id if reading else None,
        source=reading.source if reading else None,
        topics=reading.topics if reading else None,
        partitions=reading.partitions if reading else None,
        brokers=reading.brokers if reading else None,
        has_looked=delta is not None or bool(rules),
        classes={name.value: count for name, count in delta.counts.items()} if delta else None,
        owners=facts.owners if delta and facts else (),
        plan=PlanCounts(
            changes=len(plan.changes),
            held=len(plan.with_gate(GateWord.HELD)),
            skipped=len(plan.with_gate(GateWord.SKIPPED)),
            blocked=len(plan.change_set.blocked),
        )
        if plan
        else None,
        in_place=sum(outcome.status in IN_PLACE for outcome in outcomes),
        not_in_place=sum(outcome.status not in NO_FAILURE for outcome in outcomes),
        rules={rule.rule: 0 if rule.success else max(1, rule.rows_failed) for rule in rules},
        outcomes=tuple(
            TopicOutcome(topic=o.topic, action=o.action, status=o.status.value, message=o.message) for o in outcomes
        ),
    )


def _reports(results: RunResults) -> Sequence[QualityReport]:
    return [report for report in (results.quality_before, results.quality_after) if report]


# ---- what one run saw: the troubles that were there, and for which troubles it looked ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    troubles: Sequence[Trouble]
    has_compared: bool
    not_compared: frozenset[str]
    """Topics that the run left out: their files have errors, or pause them."""
    rules: frozenset[str]
    whole_rules: frozenset[str]
    """Rules that name each of their failed rows."""

    def has_looked_for(self, trouble: Trouble) -> bool:
        """Say whether the trouble is over if the run did not see it."""
        match trouble:
            case Difference(topic=topic):
                return self.has_compared and topic not in self.not_compared
            case FailingRule(rule=rule):
                return rule in self.rules
            case UnhealthyTopic(rule=rule):
                return rule in self.whole_rules


def sight_of(
    delta: Delta | None, environment: Environment | None, left_out: frozenset[str], reports: Sequence[QualityReport]
) -> Sight:
    """Sum up what a run saw; without a delta it compared nothing. ``left_out`` are topics whose files have errors."""
    results = [result for report in reports for result in report.results]
    found = _differences(delta.topics, environment) if delta and environment else ()
    paused = {row.topic for row in delta.topics if row.topic_class is TopicClass.PAUSED} if delta else set()
    return Sight(
        troubles=(*(d for d in found if d.topic not in left_out), *_broken(reports)),
        has_compared=delta is not None,
        not_compared=left_out | paused,
        rules=frozenset(result.rule for result in results),
        whole_rules=frozenset(result.rule for result in results if len(result.examples) >= result.rows_failed),
    )


def with_moves(line: HistoryLine, sight: Sight, before: Sequence[Moves]) -> HistoryLine:
    """Give the line with the troubles that it opens and closes after the lines before.

    A run that read the cluster before another one that is there already opens and closes nothing: the other knows more.
    """
    known = spans_of(before)
    if is_older(line.at, known.newest):
        return line
    seen = {trouble.key: trouble for trouble in sight.troubles}
    opened = tuple(trouble for key, trouble in seen.items() if key not in known.open)
    gone = (span for key, span in known.open.items() if key not in seen and sight.has_looked_for(span.what))
    return replace(line, opened=opened, closed=tuple(span.what for span in in_order(gone)))


def _broken(reports: Iterable[QualityReport]) -> Iterator[Trouble]:
    """Yield the rules that fail, and the topics and partitions that they name."""
    for report in reports:
        for result in report.failed:
            suite, rule = report.suite, result.rule
            yield FailingRule(suite=suite, rule=rule, severity=result.severity, rows_failed=result.rows_failed)
            for example in result.examples:
                shown = dict(example.row)
                topic, partition = shown.pop("topic", None), shown.pop("partition", None)
                if isinstance(topic, str):
                    yield UnhealthyTopic(
                        suite=suite,
                        rule=rule,
                        topic=topic,
                        partition=partition if isinstance(partition, int) else None,
                        shown=json.dumps(shown, sort_keys=True),
                    )


Field = tuple[str | None, str | None, str | None]
"""Name of a field, and its values in the files and live."""


def _differences(topics: Iterable[TopicDelta], environment: Environment) -> Iterator[Difference]:
    """Yield one for each field; paused topics, and protected ones that no file names, are left out."""
    for found in topics:
        fields: Iterable[Field] = ()
        match found.topic_class:
            case TopicClass.DIFFERENT if found.desired and found.live:
                fields = _fields(found, found.desired, found.live)
            case TopicClass.MISSING | TopicClass.TOMBSTONED:
                fields = [(None, None, None)]
            case TopicClass.UNMANAGED if not environment.protecting_pattern(found.topic):
                fields = [(None, None, None)]
        name, kind, owner = found.topic, found.topic_class.value, found.desired.owner if found.desired else ""
        for field, desired, live in fields:
            yield Difference(topic=name, topic_class=kind, field=field, desired=desired, live=live, owner=owner or None)


def _fields(found: TopicDelta, desired: DesiredRow, live: LiveRow) -> Iterator[Field]:
    if "partitions" in found.changed:
        yield "partitions", str(desired.partitions), str(live.partitions)
    if "replication_factor" in found.changed:
        factors = sorted({live.replication_factor_min, live.replication_factor_max})
        yield "replicationFactor", str(desired.replication_factor), " to ".join(map(str, factors))
    if "assignment" in found.changed:
        yield "assignment", desired.assignment_digest, live.assignment_digest
    if "configs" in found.changed:
        wanted: Mapping[str, str] = json.loads(desired.configs)
        is_live: Mapping[str, str] = json.loads(live.configs)
        for name in sorted(wanted.keys() | is_live.keys()):
            if wanted.get(name) != is_live.get(name):
                yield f"configs.{name}", wanted.get(name), is_live.get(name)
