"""Add a run to the history, from its artifacts. Commands and tasks call this once the run's steps are done."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from topicops.features.history.file import append
from topicops.features.history.lines import HistoryLine, Mode, OwnerDifferences, PlanCounts, TopicOutcome
from topicops.features.history.sight import Sight, sight_of, with_moves
from topicops.flow.runs.facts import read_facts
from topicops.flow.runs.outcomes import read_outcomes
from topicops.flow.runs.run import (
    DELTA_FILE,
    ENVIRONMENT_FILE,
    PLAN_FILE,
    Run,
    note,
    now,
    outcomes_file,
    read_environment,
)
from topicops.model.errors import TopicopsError
from topicops.model.plans.changes import ACTIONS, GateWord
from topicops.model.plans.delta import TopicClass
from topicops.model.plans.plan import Plan
from topicops.model.runs.facts import DRIFT_CLASSES
from topicops.model.runs.fleet import FleetReport
from topicops.model.runs.results import IN_PLACE, QualityReport, QualitySuite, quality_file
from topicops.model.unexpected import log_error, sentence

if TYPE_CHECKING:
    from topicops.flow.fleet import Fleet

logger = logging.getLogger(__name__)


def record(run: Run) -> None:
    """Add the run to the history. A problem, whatever it is, becomes a note of the run, and never fails it."""
    try:
        if not (run.store.has(ENVIRONMENT_FILE) or run.store.has(PLAN_FILE)):
            return
        line, sight = _line_of(run), _sight_of(run)
        append(run.home, run.environment, lambda before: with_moves(line, sight, before))
    except Exception as error:  # noqa: BLE001 - requests may have been sent, and the report must say so
        log_error(logger, "the history is not written", error, level=logging.INFO)
        said = f"this run is not in the history: {sentence(error)}"
        run.progress(said)
        with suppress(TopicopsError):  # the disk that refused the history refuses the note too
            note(run, [said])


def record_fleet(fleet: Fleet, report: FleetReport) -> None:
    """Add the run of each environment that did not fail."""
    for result in report.environments:
        if result not in report.broken:
            record(fleet.runs[result.environment])


def _line_of(run: Run) -> HistoryLine:
    outcomes = read_outcomes(run)
    plan = run.read_plan() if run.store.has(PLAN_FILE) else None
    results = [result for report in _reports(run) for result in report.results]
    read = run.store.read_json("run.json") if run.store.has("run.json") else None
    known = read if isinstance(read, dict) else {}
    delta = run.read_delta() if run.store.has(DELTA_FILE) else None
    return HistoryLine(
        environment=run.environment,
        run=run.name,
        mode=_mode_of(run),
        recorded_at=now(),
        read_at=datetime.fromisoformat(str(known["read_at"])) if known else None,
        commit=plan.change_set.source.commit if plan else None,
        cluster_id=known.get("cluster_id"),
        source=known.get("source"),
        topics=known.get("topics"),
        partitions=known.get("partitions"),
        brokers=known.get("brokers"),
        has_looked=delta is not None or bool(results),
        classes={name.value: count for name, count in delta.counts.items()} if delta else None,
        owners=tuple(_owners(run)),
        plan=_plan_counts(plan) if plan else None,
        in_place=sum(outcome.status in IN_PLACE for outcome in outcomes),
        not_in_place=sum(outcome.status not in IN_PLACE for outcome in outcomes),
        rules={result.rule: 0 if result.success else max(1, result.rows_failed) for result in results},
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


def _mode_of(run: Run) -> Mode:
    if any(run.store.has(outcomes_file(action)) for action in ACTIONS):
        return "apply"
    if run.store.has("drift.json"):
        return "drift"
    return "verify" if run.store.has("checks.json") and not run.store.has(DELTA_FILE) else "plan"


def _owners(run: Run) -> Iterator[OwnerDifferences]:
    """Owners by name, each with its topics of the classes that are drift."""
    facts = read_facts(run, "before") if run.store.has(DELTA_FILE) else None
    counts = Counter[tuple[str, TopicClass]]()
    for found in facts.classes if facts else ():
        if found.owner is not None and found.topic_class in DRIFT_CLASSES:
            counts[found.owner, found.topic_class] += found.topics
    for owner in sorted({owner for owner, _ in counts}):
        yield OwnerDifferences(owner=owner, **{name.value: counts[owner, name] for name in DRIFT_CLASSES})


def _sight_of(run: Run) -> Sight:
    reports = _reports(run)
    if not run.store.has(DELTA_FILE):
        return sight_of(None, None, frozenset(), reports)
    return sight_of(run.read_delta(), read_environment(run), run.read_desired().left_out, reports)


def _reports(run: Run) -> Sequence[QualityReport]:
    names = [quality_file(suite) for suite in get_args(QualitySuite)]
    return [run.store.read_value(name, QualityReport) for name in names if run.store.has(name)]
