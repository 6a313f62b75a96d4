"""``topicops ci plan``: what the pull request would change in each environment, if it was merged now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.ci.shared import FOLDER, FolderArgument, NumberOption
from topicops.cli.output import new_run_id, print_error, print_result, progress
from topicops.cli.shared_options import TopicsOption
from topicops.model.exit_status import ExitStatus


def plan_command(
    folder: FolderArgument = FOLDER,
    topics: TopicsOption = Path("topics"),
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", help="May be repeated. Default: all that are touched.", show_default=False),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="Commit of the base branch. Default: by the CI.", show_default=False)
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help="Newest commit of the branch. Default: by the CI.", show_default=False)
    ] = None,
    number: NumberOption = None,
) -> None:
    """Plan the merge of base and branch by the policy of the base. The branch is read as data; no cluster changes."""
    from topicops.flow.pull_requests.places import change_to_plan
    from topicops.flow.pull_requests.planning import Planning, plan_pull_request, write_planned
    from topicops.flow.runs.run import home_folder
    from topicops.steps.reporting.plans.plan_text import plan_text

    change = change_to_plan(base=base, head=head, number=number)
    planned = plan_pull_request(
        topics,
        base=change.base,
        head=change.head,
        number=change.number,
        only=frozenset(environment or ()),
        planning=Planning(run_id=new_run_id(), home=home_folder(), progress=progress),
    )
    write_planned(planned, folder)
    for remark in planned.summary.remarks:
        print_error(remark)
    for entry in planned.summary.environments:
        print_result(plan_text(planned.plans[entry.environment]) if not entry.problem else "", "text")
        if entry.problem:
            print_error(f"{entry.environment}: {entry.problem}")
    if not planned.summary.environments and not planned.summary.problem and not planned.summary.remarks:
        print_result("The pull request changes no topic of any environment.")
    if planned.summary.problem:
        print_error(planned.summary.problem)
    has_problem = planned.summary.problem or any(entry.problem for entry in planned.summary.environments)
    raise typer.Exit(ExitStatus.ERROR if has_problem else ExitStatus.SUCCESS)
