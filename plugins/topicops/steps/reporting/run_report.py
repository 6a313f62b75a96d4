"""What a run did, what went wrong and what to do next: as text, as Markdown and as JSON."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.codes import Code
from topicops.model.json_types import FormatVersion
from topicops.model.plans.changes import Action, GateWord
from topicops.model.plans.plan import GatedChange, Plan
from topicops.model.printable import first_line_of, plural
from topicops.model.runs.facts import CAUSES, Facts, Load, OwnerCounts, UnhealthyPartitions, owners_with_drift
from topicops.model.runs.results import (
    IN_PLACE,
    NO_FAILURE,
    REPLACED,
    Check,
    Outcome,
    OutcomeStatus,
    QualityResult,
    RunSummary,
    Verdict,
)
from topicops.model.specs.diagnostics import Diagnostic, Severity
from topicops.steps.reporting.document import Cell, Entry, Said, Section, as_markdown, as_text, markdown_table
from topicops.steps.reporting.facts_wording import (
    LOAD_HEAD,
    load_rows,
    owner_lines,
    unhealthy_lines,
    why_command,
    why_commands,
)
from topicops.steps.reporting.plan_wording import FEW, PARTICIPLES, command_lines, final_hold_line, some, summary_line

_WHOLE_NAME = re.compile(r"[\w.-]+")
"""Pattern of a possible topic name, with a full stop that may follow it."""
_ORDER = (OutcomeStatus.UNKNOWN, OutcomeStatus.FAILED, OutcomeStatus.REFUSED, OutcomeStatus.NOT_SENT)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some changes are not in place."""

    status: OutcomeStatus
    message: str
    """Message without the topic's name, if it is in it."""
    outcomes: tuple[Outcome, ...]

    def __str__(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"{len(self.outcomes)} {self.status}{why}"


def reasons_of(outcomes: Iterable[Outcome]) -> list[Reason]:
    """Return the gravest first, and of these the one with most changes."""
    groups: dict[tuple[OutcomeStatus, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.status not in NO_FAILURE:
            groups[outcome.status, _without_name(outcome)].append(outcome)
    found = [Reason(status, message, tuple(each)) for (status, message), each in groups.items()]
    return sorted(found, key=lambda reason: (_ORDER.index(reason.status), -len(reason.outcomes)))


def _without_name(outcome: Outcome) -> str:
    """Replace only the whole name: ``test`` is a part of other words and of other names."""

    def replaced(found: re.Match[str]) -> str:
        name = found[0].rstrip(".")
        is_topic = name.removeprefix("topic.") == outcome.topic or name == outcome.topic
        return f"the topic{found[0][len(name) :]}" if is_topic else found[0]

    return _WHOLE_NAME.sub(replaced, outcome.message)


ADVICE: Mapping[OutcomeStatus, str] = {
    OutcomeStatus.UNKNOWN: "of unknown outcome: see first why the brokers give no clear answer.",
    OutcomeStatus.FAILED: "failed: fix the reason beside each first.",
    OutcomeStatus.REFUSED: "refused: the reason stands beside each.",
    OutcomeStatus.NOT_SENT: "not sent: the reason stands beside each.",
}
"""Advice for changes that are not in place; then plan again: the same plan could end the same way."""

_WHY_TITLE = "Why a topic is not healthy, and what ends it"
EXAMPLES = 10
"""Most checks of one kind that a report shows in full."""

COMPARED_VIEWS: Mapping[Source, tuple[str, str]] = {
    "zookeeper": ("ZooKeeper", "the brokers' metadata"),
    "kafka": ("the brokers' metadata", "their log directories"),
}
"""The two views of each topic that verify compares, by source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The results of a run, also of one that ended early."""

    environment: str
    run: str = ""
    """Name of the run, as ``topicops undo`` takes it."""
    plan: Plan | None = None
    """Plan; None means that the run ended before it had one."""
    outcomes: tuple[Outcome, ...] = ()
    checks: tuple[Check, ...] = ()
    quality_before: tuple[QualityResult, ...] = ()
    quality_after: tuple[QualityResult, ...] = ()
    facts_before: Facts | None = None
    facts_after: Facts | None = None
    failed_tasks: tuple[str, ...] = ()
    """Airflow's names of tasks that failed upstream."""
    problem: str = ""
    """Reason why the run ended early, one sentence."""
    interrupted: bool = False
    topics: frozenset[str] = frozenset()
    """Topics that the files describe; empty means not known."""
    source: Source = "zookeeper"
    """Source of the live state; this decides which two views verify compares."""
    notes: tuple[str, ...] = ()
    """Sentences: which lease the run held, and what it recovered of earlier runs."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Problems that validate found, if the run ended there."""
    rejected: frozenset[str] = frozenset()
    """Digests of the changes that a person left out of his approval; no step is needed for them."""
    is_answer: bool = False
    """Whether a person was asked in this run: a change that the files had dropped by then is no failure."""

    @property
    def summary(self) -> RunSummary:
        plan = self.plan
        return RunSummary(
            outcomes=self.outcomes,
            checks=self.checks,
            held=sum(gated.digest not in self.rejected for gated in plan.with_gate(GateWord.HELD)) if plan else 0,
            skipped=len(plan.with_gate(GateWord.SKIPPED)) if plan else 0,
            blocked=len(plan.change_set.blocked) if plan else 0,
            interrupted=self.interrupted,
        )

    @property
    def dag(self) -> str:
        """The pipeline to start again, for a run in Airflow; empty for a command."""
        return "" if self.run.partition("/")[0] in ("", "cli") else f"topic_pipeline_{self.environment}"

    @property
    def newest_facts(self) -> Facts | None:
        return self.facts_after or self.facts_before

    @property
    def missed(self) -> tuple[Outcome, ...]:
        """Of changes that should be in place, or on their way there, and are not."""
        return tuple(o for o in self.outcomes if o.status not in NO_FAILURE and not (self.is_answer and o.is_unasked))

    @property
    def is_success(self) -> bool:
        """Nothing failed. Held, skipped and blocked changes are no failure, nor are problems from before the run."""
        quality = not any(rule.is_critical_failure for rule in (*self.quality_before, *self.quality_after))
        ended = not (self.failed_tasks or self.problem or self.interrupted)
        return not self.missed and quality and ended and not self.summary.unhealthy


def carried_out(plan: Plan, outcomes: Sequence[Outcome]) -> Plan:
    """Return the plan as a report shows it beside its outcomes: a change with an outcome was let run."""
    digests = {outcome.digest for outcome in outcomes}
    return replace(
        plan,
        changes=tuple(
            GatedChange(change=g.change, digest=g.digest, gate=GateWord.RUN) if g.digest in digests else g
            for g in plan.changes
        ),
    )


def headline(report: RunReport) -> str:
    """Say how the run ended, and what needs attention: ``Applied and verified: 1 done; 2 blocked.``"""
    return f"{_ending(report)}{_remarks(report)}."


def _ending(report: RunReport) -> str:
    summary = report.summary
    if report.interrupted:
        return f"Interrupted: {_counts(report)}"
    if (report.failed_tasks or report.problem) and not report.outcomes:
        problem = first_problem(report) or first_line_of(report.problem).rstrip(".")
        return f"The run did not end as it should{f': {problem}' if problem else ''}"
    if not report.outcomes and (report.checks or report.plan is None):
        return _verified(report)
    if not report.outcomes:
        return "Nothing was applied" if report.plan and not report.plan.is_empty else "No changes"
    if report.is_answer and all(o.is_unasked or o.message.startswith(REPLACED) for o in report.outcomes):
        return f"Approved, and nothing was sent: {report.outcomes[0].message}"
    if summary.count(*NO_FAILURE) == 0 and not any(outcome.sent for outcome in report.outcomes):
        return f"Nothing was applied: {_counts(report)}{_one_reason(report)}"
    if summary.count(*NO_FAILURE) < len(report.outcomes):
        return f"Applied in part: {_counts(report)}{_one_reason(report)}"
    if report.failed_tasks or report.problem:
        return f"Applied, and the run did not end as it should: {_counts(report)}"
    if summary.unhealthy:
        return f"Applied, not verified: {_counts(report)}, {_unhealthy_text(report)}"
    if summary.count(OutcomeStatus.MOVING):
        return f"Applied, and replicas still move: {_counts(report)}"
    verified = "Applied, verified in part" if _not_checked(report.checks) else "Applied and verified"
    return f"{verified if report.checks else 'Applied, not verified yet'}: {_counts(report)}"


def report_text(report: RunReport) -> str:
    """Render the report for a terminal or a task's log: how it ended first, and what is to be done last."""
    top = [headline(report), *_problem_lines(report), *([summary_line(report.plan)] if report.plan else [])]
    *parts, _ = _parts(report)
    is_undone = any(outcome.action in ("create", "configure") for outcome in _with(report, OutcomeStatus.DONE))
    undo = [f"To take this run back: topicops undo {shlex.quote(report.run)}"] if is_undone else []
    return as_text([Section(rows=top), *reversed(parts), Section(rows=undo)])


def report_markdown(report: RunReport) -> str:
    """Render the report for a pull request or Airflow; at most ``MARKDOWN_LIMIT`` characters, problems first."""
    summary = [summary_line(report.plan)] if report.plan else []
    head = Section(title=headline(report), level=3, rows=[*_problem_lines(report), *summary])
    return as_markdown([head, *_parts(report)], whole="report.json")


def _parts(report: RunReport) -> list[Section]:
    """Return what is to be done, what went wrong, what went well, and the load, which a terminal does not show."""
    owners = owner_lines(report.facts_before) if report.facts_before else []
    loads = list(load_rows(report.newest_facts)) if report.newest_facts else []
    why = [Said(line, is_whole=True) for line in why_commands(_unhealthy_topics(report), report.environment)]
    quality = [*_quality_lines("before", report.quality_before), *_quality_lines("after", report.quality_after)]
    return [
        Section(title="Next", rows=list(next_steps(report))),
        Section(title=_WHY_TITLE, rows=why),
        _outcomes("Not done", _missed_rows(report.outcomes)),
        Section(title="Verified", rows=_check_lines(report.checks, report.source)),
        Section(title="Unhealthy partitions", rows=_unhealthy(report)),
        Section(title="Notes", rows=report.notes),
        Section(title="Topics that differed, by owner", rows=owners),
        _outcomes("Moving", map(_outcome_row, _with(report, OutcomeStatus.MOVING))),
        _outcomes("Done", map(_outcome_row, _with(report, *IN_PLACE))),
        Section(title="Quality", rows=quality),
        Section(title="Load of brokers and racks", head=LOAD_HEAD, rows=loads),
    ]


def outcome_table(outcomes: Sequence[Outcome]) -> str:
    """Markdown: one row a change, in the order in which they were sent; empty when there was none."""
    return markdown_table(_outcomes("", map(_outcome_row, outcomes)))


def verdict_table(checks: Sequence[Check]) -> str:
    """Markdown: one row a topic with its worst verdict and what is wrong; empty when nothing was checked."""
    gravest = sorted(checks, key=lambda check: (check.topic, -list(Verdict).index(check.verdict), check.id))
    rows = [_verdict_row(topic, list(found)) for topic, found in groupby(gravest, key=lambda check: check.topic)]
    return markdown_table(Section(head=("topic", "verdict", "what is wrong"), rows=rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """The report as JSON: ``report.json``, and what ``apply`` and ``verify`` print."""

    format_version: FormatVersion = "1.0"
    environment: str
    fingerprint: str | None
    success: bool
    headline: str
    problem: str
    interrupted: bool
    failed_tasks: Sequence[str]
    planned: Mapping[Action, int]
    held: int
    skipped: int
    blocked: int
    unmanaged: int
    outcomes: Sequence[Outcome]
    verdicts: Mapping[Verdict, int]
    """Counts of all checks."""
    checks: Sequence[Check]
    """Checks that found something."""
    sides: Sequence[str]
    quality_before: Sequence[QualityResult]
    quality_after: Sequence[QualityResult]
    owners: Sequence[OwnerCounts]
    """Owners of topics that differed in the first snapshot."""
    unhealthy: Sequence[UnhealthyPartitions]
    """Unhealthy partitions of the newest snapshot, as ``load``."""
    load: Sequence[Load]
    notes: Sequence[str]
    next: Sequence[str]
    why: Mapping[str, str]
    """The command that says why, by topic that is not healthy."""


def report_json(report: RunReport) -> ReportFile:
    plan, summary, facts = report.plan, report.summary, report.newest_facts
    return ReportFile(
        environment=report.environment,
        fingerprint=plan.fingerprint if plan else None,
        success=report.is_success,
        headline=headline(report),
        problem=report.problem,
        interrupted=report.interrupted,
        failed_tasks=report.failed_tasks,
        planned=plan.action_counts if plan else {},
        held=summary.held,
        skipped=summary.skipped,
        blocked=summary.blocked,
        unmanaged=len(plan.change_set.unmanaged) if plan else 0,
        outcomes=report.outcomes,
        verdicts={v: sum(check.verdict is v for check in report.checks) for v in Verdict},
        checks=[check for check in report.checks if check.message],
        sides=COMPARED_VIEWS[report.source],
        quality_before=report.quality_before,
        quality_after=report.quality_after,
        owners=owners_with_drift(report.facts_before) if report.facts_before else (),
        unhealthy=facts.unhealthy if facts else (),
        load=facts.load if facts else (),
        notes=report.notes,
        next=list(next_steps(report)),
        why={topic: why_command(topic, report.environment) for topic in _unhealthy_topics(report)},
    )


def next_steps(report: RunReport) -> Iterator[str]:
    """Yield what a person should do now, the most urgent first; nothing when all is well.

    After a run in Airflow these are ways in Airflow; after a command they are commands.
    """
    summary, again = report.summary, f"trigger {report.dag}"
    for status, advice in ADVICE.items():
        if count := sum(outcome.status is status for outcome in report.missed):
            yield f"{count} {advice}"
    if report.missed:
        plan = again if report.dag else f"topicops plan --environment {report.environment} --out plan.json"
        yield f"Plan again: {plan}. The new plan has what is still to do, and nothing that is done."
    if summary.unhealthy:
        verify = again if report.dag else f"run topicops verify --environment {report.environment}"
        yield f"{_unhealthy_text(report)}: see to the brokers named, then {verify}."
    if report.plan:
        left = replace(report.plan, changes=tuple(g for g in report.plan.changes if g.digest not in report.rejected))
        lines = (*_held_lines(report, left), final_hold_line(left))
        yield from (f"{line}." for line in lines if line)
    if moving := summary.count(OutcomeStatus.MOVING):
        how = "shows how far" if report.dag else "shows how far; with --watch it carries them on"
        yield f"{moving} moving: topicops moves --environment {report.environment} {how}."
    if summary.skipped:
        yield f"{summary.skipped} skipped: a later run takes them up once the reason that the plan gives is gone."
    if summary.blocked:
        yield f"{summary.blocked} blocked: the plan names the way out of each."


def first_problem(report: RunReport) -> str:
    """Return the first error of the files, with its place; empty: validate found none."""
    errors = [found for found in report.diagnostics if found.severity is Severity.ERROR]
    if not errors:
        return ""
    first, more = errors[0], len(errors) - 1
    return f"{first.file}:{first.line}: {first.code} {first.summary}{f'; {more} more' if more else ''}"


def _held_lines(report: RunReport, left: Plan) -> list[str]:
    """Say how held changes can run; nothing about what a person rejected."""
    if not report.summary.held or report.plan is None:
        return []
    if not report.dag:
        return command_lines(report.plan)
    asked = sum(gated.approvable for gated in left.with_gate(GateWord.HELD))
    return [f"{plural(asked, 'change')} held: answer the question in Airflow, Required Actions"] if asked else []


def _counts(report: RunReport) -> str:
    counted = [(status, report.summary.count(status)) for status in OutcomeStatus]
    return ", ".join(f"{count} {status}" for status, count in counted if count) or "nothing was sent"


def _one_reason(report: RunReport) -> str:
    """Return, in brackets, the one reason for all that is not in place; empty if there are several."""
    reasons = reasons_of(report.outcomes)
    return f" ({reasons[0].message})" if len(reasons) == 1 and reasons[0].message else ""


def _verified(report: RunReport) -> str:
    """Return the headline of a run that changed nothing: it verified the whole cluster, or the topics of a plan."""
    subject = "What the plan names" if report.plan else "The cluster"
    if not any(check.topic for check in report.checks) and not report.summary.unhealthy:
        return "Nothing was checked: " + ("the plan names no topic" if report.plan else "no topic is live")
    if report.summary.unhealthy:
        return f"{subject} is not healthy: {_unhealthy_text(report)}, {_topics(report.checks)} checked"
    is_whole = not _old_troubles(report) and not _unhealthy(report)
    state = "healthy" if is_whole else "not worse than before"
    limit = ", as far as it could be checked" if _not_checked(report.checks) else ""
    gone = _gone(report.checks)
    others = {check.topic for check in report.checks if check.topic} - gone
    counts = [f"{plural(len(others), 'topic')} checked"] if others else []
    counts += [f"{plural(len(gone), 'deleted topic')} gone"] if gone else []
    return f"{subject} is {state if others else 'as planned'}{limit}: {', '.join(counts)}"


def _remarks(report: RunReport) -> str:
    """Say what else of the body a reader of the headline must know; after a semicolon."""
    summary, old = report.summary, _old_troubles(report)
    counts = ((summary.held, "held"), (summary.skipped, "skipped"), (summary.blocked, "blocked"))
    failed = [rule for rule in report.quality_after or report.quality_before if not rule.success]
    critical = sorted({rule.rule for rule in failed if rule.is_critical_failure})
    warnings = {rule.rule for rule in failed} - set(critical)
    remarks = [
        *(f"{count} {word}" for count, word in counts if count),
        f"{_topics(old)} not healthy before the run either" if old else "",
        f"not everything checked on {_topics(unseen)}" if (unseen := _not_checked(report.checks)) else "",
        f"quality rule {', '.join(critical)} fails" if critical else "",
        f"{plural(len(warnings), 'quality rule')} with a warning" if warnings else "",
        _health_remark(report) if _unhealthy(report) and not old else "",
    ]
    said = ", ".join(filter(None, remarks))
    return f"; {said}" if said else ""


def _health_remark(report: RunReport) -> str:
    """Say whose topics they are; the facts count partitions, and only the rules name some topics."""
    rules = [rule for rule in report.quality_after or report.quality_before if rule.rule in CAUSES]
    rows = [row.row for rule in rules for row in rule.examples]
    if ours := {str(row["topic"]) for row in rows if row.get("topic")} & report.topics:
        return f"partitions of {', '.join(sorted(ours)[:3])}{' and others' if len(ours) > 3 else ''} are not healthy"
    return "partitions of the cluster are not healthy"


def _old_troubles(report: RunReport) -> list[Check]:
    return [check for check in report.checks if check.verdict is Verdict.PRE_EXISTING]


def _gone(checks: Sequence[Check]) -> set[str]:
    """Return the deleted topics of which nothing is left."""
    deleted = {check.topic for check in checks if check.id == Code.V17}
    return deleted - {check.topic for check in checks if not check.is_healthy}


def _not_checked(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.verdict is Verdict.NOT_CHECKED]


def _unhealthy_topics(report: RunReport) -> list[str]:
    """Return them by name; those that were not healthy before the run either come last."""
    found = {check.topic for check in report.summary.unhealthy if check.topic}
    before = {check.topic for check in _old_troubles(report) if check.topic} - found
    return [*sorted(found), *sorted(before)]


def _unhealthy_text(report: RunReport) -> str:
    """Return ``no controller is elected, 2 topics not healthy``."""
    unhealthy = report.summary.unhealthy
    parts = [check.message for check in unhealthy if not check.topic]
    if any(check.topic for check in unhealthy):
        parts.append(f"{_topics(unhealthy)} not healthy")
    return ", ".join(parts)


def _topics(checks: Sequence[Check]) -> str:
    return plural(len({check.topic for check in checks if check.topic}), "topic")


def _with(report: RunReport, *statuses: OutcomeStatus) -> list[Outcome]:
    return [outcome for outcome in report.outcomes if outcome.status in statuses]


def failed_task_text(task: str) -> str:
    """Say where to look: a task's own log ends well where Airflow lost or refused the task's last request."""
    return f"Task {task} failed; its log says why, or the API server's."


def _problem_lines(report: RunReport) -> list[str]:
    return [*([report.problem] if report.problem else []), *map(failed_task_text, report.failed_tasks)]


def _outcome_line(outcome: Outcome) -> str:
    if outcome.status is OutcomeStatus.DONE:
        return f"{outcome.topic} {PARTICIPLES[outcome.action]}"
    line = f"{outcome.topic} {outcome.action}: {outcome.status}"
    return f"{line}: {outcome.message}" if outcome.message else line


def _outcomes(title: str, rows: Iterable[Entry]) -> Section:
    return Section(title=title, head=("topic", "action", "outcome", "why"), rows=list(rows), noun="changes")


def _outcome_row(outcome: Outcome) -> Entry:
    cells = (outcome.topic, outcome.action, outcome.status, outcome.message)
    return Entry(_outcome_line(outcome), tuple(map(Said, cells)))


def _missed_rows(outcomes: Iterable[Outcome]) -> Iterator[Entry]:
    """Yield a row for each change that is not in place, the gravest first; one for many with the same reason."""
    for reason in reasons_of(outcomes):
        for action in dict.fromkeys(outcome.action for outcome in reason.outcomes):
            found = [outcome for outcome in reason.outcomes if outcome.action == action]
            if len(found) <= FEW:
                yield from map(_outcome_row, found)
                continue
            names, many = some(outcome.topic for outcome in found), f"{len(found)} topics"
            why = f"{reason.message} ({names})" if reason.message else names
            cells = (f"{many}: {names}", action, reason.status, reason.message)
            yield Entry(f"{many} {action}: {reason.status}: {why}", tuple(map(Said, cells)))


def _check_lines(checks: Sequence[Check], source: Source) -> list[str]:
    if not checks:
        return []
    unhealthy = {check.topic for check in checks if check.is_problem}
    unseen = {check.topic for check in _not_checked(checks)} - unhealthy
    gone = _gone(checks)
    moving = [check for check in checks if check.verdict is Verdict.MOVING]
    healthy = {check.topic for check in checks} - unhealthy - unseen - gone - {check.topic for check in moving}
    counts = [f"{plural(len(healthy), 'topic')} healthy"] if healthy or not gone else []
    counts += [f"{plural(len(gone), 'deleted topic')} gone"] if gone else []
    grave = sorted((c for c in checks if c.is_problem), key=lambda c: (-list(Verdict).index(c.verdict), c.topic, c.id))
    return [
        f"{', '.join(counts)}, by {COMPARED_VIEWS[source][0]} and {COMPARED_VIEWS[source][1]}",
        *([f"{plural(len(unseen), 'topic')} without a problem, as far as checked"] if unseen else []),
        *_not_checked_lines(checks),
        *_grouped(grave),
        *_grouped(moving),
        *_remark_lines(checks),
    ]


def _grouped(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a line for each check; one for many that a rule found about the same brokers, and of others the first."""
    groups: dict[tuple[Verdict, str, tuple[int, ...]], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.verdict, check.id, check.brokers), []).append(check)
    for (verdict, rule, brokers), found in groups.items():
        counted = f"{plural(len(found), 'finding')} on {_topics(found)}"
        if len(found) <= (FEW if brokers else EXAMPLES):
            yield from map(_check_line, found)
            continue
        if brokers:
            names = some({check.topic for check in found})
            yield f"{verdict}: {rule} about {brokers_text(brokers)}: {counted} ({names}), such as {found[0].message}"
            continue
        yield f"{verdict}: {rule}: {counted}"
        yield from (f"  {_check_line(check)}" for check in found[:EXAMPLES])
        yield f"  … and {len(found) - EXAMPLES} more; all are in report.json of this run"


def _not_checked_lines(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a line for each reason, with the number of its topics."""
    by_reason = groupby(sorted(_not_checked(checks), key=lambda check: check.message), key=lambda check: check.message)
    yield from (f"not checked: {message}: {_topics(list(found))}" for message, found in by_reason)


def _remark_lines(checks: Sequence[Check]) -> Iterator[str]:
    """Messages about healthy topics: one line for each check, because there may be many topics."""
    remarks = sorted((c for c in checks if c.is_healthy and c.message), key=lambda check: (check.id, check.topic))
    for check_id, group in groupby(remarks, key=lambda check: check.id):
        first, *others = group
        more = f" (and {_topics(others)} more)" if others else ""
        yield f"noted: topic.{first.topic} {check_id}: {first.message}{more}"


def _verdict_row(topic: str, checks: Sequence[Check]) -> tuple[Cell, ...]:
    reasons = tuple(f"{check.id}: {check.message}" for check in checks if not check.is_healthy)
    return topic or "cluster", checks[0].verdict, reasons


def _check_line(check: Check) -> str:
    name = f"topic.{check.topic}" if check.topic else "cluster"
    code = f" ({check.code})" if check.code else ""
    return f"{check.verdict}: {name} {check.id}: {check.message}{code}"


def _quality_lines(when: str, rules: Sequence[QualityResult]) -> Iterator[str]:
    for rule in rules:
        result = (
            "passed" if rule.success else f"FAILED ({rule.severity}), {rule.rows_failed} of {rule.rows_checked} rows"
        )
        yield f"{when}: {rule.rule} {rule.title}: {result}"


def _unhealthy(report: RunReport) -> list[str]:
    return unhealthy_lines(report.newest_facts) if report.newest_facts else []


def is_verified_whole(report: RunReport) -> bool:
    """Return whether all topics were planned, every change is in place and none is blocked; an empty plan counts.

    A reassignment that was accepted counts as in place while it moves: everything else of the environment is verified,
    and moves that take days must not keep the next environment waiting (``policy.after``). Later steps verify each
    partition before they call its move done.
    Paused topics and differences that the policy only reports do not count: no change is planned for them.
    """
    plan = report.plan
    if plan is None or plan.change_set.source.only is not None or plan.change_set.blocked:
        return False
    done = {outcome.digest for outcome in report.outcomes}
    is_checked = bool(report.checks) or not report.outcomes
    return report.is_success and is_checked and all(gated.digest in done for gated in plan.changes)
