"""Create the class-data archive (CDS) from which the servers of the local cluster start with half the work.

``python -m topicops_local.class_archive`` creates it where none fits: 42 MB in the cache folder, in
about ten seconds. Decision 0012 has the gain.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from topicops.edges.durable_files import write_atomically
from topicops.features.shared.java import created_archive, find_java
from topicops.model.errors import LocalClusterError
from topicops_local.cluster import LocalCluster
from topicops_local.jars import Progress, kafka_jars, quiet
from topicops_local.processes import stop
from topicops_local.server_files import class_archive
from topicops_local.state import Server, broker_role

_BROKER = 1
_WRITING_S = 120.0


def train_archive(progress: Progress = quiet) -> Path | None:
    """Return the archive for this Java and these jars, created if it is missing; None when that fails."""
    return created_archive("Kafka", lambda: class_archive(find_java(), kafka_jars(progress=progress)), _train)


class _TrainingCluster(LocalCluster):
    """Its broker writes the archive into the home folder when it stops."""

    @property
    def _made(self) -> Path:
        return self.home / "made.jsa"

    def written(self) -> bytes:
        """Return the archive, whole: a JVM dies of one that is cut off."""
        if stop([self._running(broker_role(_BROKER))], grace_s=_WRITING_S):
            raise LocalClusterError(f"the broker did not write its classes within {_WRITING_S:.0f} s")
        return self._made.read_bytes()

    def _command(self, server: Server) -> list[str]:
        java, *arguments = super()._command(server)
        return [java, *([f"-XX:ArchiveClassesAtExit={self._made}"] if server.broker else []), *arguments]


def _train(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{archive.stem}-", dir=archive.parent, ignore_cleanup_errors=True) as home:
        cluster = _TrainingCluster.up(Path(home), brokers=_BROKER)
        try:
            write_atomically(archive, cluster.written())
        finally:
            cluster.down(now=True)


def _show(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    created = train_archive(_show)
    sys.stdout.write(f"Kafka's class-data archive: {created or 'none, see the log'}\n")
