"""``topicops dags``: the DAG file for Airflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicops.cli.output import print_result


def dags_command(
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FOLDER", help="Write the file into this folder; a file with own lines stays."),
    ] = None,
) -> None:
    """Print the DAG file for Airflow, or write it. It reads the folder `topics` beside its own folder."""
    from topicops.flow.dag_file import dag_file, write_dag_file

    if write is None:
        print_result(dag_file().rstrip("\n"))
        return
    path, is_new = write_dag_file(write)
    print_result(f"{path}: {'written' if is_new else 'is there already, as it would be written'}")
