"""Create the class-data archive (CDS) from which the servers of the local cluster start with half the work.

``python -m topicops.edges.local.class_archive`` creates it where none fits: 42 MB in the cache folder, in about ten
seconds. Decision 0012 has the gain.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from topicops.edges.durable_files import write_atomically
from topicops.edges.java import find_java
from topicops.edges.local.cluster import LocalCluster
from topicops.edges.local.jars import kafka_jars
from topicops.edges.local.server_files import class_archive
from topicops.edges.local.state import Server
from topicops.model.errors import TopicopsError

_log = logging.getLogger(__name__)


def train_archive() -> Path | None:
    """The archive for this Java and these jars, created if it is missing; None when that fails.

    It is optional: without an archive the servers only start more slowly.
    """
    try:
        archive = class_archive(find_java(), kafka_jars())
        if not archive.is_file():
            _train(archive)
    except (TopicopsError, OSError) as error:
        _log.warning("no class-data archive for Kafka, which will start more slowly: %s", error)
        return None
    return archive


class _TrainingCluster(LocalCluster):
    """Its broker writes the archive into the home folder when it stops."""

    @property
    def made(self) -> Path:
        return self.home / "made.jsa"

    def _command(self, server: Server) -> list[str]:
        java, *arguments = super()._command(server)
        return [java, *([f"-XX:ArchiveClassesAtExit={self.made}"] if server.broker else []), *arguments]


def _train(archive: Path) -> None:
    """Run one broker, then copy its complete archive: the JVM dies of an empty one, as a power cut may leave it."""
    with tempfile.TemporaryDirectory(prefix=f"{archive.stem}-", dir=archive.parent, ignore_cleanup_errors=True) as home:
        cluster = _TrainingCluster.up(Path(home), brokers=1)
        cluster.down()
        write_atomically(archive, cluster.made.read_bytes())


if __name__ == "__main__":
    sys.stdout.write(f"Kafka's class-data archive: {train_archive() or 'none, see the log'}\n")
