"""``topicops schema``: JSON Schemas of the spec files, for editors, and of what topicops writes, for programs."""

from __future__ import annotations

import json
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
    if kind is not None:
        print_result(rendered(kind))
        return
    folder = resources.files("topicops").joinpath("made_schemas")
    for title, files in (("Files that people write", spec_files()), ("Outputs for programs", output_files())):
        print_result(f"{title}:")
        for name, file in files.items():
            print_result(f"  {name}: {folder.joinpath(file)}")


def spec_files() -> dict[str, str]:
    """Return the path below ``schema/`` of each kind of file that people write."""
    from topicops.features.files.schemas.spec_files import KINDS

    return {kind: f"{kind}.v1.json" for kind in KINDS}


def output_files() -> dict[str, str]:
    """Return the path below ``schema/`` of each kind of output."""
    from topicops.cli.json_outputs import OUTPUTS

    return {kind: f"{kind}.v1.json" if kind == "plan" else f"outputs/{kind}.v1.json" for kind in OUTPUTS}


def rendered(kind: str) -> str:
    """Return the text of the file in the repository, without the last line feed. Raises ``UsageError``."""
    from topicops.cli.json_outputs import OUTPUTS
    from topicops.features.files.schemas.outputs import schema_of_output
    from topicops.features.files.schemas.spec_files import KINDS, schema_of
    from topicops.steps.specs.suggestions import similar_word

    if kind in KINDS:
        return json.dumps(schema_of(kind), indent=2)
    if kind in OUTPUTS:
        return json.dumps(schema_of_output(kind, OUTPUTS[kind].kind), indent=2)
    close = similar_word(kind, [*KINDS, *OUTPUTS])
    advice = f"did you mean {close}?" if close else "`topicops schema` lists the kinds"
    raise UsageError(f"there is no kind {kind!r}; {advice}")
