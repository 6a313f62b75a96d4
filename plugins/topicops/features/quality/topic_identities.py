"""The identity of each topic when quality was last checked: ``$TOPICOPS_HOME/identities/<cluster id>.json``.

A topic that was deleted and created again outside git has its old name and another identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topicops.edges.home.memory_file import MemoryFile, cluster_file


class TopicIdentities(MemoryFile[Mapping[str, str]]):
    """Topic id, or ``czxid:<n>``, by topic, of one cluster; a write keeps no older topics."""

    def __init__(self, home: Path, cluster_id: str) -> None:
        super().__init__(cluster_file(home / "identities", cluster_id), dict[str, str])
