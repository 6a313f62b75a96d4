"""``topicops explain`` and ``topicops code``: where a topic's values come from, and what a code means."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment
from topicops.model.codes import CODES, Code
from topicops.model.errors import UsageError


def explain_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Show where each value of a topic comes from, and what it overrode. Opens no connection."""
    from topicops.features.files.explain.explanation import explain, explain_text
    from topicops.model.json_types import json_text

    found = explain(topics, topic, one_environment(environment, topics))
    print_result(json_text(found) if output == "json" else explain_text(found))


def code_command(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE]", help="A code as in a message or report. Default: all.", show_default=False),
    ] = None,
) -> None:
    """Explain a code, or list all of them."""
    if code is None:
        print_result("\n".join(f"{each}  {each.meaning}" for each in Code))
        return
    found = find_code(code)
    parts = {"Cause:": found.cause, "Example:": found.example, "Fix:": found.fix, "More:": found.page}
    lines = (f"  {part:<8} {text}" for part, text in parts.items() if text)
    print_result("\n".join([f"{found}: {found.meaning}", "", *lines]))


def find_code(text: str) -> Code:
    """Return the code as people type it: ``TOP204``, ``204``, ``v08``. A ``UsageError`` names the nearest one."""
    wanted = text.strip().upper()
    wanted = f"TOP{wanted}" if wanted.isdecimal() else wanted
    if wanted in CODES:
        return CODES[wanted]
    digits = wanted.removeprefix("TOP")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        problems = [code for code in Code if code.startswith("TOP")]
        nearest: str = min(problems, key=lambda code: abs(int(code.removeprefix("TOP")) - int(digits)))
    else:
        nearest = difflib.get_close_matches(wanted, CODES, n=1, cutoff=0.0)[0]
    raise UsageError(f"there is no code {text!r}; the nearest is {nearest}, and `topicops code` lists all")
