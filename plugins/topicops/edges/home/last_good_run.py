"""The last good run of each DAG: ``<home>/last-good-run/<DAG id>.json``.

A run that does more than look removes it first, so that after a crash or a failure the next run makes every check.
"""

from __future__ import annotations

from pathlib import Path

from topicops.edges.home.artifacts import name_on_disk
from topicops.edges.home.disk_errors import as_artifact_error
from topicops.edges.home.memory_file import MemoryFile
from topicops.model.runs.good_run import GoodRun


class LastGoodRun:
    """The record of one DAG, kept below ``home``."""

    def __init__(self, home: Path, group: str) -> None:
        self._file = MemoryFile(home / "last-good-run" / f"{name_on_disk(group)}.json", GoodRun)
        self.path = self._file.path

    def read(self) -> GoodRun | None:
        """None: there is none, or a later run was not good. Raises ``ArtifactError`` for a damaged one."""
        return self._file.read()

    def write(self, run: GoodRun) -> None:
        """Raises ``ArtifactError``."""
        self._file.write(run)

    def forget(self) -> None:
        """Raises ``ArtifactError``."""
        with as_artifact_error(self.path, "cannot be removed", "; remove it by hand"):
            self.path.unlink(missing_ok=True)
