"""Where the tables of runs are: each run's in its own folder, or all below the URI that ``TOPICOPS_TABLES`` gives."""

from __future__ import annotations

from pathlib import Path

from topicops.edges.tables.table_folder import TableFolder, without_secret
from topicops.model.errors import ArtifactError

RUNS = "runs"
"""The folder of all runs."""
OWN_FOLDER = "tables"
"""The place of tables that are in the run's own folder."""


def place_of_tables(uri: str | None, run_folder: Path) -> str:
    """The place of a run's tables, as the run writes it down: without keys and passwords.

    Args:
        uri: The value of ``TOPICOPS_TABLES``.
    """
    return "/".join((without_secret(uri).rstrip("/"), *_names(run_folder))) if uri else OWN_FOLDER


def tables_at(place: str, uri: str | None, run_folder: Path) -> TableFolder:
    """The tables of a run, by the place that it wrote down.

    Raises:
        ArtifactError: ``TOPICOPS_TABLES`` names another place by now, or one that cannot be opened.
    """
    if place == OWN_FOLDER:
        return TableFolder.at(run_folder / OWN_FOLDER)
    if uri is None or place != place_of_tables(uri, run_folder):
        raise ArtifactError(
            f"{place}: the run's tables are there, and TOPICOPS_TABLES now names another place, or none; set it back, "
            "or start a new run"
        )
    return _below(uri, run_folder)


def remove_tables(uri: str, run_folder: Path) -> None:
    """Remove a run's tables below the URI. Raises ``ArtifactError`` when the store does not answer, or refuses."""
    _below(uri, run_folder).remove_all()


def _below(uri: str, run_folder: Path) -> TableFolder:
    return TableFolder.at(uri).below(*_names(run_folder))


def _names(run_folder: Path) -> tuple[str, ...]:
    """Group and run id, as their folders are named; and the environment, in a run of many."""
    is_of_many = run_folder.parts[-4:-3] == (RUNS,)
    return run_folder.parts[-3 if is_of_many else -2 :]
