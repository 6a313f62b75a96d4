"""``topicops schema``: what editors need to help with the files."""

from __future__ import annotations

import json
from importlib import resources
from typing import Annotated

import typer

from topicops.cli.output import tell
from topicops.model.errors import UsageError


def schema_command(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="[KIND]", help="topic, profile, environment or exceptions; left out: where all are."),
    ] = None,
) -> None:
    """Print the JSON Schema of one kind of file, or where the schemas are installed."""
    from topicops.steps.spec_schema import KINDS

    if kind is None:
        folder = resources.files("topicops").joinpath("schema")
        tell("\n".join(f"{name}: {folder.joinpath(f'{name}.v1.json')}" for name in KINDS))
        return
    if kind not in KINDS:
        raise UsageError(f"no kind is called {kind!r}; there are: {', '.join(KINDS)}")
    tell(render_schema(kind))


def render_schema(kind: str) -> str:
    """As it is checked in, without the last line feed."""
    from topicops.steps.spec_schema import schema_of

    return json.dumps(schema_of(kind), indent=2)
