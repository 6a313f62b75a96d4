"""``topicops plan``: what would change, what is blocked, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import Engine, Format, print_result
from topicops.cli.runs import new_run
from topicops.model.exit_status import ExitStatus

EnvironmentOption = Annotated[str, typer.Option("--environment", "-e", help="Name of a file in topics/environments/.")]
TopicsOption = Annotated[Path, typer.Option("--topics", help="The folder of specs.")]


def plan_command(
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    only: Annotated[str | None, typer.Option("--only", help="Plan only topics whose name matches this glob.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the plan to this file, for `apply`.")] = None,
    engine: Annotated[Engine, typer.Option("--engine", help="What compares: spark or python.")] = "spark",
    states: Annotated[
        bool, typer.Option("--states", help="Read partition states too, so that the gate sees them.")
    ] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 2 when there are changes.")
    ] = False,
    output: Annotated[Format, typer.Option("--format", help="text, json or markdown.")] = "text",
) -> None:
    """Compare the files with the live cluster and print the plan; nothing is written to the cluster."""
    from topicops import flow

    run = new_run(environment, topics)
    plan = flow.make_plan(run, engine=engine, states=states, only=only)
    print_result(flow.render(plan, output))
    if out is not None:
        flow.save_plan(plan, out)
    if detailed_exitcode and not plan.is_empty:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)
