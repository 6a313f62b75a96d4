"""``topicops why``: why a topic is stuck, and what leads out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicops.cli.output import print_value
from topicops.cli.shared_options import EnvironmentOption, TextOrJsonOption, TopicsOption, unrecorded_run
from topicops.model.printable import printable

if TYPE_CHECKING:
    from topicops.features.ask.why.values import Cause, Why


def why_command(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The name of a live topic, or of one that should be.")],
    environment: EnvironmentOption = None,
    topics: TopicsOption = Path("topics"),
    output: TextOrJsonOption = "text",
) -> None:
    """Say why a topic is stuck or unhealthy, from its metadata and its brokers' answers; nothing is written."""
    from topicops.features.ask.why.reading import why

    found = why(unrecorded_run(environment, topics), topic)
    print_value(found, output, why_text)


def why_text(found: Why) -> str:
    """Return a part for each cause: what is so, what ends it, what to type, and where it was read."""
    name = printable(f"{found.topic} in {found.environment}:")
    if not found.causes:
        return f"{name} nothing is wrong with it, neither in its metadata nor on its brokers."
    return "\n\n".join([name, *("\n".join(map(printable, _lines(cause))) for cause in found.causes)])


def _lines(cause: Cause) -> Iterator[str]:
    yield f"{cause.kind}: {cause.message}"
    yield f"  way out: {cause.way_out}"
    if cause.last_resort:
        yield f"  last resort: {cause.last_resort}"
    yield from (f"    {command}" for command in cause.commands)
    if cause.caution:
        yield f"  careful: {cause.caution}"
    yield f"  read from: {', '.join(cause.read_from)}"
