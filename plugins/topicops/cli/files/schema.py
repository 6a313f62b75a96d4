"""``topicops schema``: JSON Schemas of the spec files, for editors, and of what topicops writes, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.model.errors import UsageError


def schema_command(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="One of the list. Default: list all kinds and their files.")
    ] = None,
) -> None:
    """Print the JSON Schema of one kind of file or output, or where the schemas are installed."""
    print_result("\n".join(listing()) if kind is None else render_schema(kind))


def listing() -> Iterator[str]:
    """The kinds in two groups, each with its file."""
    folder = resources.files("topicops").joinpath("schema")
    for title, files in (("Files that people write", spec_files()), ("Outputs for programs", output_files())):
        yield f"{title}:"
        yield from (f"  {kind}: {folder.joinpath(file)}" for kind, file in files.items())


def spec_files() -> Mapping[str, str]:
    """The schema's path below ``schema/``, by kind."""
    from topicops.steps.specs.json_schema import KINDS

    return {kind: f"{kind}.v1.json" for kind in KINDS}


def output_files() -> Mapping[str, str]:
    """The same for what topicops writes."""
    from topicops.cli.json_outputs import OUTPUTS, PLAN

    return {kind: f"{kind}.v1.json" if kind == PLAN else f"outputs/{kind}.v1.json" for kind in OUTPUTS}


def render_schema(kind: str) -> str:
    """The text of the file in the repository, without the last line feed. Raises ``UsageError``."""
    from topicops.cli.json_outputs import OUTPUTS, output_schema
    from topicops.steps.specs.json_schema import KINDS, schema_of
    from topicops.steps.specs.suggestions import similar_word

    if kind not in KINDS and kind not in OUTPUTS:
        close = similar_word(kind, [*KINDS, *OUTPUTS])
        advice = f"did you mean {close}?" if close else "`topicops schema` lists the kinds"
        raise UsageError(f"there is no kind {kind!r}; {advice}")
    return json.dumps(schema_of(kind) if kind in KINDS else output_schema(kind), indent=2)
