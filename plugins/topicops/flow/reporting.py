"""A plan and a finished run, as a person or a program reads them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from topicops.flow.runs.facts import read_facts
from topicops.flow.runs.outcomes import outcomes_so_far
from topicops.flow.runs.questions import ANSWER, left_out
from topicops.flow.runs.run import DIAGNOSTICS_FILE, ENVIRONMENT_FILE, PLAN_FILE, Run, Summary, notes_of
from topicops.flow.runs.verified import write_verified
from topicops.model.choices import Source
from topicops.model.errors import ArtifactError
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.pull_requests.run_result import RunResult
from topicops.model.runs.facts import Facts
from topicops.model.runs.results import Check, QualityReport, QualityResult, QualitySuite, quality_file
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.reporting.runs.run_report import (
    RunReport,
    carried_out,
    headline,
    report_json,
    report_markdown,
    report_text,
)
from topicops.steps.reporting.runs.verified_whole import is_verified_whole

T = TypeVar("T")
Format = Literal["text", "json", "markdown"]
REPORT_FILES = {"text": "report.txt", "json": "report.json", "markdown": "report.md"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary(Summary):
    ok: bool
    """Nothing failed."""
    summary: str
    """The first line of the report."""
    held: int
    skipped: int
    blocked: int


def note_problem(run: Run, task: str, problem: str) -> None:
    """Keep why a task failed, if the run's folder takes it."""
    with suppress(ArtifactError, OSError):
        run.store.write_text(_problem_file(task), problem)


def _problem_file(task: str) -> str:
    return f"problem-{task}.txt"


def _problem_of(run: Run, failed_tasks: Sequence[str]) -> str:
    """Of the first task that failed and has one; empty: none has."""
    for file in map(_problem_file, failed_tasks):
        try:
            if run.store.has(file):
                return run.store.read_text(file)
        except ArtifactError as error:
            return f"why it failed cannot be read: {error}"
    return ""


def run_report(
    run: Run, *, failed_tasks: Sequence[str] = (), problem: str = "", interrupted: bool = False
) -> RunReport:
    """All that the run has left in its folder so far."""
    outcomes, before, after = outcomes_so_far(run), read_facts(run, "before"), read_facts(run, "after")
    return RunReport(
        environment=run.environment,
        run=run.name,
        plan=carried_out(run.read_plan(), outcomes) if run.store.has(PLAN_FILE) else None,
        outcomes=outcomes,
        checks=_read(run, "checks.json", tuple[Check, ...]),
        quality_before=_quality_results(run, "before"),
        quality_after=_quality_results(run, "after"),
        facts_before=before,
        facts_after=after,
        failed_tasks=tuple(failed_tasks),
        problem=problem or _problem_of(run, failed_tasks),
        interrupted=interrupted,
        source=_source(run),
        notes=notes_of(run),
        rejected=left_out(run),
        diagnostics=_read(run, DIAGNOSTICS_FILE, tuple[Diagnostic, ...]),
        topics=_described(run) if any(facts and facts.unhealthy for facts in (before, after)) else frozenset(),
        is_answer=run.store.has(ANSWER),
    )


def report(
    run: Run, *, failed_tasks: Sequence[str] = (), problem: str = "", interrupted: bool = False
) -> ReportSummary:
    """``report.txt``, ``report.md`` and ``report.json``.

    Raises:
        ArtifactError: The folder holds no run, and nothing has failed that would explain it.
    """
    is_run = run.store.has(ENVIRONMENT_FILE) or run.store.has(PLAN_FILE)
    if not (failed_tasks or problem or interrupted or is_run):
        raise ArtifactError(f"{run.store.folder}: there is no run to report: its first step has left nothing here")
    found = run_report(run, failed_tasks=failed_tasks, problem=problem, interrupted=interrupted)
    write_report(run, found)
    return ReportSummary(
        path=str(run.store.path("report.txt")),
        ok=found.is_success,
        summary=headline(found),
        held=found.summary.held,
        skipped=found.summary.skipped,
        blocked=found.summary.blocked,
    )


def run_result(
    run: Run, *, failed_tasks: Sequence[str] = (), remarks: Sequence[str] = (), headline: str = ""
) -> RunResult:
    """What CI shows of the run, from what it has left in its folder so far.

    Args:
        headline: Instead of that of the report, where the run has not come to one.
    """
    from topicops.steps.reporting.runs.run_result import run_result

    found = run_result(run_report(run, failed_tasks=failed_tasks), remarks=remarks)
    return replace(found, headline=headline) if headline else found


def note_verified(run: Run, *, failed_tasks: Sequence[str] = (), interrupted: bool = False) -> None:
    """At the end of a run that applied: remember its commit if all of its files is in place and verified.

    ``policy.after`` of other environments asks for that.
    """
    found = run_report(run, failed_tasks=failed_tasks, interrupted=interrupted)
    commit = found.plan.change_set.source.commit if found.plan else None
    if commit and is_verified_whole(found):
        write_verified(run, commit)


def write_report(run: Run, found: RunReport) -> None:
    run.store.write_text("report.txt", report_text(found))
    run.store.write_text("report.md", report_markdown(found))
    run.store.write_json("report.json", report_json(found))


def render(plan: Plan, output: Format, facts: Facts | None = None) -> str:
    """A plan; as a text or as Markdown also the facts of its run, where they are known."""
    match output:
        case "text":
            from topicops.steps.reporting.plans.plan_text import plan_text

            return plan_text(plan, facts)
        case "markdown":
            from topicops.steps.reporting.plans.plan_markdown import plan_markdown

            return plan_markdown(plan, facts)
        case "json":
            return plan_to_json(plan)


def report_file(run: Run, output: Format) -> Path:
    """The file in which the run keeps its report."""
    return run.store.path(REPORT_FILES[output])


def render_report(run: Run, output: Format) -> str:
    """The report that the run has written. Raises ``ArtifactError`` when it wrote none."""
    return run.store.read_text(report_file(run, output).name).rstrip("\n")


def _described(run: Run) -> frozenset[str]:
    return frozenset(run.read_desired().topics) if run.store.has("desired.json") else frozenset()


def _read(run: Run, name: str, kind: type[T]) -> T:
    """An artifact that is a tuple; an empty one if its step has not run."""
    return run.store.read_value(name, kind) if run.store.has(name) else kind()


def _source(run: Run) -> Source:
    """Where the run's snapshot was read; a run without one has verified nothing."""
    read = run.store.read_json("run.json") if run.store.has("run.json") else None
    return str(read.get("source")) if isinstance(read, dict) and read.get("source") else "zookeeper"


def _quality_results(run: Run, suite: QualitySuite) -> tuple[QualityResult, ...]:
    name = quality_file(suite)
    return run.store.read_value(name, QualityReport).results if run.store.has(name) else ()
