"""Which topic stood behind each name when quality was last looked at: ``$TOPICOPS_HOME/identities/<cluster id>.json``.

A topic that was deleted and made again outside git has its old name and another identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import msgspec

from topicops.edges.durable_files import write_atomically
from topicops.edges.home.audit_log import read_audit_log
from topicops.model.errors import ArtifactError


class TopicIdentities:
    """The memory of one cluster, in the folder ``home``."""

    def __init__(self, home: Path, cluster_id: str) -> None:
        # The id comes from outside: whatever could leave the folder is percent-encoded.
        self.path = home / "identities" / f"{quote(cluster_id, safe='')}.json"

    def read(self) -> Mapping[str, str] | None:
        """Topic id, or ``czxid:<n>``, by topic; None before the first look. Raises ``ArtifactError``."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ArtifactError(f"{self.path}: cannot be read ({error}); repair or remove it") from error

    def write(self, identities: Mapping[str, str]) -> None:
        """Remember these and no others. Raises ``ArtifactError``."""
        try:
            write_atomically(self.path, msgspec.json.encode(identities))
        except OSError as error:
            raise ArtifactError(f"{self.path}: cannot be written: {error.strerror}; check the disk") from error


def own_topic_identities(audit_folder: Path, environment: str) -> frozenset[str]:
    """Of all topics that this tool has made, by the audit log. Raises ``ArtifactError``."""
    lines = read_audit_log(audit_folder, environment).lines
    return frozenset(line.topic_id_after for line in lines if line.action == "create" and line.topic_id_after)
