"""``topicops doctor``: what the tool can see and do on a cluster, and what is wrong there, each with a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.cluster.plan import EnvironmentOption, TopicsOption
from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.model.exit_status import ExitStatus


def doctor_command(
    environment: EnvironmentOption,
    topics: TopicsOption = Path("topics"),
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Look for what would get in the way: versions, rights, settings, clocks and metadata. Nothing is written."""
    from topicops import flow
    from topicops.steps.reporting.cluster.doctor_text import doctor_json, doctor_text

    examination = flow.doctor(unrecorded_run(environment, topics))
    print_result(doctor_json(examination) if output == "json" else doctor_text(examination))
    if examination.has_errors:
        raise typer.Exit(ExitStatus.ERROR)
