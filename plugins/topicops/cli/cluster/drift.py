"""``topicops drift``: where the live cluster differs from the files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.fleets import end, new_fleet, several
from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.cli.shared_options import DetailedExitcodeOption, EnvironmentsOption, TextOrJsonOption, TopicsOption
from topicops.model.exit_status import ExitStatus


def drift_command(
    environment: EnvironmentsOption,
    topics: TopicsOption = Path("topics"),
    only: Annotated[
        str | None, typer.Option("--only", help="Compare only topics whose name matches this glob.")
    ] = None,
    detailed_exitcode: DetailedExitcodeOption = False,
    output: TextOrJsonOption = "text",
) -> None:
    """Show where the live cluster differs from the files. Nothing is written to the cluster."""
    from topicops import flow
    from topicops.steps.reporting.cluster.drift_text import drift_json, drift_text

    if named := several(environment, topics):
        report = flow.drift_fleet(new_fleet(named, topics), only=only)
        end(report, output, detailed_exitcode=detailed_exitcode)
    entries = flow.drift(unrecorded_run(environment[0], topics), only=only)
    print_result(drift_json(entries) if output == "json" else drift_text(entries))
    if detailed_exitcode and entries:
        raise typer.Exit(ExitStatus.CHANGES_PENDING)
