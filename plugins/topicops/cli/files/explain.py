"""``topicops explain``: each value of a topic, with the file and line that it came from."""

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
    from topicops.flow.spec_files import explain
    from topicops.steps.reporting.specs.explain_text import explain_json, explain_text

    explanation = explain(topics, topic, one_environment(environment, topics))
    print_result(explain_json(explanation) if output == "json" else explain_text(explanation))
