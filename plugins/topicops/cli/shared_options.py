"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Engine = Literal["spark", "python"]
Format = Literal["text", "json", "markdown"]
TextOrJson = Literal["text", "json"]

EnvironmentOption = Annotated[str, typer.Option("--environment", "-e", help="Name of a file in topics/environments/.")]
EnvironmentsOption = Annotated[
    list[str],
    typer.Option(
        "--environment", "-e", help="Name of a file in topics/environments/; may be repeated. all: each of them."
    ),
]
TopicsOption = Annotated[Path, typer.Option("--topics", help="The folder of specs.")]
FormatOption = Annotated[Format, typer.Option("--format", help="text, json or markdown.")]
TextOrJsonOption = Annotated[TextOrJson, typer.Option("--format", help="text or json.")]
DetailedExitcodeOption = Annotated[
    bool, typer.Option("--detailed-exitcode", help="Exit with status 2 when there is a change or a difference.")
]
HistoryEngineOption = Annotated[Engine, typer.Option("--engine", help="Ask the history with spark or with python.")]
