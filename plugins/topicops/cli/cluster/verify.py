"""``topicops verify``: is what a plan wanted, or the whole cluster, healthy on both sides?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import Format, print_result
from topicops.cli.runs import new_run


def verify_command(
    environment: EnvironmentOption,
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="Check the topics of this plan only.")] = None,
    topics: TopicsOption = Path("topics"),
    output: Annotated[Format, typer.Option("--format", help="text, json or markdown.")] = "text",
) -> None:
    """Check leaders and ISRs in ZooKeeper and in the brokers' own metadata; nothing is written."""
    from topicops import flow

    run = new_run(environment, topics)
    ended = flow.verify_plan(run, flow.load_plan(plan)) if plan else flow.verify_cluster(run)
    print_result(flow.render_report(run, output))
    raise typer.Exit(ended)
