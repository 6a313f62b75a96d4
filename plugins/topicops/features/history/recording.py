"""Add a run to the history, once its steps are done."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from topicops.features.history.file import append
from topicops.features.history.lines import HistoryLine, OwnerDifferences, PlanCounts, TopicOutcome
from topicops.features.history.sight import sight_of, with_moves
from topicops.flow.runs.run import EnvironmentRun, note, now
from topicops.flow.runs.values import RunMode, RunResults
from topicops.model.errors import TopicopsError, log_error, sentence
from topicops.model.plans.changes import GateWord
from topicops.model.plans.delta import TopicClass
from topicops.model.plans.plan import Plan
from topicops.model.runs.facts import DRIFT_CLASSES, Facts
from topicops.model.runs.results import IN_PLACE, QualityReport

logger = logging.getLogger(__name__)


def record(run: EnvironmentRun, results: RunResults, *, mode: RunMode | None) -> None:
    """Add the run to the history. A problem, whatever it is, becomes a note of the run, and never fails it.

    Args:
        mode: None means that the results tell it: ``apply``, ``verify`` or ``plan``.
    """
    if results.environment is None and results.plan is None:
        return
    try:
        line = _line_of(run, results, mode or _mode_of(results))
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
        owners=tuple(_owners(results.facts_before)) if delta else (),
        plan=_plan_counts(plan) if plan else None,
        in_place=sum(outcome.status in IN_PLACE for outcome in outcomes),
        not_in_place=sum(outcome.status not in IN_PLACE for outcome in outcomes),
        rules={rule.rule: 0 if rule.success else max(1, rule.rows_failed) for rule in rules},
        outcomes=tuple(
            TopicOutcome(topic=o.topic, action=o.action, status=o.status.value, message=o.message) for o in outcomes
        ),
    )


def _plan_counts(plan: Plan) -> PlanCounts:
    return PlanCounts(
        changes=len(plan.changes),
        held=len(plan.with_gate(GateWord.HELD)),
        skipped=len(plan.with_gate(GateWord.SKIPPED)),
        blocked=len(plan.change_set.blocked),
    )


def _mode_of(results: RunResults) -> RunMode:
    if results.has_applied:
        return "apply"
    return "verify" if results.checks and results.delta is None else "plan"


def _owners(facts: Facts | None) -> Iterator[OwnerDifferences]:
    """Owners by name, each with its topics of the classes that are drift."""
    counts = Counter[tuple[str, TopicClass]]()
    for found in facts.classes if facts else ():
        if found.owner is not None and found.topic_class in DRIFT_CLASSES:
            counts[found.owner, found.topic_class] += found.topics
    for owner in sorted({owner for owner, _ in counts}):
        yield OwnerDifferences(owner=owner, **{name.value: counts[owner, name] for name in DRIFT_CLASSES})


def _reports(results: RunResults) -> Sequence[QualityReport]:
    return [report for report in (results.quality_before, results.quality_after) if report]
