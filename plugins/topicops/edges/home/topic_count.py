"""How many topics each cluster had at its last complete snapshot: ``<home>/last-good/<cluster id>.json``.

``limits.shrinkPercent`` compares with it. It is written after a complete snapshot, and before a run deletes topics.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from topicops.edges.home.memory_file import MemoryFile, cluster_file
from topicops.model.errors import ArtifactError

FORMAT_VERSION = "1.0"


class _TopicCount(msgspec.Struct):
    format_version: str
    cluster_id: str
    topics: int


class TopicCount:
    """The count of one cluster, kept below ``home``."""

    def __init__(self, home: Path, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._file = MemoryFile(cluster_file(home / "last-good", cluster_id), _TopicCount)
        self.path = self._file.path

    def read(self) -> int | None:
        """Topics at the last complete snapshot; None before the first one. Raises ``ArtifactError``."""
        found = self._file.read()
        if found is None:
            return None
        if found.cluster_id != self._cluster_id:
            raise ArtifactError(f"{self.path}: is about another cluster, {found.cluster_id!r}; remove it")
        return found.topics

    def write(self, topics: int) -> None:
        """Remember the count. Raises ``ArtifactError``."""
        self._file.write(_TopicCount(FORMAT_VERSION, self._cluster_id, topics))
