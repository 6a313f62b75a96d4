"""``topicops verify``: check the topics of a plan, or the whole cluster, in ZooKeeper and on the brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.fleets import FLEETS, several
from topicops.cli.output import print_result
from topicops.cli.runs import new_run
from topicops.cli.shared_options import EnvironmentsOption, FormatOption, TopicsOption, all_environments
from topicops.model.errors import UsageError


def verify_command(
    environment: EnvironmentsOption = None,
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="Check the topics of this plan only.")] = None,
    topics: TopicsOption = Path("topics"),
    output: FormatOption = "text",
) -> None:
    """Check leaders and ISRs in ZooKeeper and in the brokers' own metadata; nothing is written."""
    from topicops.flow import reporting, whole_runs
    from topicops.flow.runs.run import load_plan
    from topicops.plugged import after_run

    environments = all_environments(environment, topics)
    if named := several(environments, topics):
        if plan is not None:
            raise UsageError("a plan is about one environment; name that one alone")
        FLEETS[0].verify(named, topics, output=output)
    run = new_run(environments[0], topics)
    ended = whole_runs.verify_plan(run, load_plan(plan)) if plan else whole_runs.verify_cluster(run)
    after_run(run, ended.results)
    print_result(reporting.shown_report(ended.report, output), output, file=reporting.report_file(run, output))
    raise typer.Exit(ended.status)
