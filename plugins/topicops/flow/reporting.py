"""A plan and a finished run, as a person or a program reads them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from topicops.edges.home.artifacts import readable_json
from topicops.edges.places import Place
from topicops.flow.runs.kept import load_results
from topicops.flow.runs.memory import write_verified
from topicops.flow.runs.run import EnvironmentRun, Run
from topicops.flow.runs.values import RunResults
from topicops.model.errors import ArtifactError
from topicops.model.plans.plan import Plan
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.facts import Facts
from topicops.steps.reporting.run_report import (
    RunReport,
    carried_out,
    is_verified_whole,
    report_json,
    report_markdown,
    report_text,
)

T = TypeVar("T")
Format = Literal["text", "json", "markdown"]
REPORT_FILES = {"text": "report.txt", "json": "report.json", "markdown": "report.md"}


def note_problem(run: Run, task: str, problem: str) -> None:
    """Keep why a task failed, if the run's folder takes it."""
    with suppress(ArtifactError, OSError):
        run.store.write_text(_problem_file(task), problem)


def _problem_file(task: str) -> str:
    return f"problem-{task}.txt"


def problem_of(run: Run, failed_tasks: Sequence[str]) -> str:
    """Return the problem of the first failed task that has one; empty if none has."""
    for file in map(_problem_file, failed_tasks):
        try:
            if run.store.has(file):
                return run.store.read_text(file)
        except ArtifactError as error:
            return f"why it failed cannot be read: {error}"
    return ""


def run_report(run: EnvironmentRun, *, failed_tasks: Sequence[str] = ()) -> RunReport:
    """Return all that the run has left in its folder so far."""
    return report_of(run, load_results(run), failed_tasks=failed_tasks, problem=problem_of(run, failed_tasks))


def report_of(
    run: EnvironmentRun,
    results: RunResults,
    *,
    failed_tasks: Sequence[str] = (),
    problem: str = "",
    interrupted: bool = False,
) -> RunReport:
    """Return what the results come to."""
    before, after = results.facts_before, results.facts_after
    quality = results.quality_before, results.quality_after
    quality_before, quality_after = (found.results if found else () for found in quality)
    return RunReport(
        environment=run.environment,
        run=run.name,
        plan=carried_out(results.plan, results.outcomes) if results.plan else None,
        outcomes=results.outcomes,
        checks=results.checks,
        quality_before=quality_before,
        quality_after=quality_after,
        facts_before=before,
        facts_after=after,
        failed_tasks=tuple(failed_tasks),
        problem=problem,
        interrupted=interrupted,
        source=results.reading.source if results.reading else "zookeeper",  # nothing was verified then
        notes=results.notes,
        rejected=results.rejected,
        diagnostics=results.diagnostics,
        topics=results.described if any(facts and facts.unhealthy for facts in (before, after)) else frozenset(),
        is_answer=results.is_answer,
    )


def finish(
    run: EnvironmentRun,
    results: RunResults,
    *,
    failed_tasks: Sequence[str] = (),
    problem: str = "",
    interrupted: bool = False,
) -> RunReport:
    """Write ``report.txt``, ``report.md`` and ``report.json``."""
    found = report_of(run, results, failed_tasks=failed_tasks, problem=problem, interrupted=interrupted)
    run.store.write_text("report.txt", report_text(found))
    run.store.write_text("report.md", report_markdown(found))
    run.store.write_json("report.json", report_json(found))
    return found


def note_verified(run: EnvironmentRun, found: RunReport) -> None:
    """Remember the commit of a run that applied, if all of its files is in place and verified.

    ``policy.after`` of other environments asks for that.
    """
    commit = found.plan.change_set.source.commit if found.plan else None
    if commit and is_verified_whole(found):
        write_verified(run, commit)


def render(plan: Plan, output: Format, facts: Facts | None = None, *, verbose: bool = False) -> str:
    """Return a plan; as a text or as Markdown also the facts of its run, where they are known.

    Args:
        verbose: Whether a text has all of each change.
    """
    match output:
        case "text":
            from topicops.steps.reporting.plan_document import plan_text

            return plan_text(plan, facts, verbose=verbose)
        case "markdown":
            from topicops.steps.reporting.plan_document import plan_markdown

            return plan_markdown(plan, facts)
        case "json":
            return plan_to_json(plan)


def report_file(run: Run, output: Format) -> Place:
    """Return the file in which the run keeps its report."""
    return run.store.path(REPORT_FILES[output])


def shown_report(found: RunReport, output: Format) -> str:
    match output:
        case "text":
            return report_text(found).rstrip("\n")
        case "markdown":
            return report_markdown(found).rstrip("\n")
        case "json":
            return readable_json(report_json(found))


def render_report(run: Run, output: Format) -> str:
    """Return the report that the run has written. Raises ``ArtifactError`` when it wrote none."""
    return run.store.read_text(report_file(run, output).name).rstrip("\n")
