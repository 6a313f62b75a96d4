"""``topicops schema``: JSON Schemas of the spec files, for editors, and of what topicops writes, for programs."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.model.errors import UsageError

_FOLDER = Path(str(resources.files("topicops"))) / "made_schemas"
_PLAN = "plan"
"""The one output whose file is beside those of spec files."""


def schema_command(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="One of the list. Default: list all kinds and their files.")
    ] = None,
) -> None:
    """Print the JSON Schema of one kind of file or output, or where the schemas are installed."""
    if kind is not None:
        print_result(_schema(kind))
        return
    for title, files in (("Files that people write", spec_files()), ("Outputs for programs", output_files())):
        print_result(f"{title}:")
        for name, file in files.items():
            print_result(f"  {name}: {file}")


def spec_files() -> dict[str, Path]:
    return {name: file for name, file in _files(_FOLDER).items() if name != _PLAN}


def output_files() -> dict[str, Path]:
    return {_PLAN: _files(_FOLDER)[_PLAN], **_files(_FOLDER / "outputs")}


def _files(folder: Path) -> dict[str, Path]:
    return {file.name.partition(".")[0]: file for file in sorted(folder.glob("*.json"))}


def _schema(kind: str) -> str:
    files = {**spec_files(), **output_files()}
    if kind in files:
        return files[kind].read_text(encoding="utf-8").removesuffix("\n")
    from topicops.steps.specs.suggestions import similar_word

    close = similar_word(kind, [*files])
    advice = f"did you mean {close}?" if close else "`topicops schema` lists the kinds"
    raise UsageError(f"there is no kind {kind!r}; {advice}")
