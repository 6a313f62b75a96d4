"""``topicops local spark``: a Spark Connect server that stays up, and the class archive for a faster start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

import typer

from topicops.cli.output import print_error, progress
from topicops.cli.shared_options import TextOrJsonOption
from topicops.flow import home_folder
from topicops.model.exit_status import ExitStatus
from topicops.steps.reporting.json_text import json_text

if TYPE_CHECKING:
    from topicops.features.sandbox.edges.spark_server import SparkServer

app = typer.Typer(no_args_is_help=True, help="A Spark server that stays up, so that plans and checks find it warm.")

Home = Annotated[
    Path | None,
    typer.Option(help="The folder of the server's state and log. [default: $TOPICOPS_HOME, else .topicops]"),
]


@app.command()
def up(
    home: Home = None,
    port: Annotated[int | None, typer.Option(help="By default the port of last time, or a free one.")] = None,
) -> None:
    """Start the server on 127.0.0.1 unless it runs, and have it load what runs use."""
    from topicops.features.sandbox.edges.spark_server import SparkServer

    server = SparkServer.spawn(home or home_folder(), port=port)
    server.warm_up(progress=progress)
    typer.echo(status_text(server))


@app.command()
def down(home: Home = None) -> None:
    """Stop the server that `up` started."""
    from topicops.features.sandbox.edges.spark_server import SparkServer

    server = SparkServer.find(home or home_folder())
    typer.echo("Stopped Spark." if server and server.stop() else "No Spark server is running.")


@app.command()
def status(home: Home = None, output: TextOrJsonOption = "text") -> None:
    """Show whether the server runs, and how to use it. The exit status is 1 unless it answers."""
    from topicops.features.sandbox.edges.spark_server import SparkServer

    server = SparkServer.find(home or home_folder())
    if output == "json":
        typer.echo(json_text(status_json(server)))
    else:
        typer.echo(status_text(server) if server else "No Spark server was started here: topicops local spark up")
    if server is None or not server.answers:
        raise typer.Exit(ExitStatus.ERROR)


@app.command()
def archive() -> None:
    """Create the class archive from which Spark starts with half the work: once for each version, about a minute."""
    from topicops.edges.spark.class_archive import train_archive

    path = train_archive()
    if path is None:
        print_error("topicops: the class archive could not be created; Spark works without, only its start is slower")
        raise typer.Exit(ExitStatus.ERROR)
    typer.echo(f"Spark's class archive: {path}")


class SparkStatusJson(TypedDict):
    """Without the token; the other fields are there once a server was started."""

    format_version: Literal[1]
    running: bool
    pid: NotRequired[int]
    port: NotRequired[int]
    address_file: NotRequired[str]
    log: NotRequired[str]


def status_json(server: SparkServer | None) -> SparkStatusJson:
    if server is None:
        return {"format_version": 1, "running": False}
    return {
        "format_version": 1,
        "running": server.answers,
        "pid": server.process.pid,
        "port": server.port,
        "address_file": str(server.address_file),
        "log": str(server.log),
    }


def status_text(server: SparkServer) -> str:
    """The status in lines for a person, without the token."""
    state = "running" if server.answers else "not running"
    return "\n".join(
        (
            f"Spark server: {state}, pid {server.process.pid}, port {server.port} of this machine",
            f"log:          {server.log}",
            f'use it:       export TOPICOPS_SPARK="$(cat {server.address_file})"',
        )
    )
