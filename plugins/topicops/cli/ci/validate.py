"""``topicops ci validate``: the problems that a branch brings, on their lines; older ones are one line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import TopicsOption
from topicops.model.exit_status import ExitStatus
from topicops.model.printable import plural


def validate_command(
    topics: TopicsOption = Path("topics"),
    since: Annotated[
        str | None,
        typer.Option("--since", help="A commit or branch: what it has is old. Default: by the CI.", show_default=False),
    ] = None,
    output: Annotated[
        Literal["text", "json", "github"] | None,
        typer.Option("--format", help="text, json, or github annotations. Default: by the CI.", show_default=False),
    ] = None,
) -> None:
    """Check every file. What the branch brings is shown in full; what was wrong before is counted. No connection."""
    from topicops.flow.pull_requests.places import base_of_the_branch, default_format
    from topicops.flow.pull_requests.validating import validate_change
    from topicops.flow.spec_files import shown_diagnostics
    from topicops.steps.reporting.specs.diagnostics_text import annotation, counts_line, diagnostics_json

    started = time.monotonic()
    found = validate_change(topics, since=since or base_of_the_branch())
    counts = counts_line(found.brought, files=found.files, took_s=time.monotonic() - started)
    match output or default_format():
        case "json":
            print_result(diagnostics_json(found.brought, files=found.files))
        case "github":
            print_result("\n".join([*map(annotation, found.brought), counts]))
        case _:
            print_result("\n".join([*([shown_diagnostics(found.brought)] if found.brought else []), counts]), "text")
    if old := sum(problem.is_error for problem in found.old):
        print_error(f"{plural(old, 'error')} from before this branch, in other files; `topicops validate` lists all")
    raise typer.Exit(ExitStatus.ERROR if any(p.is_error for p in found.brought) else ExitStatus.SUCCESS)
