"""The commands of the loop but ``apply``: check the files, plan, verify, and stop runs."""

from __future__ import annotations

import time
from getpass import getuser
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import next_line, plan_of_today, print_error, print_result
from topicops.cli.shared_options import (
    DetailedExitcodeOption,
    EngineOption,
    EnvironmentOption,
    EnvironmentsOption,
    FormatOption,
    TopicsOption,
    VerboseOption,
    all_environments,
    default_topics,
    new_run,
    one_environment,
)
from topicops.model.errors import ExitStatus, UsageError
from topicops.model.printable import plural


def validate_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders of them. Default: topics.", show_default=False),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-e", help="Check the topics of this environment only. Default: of all."),
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"], typer.Option("--format", help="text, json, or github annotations.")
    ] = "text",
) -> None:
    """Check every file and show all problems at once. Opens no connection."""
    from topicops.flow.spec_files import selection_of, shown_diagnostics, validate_files
    from topicops.steps.reporting.diagnostics_text import annotation, counts_line, diagnostics_json

    started = time.monotonic()
    selection = selection_of(paths or [default_topics()])
    validated = validate_files(selection.topics, environment=environment)
    found = tuple(filter(selection.concerns, validated.diagnostics))
    files = selection.count() if selection.below else validated.files
    counts = counts_line(found, files=files, took_s=time.monotonic() - started)
    match output:
        case "json":
            print_result(diagnostics_json(found, files=files))
        case "github":
            print_result("\n".join([*map(annotation, found), counts]))
        case "text":
            print_result("\n".join([*([shown_diagnostics(found)] if found else []), counts]), output)
    errors = sum(problem.is_error for problem in found)
    if elsewhere := sum(problem.is_error for problem in validated.diagnostics) - errors:
        print_error(f"{plural(elsewhere, 'error')} in other files; `topicops validate` lists all")
    raise typer.Exit(ExitStatus.ERROR if errors else ExitStatus.SUCCESS)


def plan_command(
    saved: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PLAN]",
            help="A file written by --out, to print; no connection is made. Default: make a new plan.",
            show_default=False,
        ),
    ] = None,
    environment: EnvironmentsOption = None,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Only topics whose name matches this glob; the plan counts the others.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help=(
                "Write the plan to this file, for `apply`; of several environments: to this folder, "
                "`<environment>.json` each."
            ),
        ),
    ] = None,
    engine: EngineOption = "auto",
    states: Annotated[
        bool, typer.Option("--states", help="Read partition states too, so that the gate sees offline partitions.")
    ] = False,
    detailed_exitcode: DetailedExitcodeOption = False,
    verbose: VerboseOption = False,
    output: FormatOption = "text",
) -> None:
    """Compare the files with the live cluster and print the plan; nothing is written to the cluster."""
    from topicops.cli.fleets import FLEETS, several
    from topicops.flow import planning, reporting
    from topicops.flow.runs.run import load_plan, save_plan
    from topicops.plugged import ENGINES, after_run

    if saved:
        if environment or only or out or states:
            raise UsageError(f"{saved} is printed as it is: leave the other options out, or leave the plan out")
        plan = load_plan(saved)
        print_result(reporting.render(plan, output, verbose=verbose), output)
        raise typer.Exit(ExitStatus.CHANGES_PENDING if detailed_exitcode and not plan.is_empty else ExitStatus.SUCCESS)
    environments = all_environments(environment, topics)
    if named := several(environments, topics):
        FLEETS[0].take(
            "plan",
            named,
            topics,
            engine=engine,
            states=states,
            only=only,
            out=out,
            detailed_exitcode=detailed_exitcode,
            output=output,
        )
    run = new_run(environments[0], topics)
    planned = planning.make_plan(run, engine=engine, engines=ENGINES, states=states, only=only)
    after_run(run, planned.results())
    plan = planned.plan
    seen = plan if verbose or output != "text" else plan_of_today(planned, run.home)
    shown = reporting.render(seen, output, planned.comparison.facts, verbose=verbose)
    print_result(shown, output, file=run.store.path("plan.json"))
    if out is not None:
        save_plan(plan, out)
        print_error(next_line(plan, out))
    if detailed_exitcode and not plan.is_empty:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)


def verify_command(
    environment: EnvironmentsOption = None,
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="Check the topics of this plan only.")] = None,
    topics: TopicsOption = Path("topics"),
    output: FormatOption = "text",
) -> None:
    """Check leaders and ISRs in ZooKeeper and in the brokers' own metadata; nothing is written."""
    from topicops.cli.fleets import FLEETS, several
    from topicops.flow import reporting, whole_runs
    from topicops.flow.runs.run import load_plan
    from topicops.plugged import after_run

    environments = all_environments(environment, topics)
    if named := several(environments, topics):
        if plan is not None:
            raise UsageError("a plan is about one environment; name that one alone")
        FLEETS[0].take("verify", named, topics, output=output)
    run = new_run(environments[0], topics)
    ended = whole_runs.verify_plan(run, load_plan(plan)) if plan else whole_runs.verify_cluster(run)
    after_run(run, ended.results)
    print_result(reporting.shown_report(ended.report, output), output, file=reporting.report_file(run, output))
    raise typer.Exit(ended.status)


def stop_command(environment: EnvironmentOption = None, topics: TopicsOption = Path("topics")) -> None:
    """Stop the runs of an environment that have begun: each asks before its next request. Later runs are not touched.

    In Airflow and in the shell, wherever the run has the same TOPICOPS_HOME.
    """
    from topicops.flow.runs.memory import ask_to_stop
    from topicops.flow.runs.run import home_folder

    name = one_environment(environment, topics)
    sending = ask_to_stop(home_folder(), name, by=getuser())
    lines = [f"Each run of {name} that has begun sends no further request. What it has sent stays: plan again."]
    lines += [f"Sending, or ended in the middle: {run}" for run in sending] or ["No run sends anything now."]
    print_result("\n".join(lines), "text")
