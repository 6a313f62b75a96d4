"""The DAG file that people put beside their topics. Airflow itself is not needed for it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from topicops.edges.specs.writer import write_new
from topicops.model.errors import SpecFileError

NAME = "topicops_dags.py"


def dag_file() -> str:
    """The text of the file."""
    return resources.files("topicops").joinpath("first_files", NAME).read_text(encoding="utf-8")


def write_dag_file(folder: Path) -> tuple[Path, bool]:
    """Where the file is, and whether it is new.

    Raises:
        SpecFileError: There is a file with other lines, which stays; or the disk refuses.
    """
    path = folder / NAME
    if path.is_file() and path.read_bytes() == dag_file().encode():
        return path, False
    if path.exists():
        raise SpecFileError(f"{path}: it has other lines; compare with `topicops dags`, or move it away")
    write_new(folder, {NAME: dag_file()})
    return path, True
