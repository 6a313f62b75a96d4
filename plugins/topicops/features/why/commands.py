"""``topicops why``: why a topic is stuck, and what leads out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.cli.runs import unrecorded_run
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, one_environment


def why_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The name of a live topic, or of one that should be.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Say why a topic is stuck or unhealthy, from its znodes and its brokers' answers; nothing is written."""
    from topicops.features.why.reading import why
    from topicops.features.why.text import why_text
    from topicops.model.json_types import json_text

    found = why(unrecorded_run(one_environment(environment, topics), topics), topic)
    print_result(json_text(found) if output == "json" else why_text(found))
