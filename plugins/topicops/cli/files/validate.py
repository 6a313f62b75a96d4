"""``topicops validate``: every problem of every file, on the line where it stands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import default_topics
from topicops.model.errors import ExitStatus
from topicops.model.printable import plural


def validate_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders of them. Default: topics.", show_default=False),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-e", help="Check the topics of this environment only. Default: of all."),
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"], typer.Option("--format", help="text, json, or github annotations.")
    ] = "text",
) -> None:
    """Check every file and show all problems at once. Opens no connection."""
    from topicops.flow.spec_files import selection_of, shown_diagnostics, validate_files
    from topicops.steps.reporting.diagnostics_text import annotation, counts_line, diagnostics_json

    started = time.monotonic()
    selection = selection_of(paths or [default_topics()])
    validated = validate_files(selection.topics, environment=environment)
    found = tuple(filter(selection.concerns, validated.diagnostics))
    files = selection.count() if selection.below else validated.files
    counts = counts_line(found, files=files, took_s=time.monotonic() - started)
    match output:
        case "json":
            print_result(diagnostics_json(found, files=files))
        case "github":
            print_result("\n".join([*map(annotation, found), counts]))
        case "text":
            print_result("\n".join([*([shown_diagnostics(found)] if found else []), counts]), output)
    errors = sum(problem.is_error for problem in found)
    if elsewhere := sum(problem.is_error for problem in validated.diagnostics) - errors:
        print_error(f"{plural(elsewhere, 'error')} in other files; `topicops validate` lists all")
    raise typer.Exit(ExitStatus.ERROR if errors else ExitStatus.SUCCESS)
