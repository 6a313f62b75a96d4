"""Options that several commands share, defaults for those that were left out, and the run of what they name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicops.cli.output import new_run_id, print_error, progress, shown_path
from topicops.model.errors import UsageError

if TYPE_CHECKING:
    from topicops.flow.runs.run import EnvironmentRun

Engine = Literal["auto", "spark", "python"]
Format = Literal["text", "json", "markdown"]
FleetStep = Literal["plan", "drift", "verify"]
TextOrJson = Literal["text", "json"]

_ENVIRONMENT = "Name of a file in topics/environments/. Default: $TOPICOPS_ENVIRONMENT, else the only file there."


def default_topics() -> Path:
    """``topics`` in the working folder, or the repository's where there is none; relative to the working folder."""
    from topicops.edges.repository import topics_of

    found = topics_of(Path.cwd())
    return Path(os.path.relpath(found)) if found else Path("topics")


def say_where_to_start() -> None:
    """Name the first command, unless there is a folder of topics."""
    if not default_topics().is_dir():
        print_error("There are no topics here yet: start with `topicops init`")


def nearest_topics(context: typer.Context, option: typer.CallbackParam, topics: Path) -> Path:
    """Return the folder that was named, else the default."""
    source = context.get_parameter_source(option.name or "")
    return default_topics() if source is not None and source.name == "DEFAULT" else topics


EnvironmentOption = Annotated[str | None, typer.Option("--environment", "-e", help=_ENVIRONMENT, show_default=False)]
EnvironmentsOption = Annotated[
    list[str] | None,
    typer.Option("--environment", "-e", help=f"{_ENVIRONMENT} May be repeated. all: each of them.", show_default=False),
]
TopicsOption = Annotated[
    Path, typer.Option("--topics", help="The folder of specs, found from any folder below.", callback=nearest_topics)
]
FormatOption = Annotated[Format, typer.Option("--format", help="text, json or markdown.")]
TextOrJsonOption = Annotated[TextOrJson, typer.Option("--format", help="text or json.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="All of each change, its replicas, and the load of brokers and racks.")
]
DetailedExitcodeOption = Annotated[
    bool,
    typer.Option(
        "--detailed-exitcode", help="Exit with status 2 when there is a change, a blocked topic or a difference."
    ),
]
EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help=(
            "Compare with spark or with python, with the same answer; auto: spark from 100,000 topics on,"
            " if it is installed."
        ),
    ),
]


def one_environment(named: str | None, topics: Path) -> str:
    """Return the environment of the command line, else of the shell, else the only one. Raises ``UsageError``."""
    return named or _environment_left_out(topics)


def all_environments(named: Sequence[str] | None, topics: Path) -> Sequence[str]:
    """Do as ``one_environment``, for commands that take several."""
    return named or [_environment_left_out(topics)]


def run_of(environment: str, topics: Path) -> EnvironmentRun:
    """Return a run whose progress goes to stderr; its folder is created by what is first written there."""
    from topicops.flow.runs.run import open_run
    from topicops.plugged import moves

    run_id = new_run_id()
    return open_run(
        environment=environment, topics=topics, group="cli", run_id=run_id, progress=progress, moves=moves()
    )


def new_run(environment: str, topics: Path) -> EnvironmentRun:
    """Return a run as ``run_of``; stderr names its folder before the first step."""
    run = run_of(environment, topics)
    progress(f"Keeping this run's files in {shown_path(run.store.folder)}")
    return run


def unrecorded_run(named: str | None, topics: Path) -> EnvironmentRun:
    """Return a run of ``one_environment``, for a command that only reads and prints: its folder is never created."""
    return run_of(one_environment(named, topics), topics)


def _environment_left_out(topics: Path) -> str:
    from topicops.edges.specs.open_files import environment_files, require_folder

    if named := os.environ.get("TOPICOPS_ENVIRONMENT"):
        return named
    require_folder(topics)
    there = environment_files(topics)
    if not there:
        raise UsageError(f"{topics}/environments: no environment has a file there")
    if len(there) > 1:
        raise UsageError(f"name one environment with -e, or in TOPICOPS_ENVIRONMENT: {', '.join(there)}")
    return there[0]


def seconds_of(text: str) -> float:
    """Return ``30s``, ``5m``, ``1h`` or plain seconds. Raises ``UsageError``."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    number = text.rstrip("smh")
    unit = text[len(number) :] or "s"
    if not number.isdecimal() or unit not in units:
        raise UsageError(f"{text!r} is no duration: write it as 30s, 5m or 1h")
    return int(number) * units[unit]
