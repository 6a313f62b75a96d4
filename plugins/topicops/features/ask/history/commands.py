"""``topicops audit past``, ``quality`` and ``export``: what runs have found over time, from $TOPICOPS_HOME/history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result, print_value, print_warnings
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment

app = typer.Typer()


@app.command("past")
def past_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic's whole name.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Print all differences of a topic, the quality rules that it broke, and the changes that runs made."""
    from topicops.features.ask.history.answers import topic_history, topic_text

    found = topic_history(one_environment(environment, topics), name)
    print_warnings(found.left_out)
    print_value(found, output, topic_text)


@app.command("quality")
def quality_command(
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    since: Annotated[
        str | None, typer.Option("--since", help="36h, 7d or 2026-01-31. Default: the whole history.")
    ] = None,
    output: TextOrJsonOption = "text",
) -> None:
    """Print when each quality rule began to fail, and when it held again."""
    from topicops.features.ask.history.answers import quality_since, spans_text

    found = quality_since(one_environment(environment, topics), since)
    print_warnings(found.left_out)
    print_value(found, output, lambda found: spans_text(found, "failing rule"))


@app.command("export")
def export_command(
    to: Annotated[
        str, typer.Option("--to", metavar="FOLDER|URI", help="The folder, or s3://..., hdfs://..., gs://...")
    ],
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", help="May be repeated. Default: each environment that has a history."),
    ] = None,
) -> None:
    """Write the history as Parquet tables for other programs: runs, owners, outcomes and troubles."""
    from topicops.features.ask.history.export import export
    from topicops.features.ask.history.file import recorded_environments
    from topicops.flow.runs.run import home_folder
    from topicops.model.printable import plural

    home = home_folder()
    rows, left_out = export(home, environment or recorded_environments(home), to)
    print_warnings(left_out)
    print_result("\n".join(f"{table}: {plural(number, 'row')}" for table, number in rows.items()))
