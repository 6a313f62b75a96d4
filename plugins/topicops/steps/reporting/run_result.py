"""How a run ended, for programs: the result for CI, the exit status, and what metrics show of its health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.model.errors import ExitStatus
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.printable import plural, printable
from topicops.model.runs.facts import Facts
from topicops.model.runs.results import (
    IN_PLACE,
    LONGEST_TEXT,
    MOST_CHANGES,
    MOST_NOTES,
    NO_FAILURE,
    ChangeResult,
    Outcome,
    OutcomeStatus,
    QualityResult,
    RunResult,
    RunSummary,
)
from topicops.steps.reporting.facts_wording import unhealthy_lines
from topicops.steps.reporting.run_report import RunReport, failed_task_text
from topicops.steps.reporting.run_report import headline as headline_of

GRAVITY = (
    *(OutcomeStatus.UNKNOWN, OutcomeStatus.FAILED, OutcomeStatus.REFUSED, OutcomeStatus.NOT_SENT),
    *(GateWord.HELD, GateWord.SKIPPED),
    *(OutcomeStatus.MOVING, OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO),
)
"""Every status of a change, the gravest first."""


def run_result(report: RunReport, *, remarks: Sequence[str] = (), headline: str = "") -> RunResult:
    """Give what CI shows of the run.

    Args:
        remarks: Sentences that come before the notes of the run.
        headline: Instead of that of the report, where the run has not come to one.
    """
    found = sorted(_changes(report), key=lambda change: GRAVITY.index(change.status))
    plan = report.plan
    return RunResult(
        headline=headline or _short(headline_of(report)),
        success=report.is_success,
        commit=plan.change_set.source.commit if plan else None,
        changes=tuple(found[:MOST_CHANGES]),
        left_out=max(0, len(found) - MOST_CHANGES),
        notes=_notes([*remarks, *_problems(report), *report.notes]),
    )


def _changes(report: RunReport) -> Iterator[ChangeResult]:
    """Yield every change of the plan, and every outcome, once."""
    outcomes = {outcome.digest: outcome for outcome in report.outcomes}
    for gated in report.plan.changes if report.plan else ():
        outcome = outcomes.pop(gated.digest, None)
        yield _of_outcome(outcome) if outcome else _of_change(gated)
    yield from map(_of_outcome, outcomes.values())


def _of_outcome(outcome: Outcome) -> ChangeResult:
    is_in_place = outcome.status in IN_PLACE
    return ChangeResult(
        topic=outcome.topic,
        action=outcome.action,
        digest=outcome.digest,
        status=outcome.status.value,
        message="" if is_in_place else _short(outcome.message),
    )


def _of_change(gated: GatedChange) -> ChangeResult:
    """Report a change without an outcome: it was held or skipped, or the run ended before it."""
    is_left = gated.gate is GateWord.RUN
    return ChangeResult(
        topic=gated.change.topic,
        action=gated.change.action,
        digest=gated.digest,
        status=OutcomeStatus.NOT_SENT.value if is_left else gated.gate.value,
        message="" if is_left else _short("; ".join(gated.reasons)),
    )


def _problems(report: RunReport) -> Iterator[str]:
    """Yield sentences about what no change has."""
    if report.problem:
        yield report.problem
    yield from map(failed_task_text, report.failed_tasks)
    yield from (f"{check.topic}: {check.message}" for check in report.summary.unhealthy)
    if blocked := report.summary.blocked:
        yield f"{plural(blocked, 'topic')} blocked: the plan names the way out of each."


def _notes(sentences: Sequence[str]) -> tuple[str, ...]:
    if len(sentences) <= MOST_NOTES:
        return tuple(map(_short, sentences))
    more = len(sentences) - MOST_NOTES + 1
    return (*map(_short, sentences[: MOST_NOTES - 1]), f"{more} more; the report has them.")


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


def apply_exit_status(summary: RunSummary) -> ExitStatus:
    """Give the exit status of ``apply``.

    A run that sent nothing never ends with ``PARTLY_DONE``, so the status always agrees with what was changed.
    ``ERROR`` then means that the run stopped early, or that the brokers' dry run rejected every change.
    """
    if summary.interrupted:
        return ExitStatus.INTERRUPTED
    if not summary.outcomes and not summary.unhealthy:
        waits = summary.held or summary.skipped or summary.blocked
        return ExitStatus.NOTHING_MAY_RUN if waits else ExitStatus.SUCCESS
    if summary.count(*NO_FAILURE) < len(summary.outcomes):
        return _partial_status(summary)
    return _health_status(summary)


def verify_exit_status(summary: RunSummary) -> ExitStatus:
    return ExitStatus.INTERRUPTED if summary.interrupted else _health_status(summary)


def _health_status(summary: RunSummary) -> ExitStatus:
    return ExitStatus.NOT_VERIFIED if summary.unhealthy else ExitStatus.SUCCESS


def _partial_status(summary: RunSummary) -> ExitStatus:
    if summary.count(*NO_FAILURE) or any(outcome.sent for outcome in summary.outcomes):
        return ExitStatus.PARTLY_DONE
    if summary.count(OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN):
        return ExitStatus.ERROR
    return ExitStatus.NOTHING_SENT if summary.count(OutcomeStatus.REFUSED) else ExitStatus.ERROR


def unhealthy_verdict(report: RunReport) -> str:
    """Return what is not healthy, in a sentence; empty: nothing is, as far as the run looked."""
    facts = report.newest_facts
    lines = unhealthy_lines(facts) if facts else []
    said = "\n".join(lines)
    lines = [*lines, *(_rule_words(rule) for rule in failing_rules(report) if f"({rule.rule})" not in said)]
    return f"The cluster is not healthy: {'; '.join(lines)}." if lines else ""


def failing_rules(report: RunReport) -> list[QualityResult]:
    """Give the quality rules that do not hold, by id; of a rule that was evaluated twice the later result."""
    by_rule = {rule.rule: rule for rule in (*report.quality_before, *report.quality_after)}
    return [by_rule[rule] for rule in sorted(by_rule) if not by_rule[rule].success]


def _rule_words(rule: QualityResult) -> str:
    """Return ``Every topic of the files is in the cluster (Q16): not so for shop.orders, 3 more``."""
    topics = list(dict.fromkeys(str(row.row["topic"]) for row in rule.examples if row.row.get("topic")))
    more = max(0, rule.rows_failed - 1)
    named = f" for {topics[0]}{f', {more} more' if more else ''}" if topics else f", {rule.rows_failed} times"
    return f"{rule.title} ({rule.rule}): not so{named}"


def most_of_a_broker(facts: Facts | None) -> int:
    """Return partitions that one broker makes unhealthy for one cause: a partition may be counted by several."""
    return max((found.partitions for found in facts.unhealthy), default=0) if facts else 0


def gauges_of(report: RunReport) -> Mapping[str, float]:
    """Return what metrics show of a whole run."""
    summary, plan = report.summary, report.plan
    return {
        "changes": float(len(plan.changes)) if plan else 0.0,
        "held": float(summary.held),
        "skipped": float(summary.skipped),
        "blocked": float(summary.blocked),
        "done": float(summary.count(*IN_PLACE)),
        "moving": float(summary.count(OutcomeStatus.MOVING)),
        "failed": float(len(report.outcomes) - summary.count(*NO_FAILURE) + len(report.failed_tasks)),
        "failing_rules": float(len({r.rule for r in report.quality_after or report.quality_before if not r.success})),
        "unhealthy_partitions": float(most_of_a_broker(report.newest_facts)),
    }
