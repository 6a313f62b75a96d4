"""``topicops explain`` and ``topicops code``: where a topic's values come from, and what a code means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment


def explain_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Show where each value of a topic comes from, and what it overrode. Opens no connection."""
    from topicops.features.explain.explanation import explain
    from topicops.features.explain.text import explain_text
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
    from topicops.features.explain.codes import code_text, find_code
    from topicops.model.codes import Code

    if code is None:
        print_result("\n".join(f"{each}  {each.meaning}" for each in Code))
    else:
        print_result(code_text(find_code(code)))
