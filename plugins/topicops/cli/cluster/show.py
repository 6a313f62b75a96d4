"""``topicops show``: print a saved plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.shared_options import FormatOption


def show_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file written by `plan --out`.")],
    output: FormatOption = "text",
) -> None:
    """Print a saved plan; no connection is made."""
    from topicops.flow import reporting
    from topicops.flow.runs.run import load_plan

    print_result(reporting.render(load_plan(plan), output), output)
