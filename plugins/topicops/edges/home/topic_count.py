"""How many topics each cluster had at its last complete snapshot: ``<home>/last-good/<cluster id>.json``.

The memory behind ``limits.shrinkPercent``: written after a complete snapshot, and by whoever is about to delete topics.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.model.errors import ArtifactError


class _TopicCount(msgspec.Struct):
    format_version: str
    cluster_id: str
    topics: int


class TopicCount:
    """The memory of one cluster, in the folder ``home``."""

    def __init__(self, home: Path, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        # The id comes from outside: whatever could leave the folder is percent-encoded.
        self.path = home / "last-good" / f"{quote(cluster_id, safe='')}.json"

    def read(self) -> int | None:
        """Topics at the last good snapshot of this cluster; None where there was none."""
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=_TopicCount)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ArtifactError(f"{self.path}: cannot be read ({error}); repair or remove it") from error
        if found.cluster_id != self._cluster_id:
            raise ArtifactError(f"{self.path}: is about another cluster, {found.cluster_id!r}; remove it")
        return found.topics

    def write(self, topics: int) -> None:
        """Remember a complete snapshot; another process sees the old file or the new one, never half of one."""
        try:
            write_atomically(self.path, self._encoded(topics))
        except OSError as error:
            raise ArtifactError(f"{self.path}: cannot be written ({error.strerror}); check TOPICOPS_HOME") from error

    def _encoded(self, topics: int) -> bytes:
        record = _TopicCount("1.0", self._cluster_id, topics)
        return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
