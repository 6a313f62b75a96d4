"""``topicops explain``: where a topic's values come from, and what a code means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result, print_value
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment
from topicops.model.codes import Code
from topicops.model.errors import UsageError

_CODE = re.compile(r"\s*(top|v|q)?([0-9]{1,9})\s*", re.IGNORECASE)


def explain_command(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC|CODE]",
            help="A topic's name, or a code as messages and reports have it. Default: list all codes.",
        ),
    ] = None,
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Show where each value of a topic comes from, and what it overrode; or what a code means. Opens no connection."""
    if word is None:
        print_result("\n".join(f"{each}  {each.meaning}" for each in Code))
    elif output == "text" and (code := _CODE.fullmatch(word)) and not any(topics.glob(f"*/{word}.yaml")):
        print_result(_code_text(find_code((code[1] or "TOP").upper(), code[2])))
    else:
        from topicops.features.files.explain.explanation import explain, explain_text

        print_value(explain(topics, word, one_environment(environment, topics)), output, explain_text)


def find_code(letters: str, digits: str) -> Code:
    """Return the code of these letters whose number is this. A ``UsageError`` names the nearest one."""
    alike = [code for code in Code if code.startswith(letters)]
    nearest = min(alike, key=lambda code: abs(int(code.removeprefix(letters)) - int(digits)))
    if int(nearest.removeprefix(letters)) != int(digits):
        raise UsageError(f"there is no code {letters}{digits}; the nearest is {nearest}; `topicops explain` lists all")
    return nearest


def _code_text(found: Code) -> str:
    parts = {"Cause:": found.cause, "Example:": found.example, "Fix:": found.fix, "More:": found.page}
    lines = (f"  {part:<8} {text}" for part, text in parts.items() if text)
    return "\n".join([f"{found}: {found.meaning}", "", *lines])
