"""``topicops validate``: every problem of every file, on the line where it stands."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import print_result
from topicops.model.exit_status import ExitStatus


def validate_command(
    topics: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of specs.")] = Path("topics"),
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-e", help="Check the topics of this environment only. Default: of all."),
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"], typer.Option("--format", help="text, json, or github annotations.")
    ] = "text",
) -> None:
    """Check every file and show all problems at once. Opens no connection."""
    from topicops.flow.spec_files import diagnostics_as_json, shown_diagnostics, validate_files
    from topicops.steps.reporting.specs.diagnostics_text import annotation, counts_line

    started = time.monotonic()
    validated = validate_files(topics, environment=environment, now=datetime.now(UTC))
    found = validated.diagnostics
    counts = counts_line(found, files=validated.files, took_s=time.monotonic() - started)
    match output:
        case "json":
            print_result(diagnostics_as_json(found, topics, environment, files=validated.files))
        case "github":
            print_result("\n".join([*map(annotation, found), counts]))
        case "text":
            print_result("\n".join([*([shown_diagnostics(found)] if found else []), counts]))
    raise typer.Exit(ExitStatus.ERROR if validated.has_errors else ExitStatus.SUCCESS)
