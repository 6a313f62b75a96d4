"""``topicops show``: a saved plan, rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import Format, print_result


def show_command(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file written by `plan --out`.")],
    output: Annotated[Format, typer.Option("--format", help="text, json or markdown.")] = "text",
) -> None:
    """Print a saved plan; no connection is made."""
    from topicops import flow

    print_result(flow.render(flow.load_plan(plan), output))
