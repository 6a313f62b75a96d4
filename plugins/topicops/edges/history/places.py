"""Where the history of an environment is kept."""

from __future__ import annotations

from pathlib import Path

from topicops.edges.home.artifacts import folders_in, name_on_disk
from topicops.model.runs.history import HistoryEntry, TableName


def table_folder(home: Path, table: TableName, environment: str) -> Path:
    return home / "history" / table / f"environment={environment}"


def spool_folder(home: Path, environment: str) -> Path:
    return home / "history" / "spool" / f"environment={environment}"


def spool_path(home: Path, entry: HistoryEntry) -> Path:
    return spool_folder(home, entry.environment) / f"{name_on_disk(entry.run)}.json"


def known_environments(home: Path) -> tuple[str, ...]:
    """Those that have a history, sorted."""
    roots = [home / "history" / "runs", home / "history" / "spool"]
    return tuple(sorted({folder.name.partition("=")[2] for root in roots for folder in folders_in(root)}))
