"""``topicops drift``: where the cluster is not as the files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.model.exit_status import ExitStatus

if TYPE_CHECKING:
    from topicops.steps.planning.drift import DriftEntry


def drift_command(
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Compare only topics whose name matches this glob.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit 2 when there is a difference.")
    ] = False,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Show where the live cluster differs from the files; nothing is written."""
    from topicops import flow

    entries = flow.drift(unrecorded_run(environment, topics), only=only)
    print_result(as_json(entries) if output == "json" else as_text(entries))
    if detailed_exitcode and entries:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)


def as_text(entries: tuple[DriftEntry, ...]) -> str:
    """A line for each difference, and last how many topics there are of each kind."""
    from topicops.steps.reporting.cluster.drift_text import drift_lines, drift_summary

    return "\n".join([*drift_lines(entries), *([""] if entries else []), drift_summary(entries)])


def as_json(entries: tuple[DriftEntry, ...]) -> str:
    """One JSON object, ASCII only."""
    from topicops.steps.reporting.cluster.drift_text import drift_json

    return json.dumps(drift_json(entries), indent=2)
