"""``topicops history``: what the runs of an environment have found over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result, print_warnings
from topicops.cli.shared_options import (
    EnvironmentOption,
    HistoryEngineOption,
    TextOrJsonOption,
    TopicsOption,
    one_environment,
)

app = typer.Typer(
    name="history",
    help="What runs have found over time, from $TOPICOPS_HOME/history; opens no connection to the cluster.",
    no_args_is_help=True,
)


@app.command("topic")
def topic_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic's whole name.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    engine: HistoryEngineOption = "auto",
    output: TextOrJsonOption = "text",
) -> None:
    """Print all differences of a topic, the quality rules that it broke, and the changes that runs made."""
    from topicops import flow
    from topicops.steps.reporting.runs.history_text import topic_history_json, topic_history_text

    found = flow.topic_history(one_environment(environment, topics), name, engine=engine)
    print_warnings(found.warnings)
    print_result(topic_history_json(found) if output == "json" else topic_history_text(found))


@app.command("quality")
def quality_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    since: Annotated[
        str | None, typer.Option("--since", help="36h, 7d or 2026-01-31. Default: the whole history.")
    ] = None,
    engine: HistoryEngineOption = "auto",
    output: TextOrJsonOption = "text",
) -> None:
    """Print when each quality rule began to fail, and when it held again."""
    from topicops import flow
    from topicops.steps.reporting.runs.history_text import failing_rules_json, failing_rules_text

    found = flow.quality_since(one_environment(environment, topics), since, engine=engine)
    print_warnings(found.warnings)
    print_result(failing_rules_json(found) if output == "json" else failing_rules_text(found))
