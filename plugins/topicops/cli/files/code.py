"""``topicops code``: what a code of a problem means, its cause, and its fix."""

from __future__ import annotations

from typing import Annotated

import typer

from topicops.cli.output import print_result


def code_command(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="A code as in a message or report. Default: all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain a code, or list all of them."""
    from topicops.model.codes import Code
    from topicops.steps.reporting.specs.codes_text import code_list, code_text, find_code

    print_result(code_list(Code) if code is None else code_text(find_code(code)))
