"""``topicops fmt``: every file in its standard form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_error, print_result
from topicops.cli.shared_options import default_topics
from topicops.model.errors import ExitStatus
from topicops.model.printable import printable


def fmt_command(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Files or folders of them. Default: topics.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; list the files that would change, and exit with status 1.")
    ] = False,
) -> None:
    """Write every file in its standard form: order, spelling, indentation. Values and comments stay. No connection."""
    from topicops.features.files.formatting.files import format_files, format_text
    from topicops.flow.spec_files import selection_of

    selection = selection_of(paths or [default_topics()])
    result = format_files(selection, check=check, on_change=lambda file: print_result(printable(file)))
    print_error(format_text(result, check=check))
    if check and result.changed:
        raise typer.Exit(ExitStatus.ERROR)
