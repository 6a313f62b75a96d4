"""``topicops plan``: what would change, what is blocked, and why."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.fleets import FLEETS, several
from topicops.cli.output import print_result, progress
from topicops.cli.runs import new_run
from topicops.cli.shared_options import (
    DetailedExitcodeOption,
    EngineOption,
    EnvironmentsOption,
    FormatOption,
    TopicsOption,
    all_environments,
)
from topicops.model.errors import ExitStatus
from topicops.model.plans.changes import GateWord
from topicops.model.plans.plan import Plan


def plan_command(
    environment: EnvironmentsOption = None,
    topics: TopicsOption = Path("topics"),
    only: Annotated[str | None, typer.Option("--only", help="Plan only topics whose name matches this glob.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Write the plan to this file, for `apply`; of several environments: to this folder, a file for each.",
        ),
    ] = None,
    engine: EngineOption = "auto",
    states: Annotated[
        bool, typer.Option("--states", help="Read partition states too, so that the gate can use them.")
    ] = False,
    detailed_exitcode: DetailedExitcodeOption = False,
    output: FormatOption = "text",
) -> None:
    """Compare the files with the live cluster and print the plan; nothing is written to the cluster."""
    from topicops.flow import planning, reporting
    from topicops.flow.runs.run import save_plan
    from topicops.plugged import ENGINES, after_run

    environments = all_environments(environment, topics)
    if named := several(environments, topics):
        FLEETS[0].plan(
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
    planned = planning.make_plan(
        run, run.files, run.home, run.connections, engine=engine, engines=ENGINES, states=states, only=only
    )
    after_run(run, planned.results())
    plan = planned.plan
    print_result(reporting.render(plan, output, planned.comparison.facts), output, file=run.store.path("plan.json"))
    if out is not None:
        save_plan(plan, out)
        progress(next_line(plan, out))
    if detailed_exitcode and not plan.is_empty:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)


def next_line(plan: Plan, out: Path) -> str:
    """What to type next with the plan in ``out``."""
    place = shlex.quote(str(out))
    if plan.with_gate(GateWord.RUN):
        return f"Wrote {out}; next: topicops apply {place}"
    if plan.held_for(command=True):
        return f"Wrote {out}; everything is held; after a review: topicops apply {place} --approve {plan.fingerprint}"
    if plan.held_for(command=False):
        return f"Wrote {out}; everything is held, and --approve does not count here (policy.approvals)"
    return f"Wrote {out}; it has nothing to apply"
