"""``topicops schema``: JSON Schemas of the spec files, for editors, and of the plan, for programs."""

from __future__ import annotations

import json
from importlib import resources
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.model.errors import UsageError

PLAN = "plan"


def schema_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="topic, profile, environment, exceptions, plan. Default: list all files."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of one kind of file, or where the schemas are installed."""
    kinds = schema_kinds()
    if kind is None:
        folder = resources.files("topicops").joinpath("schema")
        print_result("\n".join(f"{name}: {folder.joinpath(f'{name}.v1.json')}" for name in kinds))
        return
    if kind not in kinds:
        raise UsageError(f"there is no kind {kind!r}; the kinds are {', '.join(kinds)}")
    print_result(render_schema(kind))


def schema_kinds() -> tuple[str, ...]:
    """The kinds of files that people write, and the plan."""
    from topicops.steps.specs.json_schema import KINDS

    return (*KINDS, PLAN)


def render_schema(kind: str) -> str:
    """The text of the file in the repository, without the last line feed."""
    from topicops.model.plans.plan_schema import plan_schema
    from topicops.steps.specs.json_schema import schema_of

    return json.dumps(plan_schema() if kind == PLAN else schema_of(kind), indent=2)
