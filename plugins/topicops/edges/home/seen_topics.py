"""Which topics a cluster had, and when each was last seen: ``<home>/seen/<environment>/<cluster id>.txt``.

A line for each topic, so that a million of them are compared without holding them: name, identity and time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from topicops.edges.durable_files import as_artifact_error, write_atomically
from topicops.edges.home.artifacts import name_on_disk
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.errors import ArtifactError

FIRST_LINE = "topicops seen 1.0\n"


class SeenTopics:
    """The topics of the last complete snapshot, and those of earlier ones that are missed since."""

    def __init__(self, home: Path, environment: str, cluster_id: str) -> None:
        self.path = home / "seen" / environment / f"{name_on_disk(cluster_id)}.txt"

    def missing(self, live: Container[str]) -> dict[str, LastSeen]:
        """The remembered topics that are not live; none before the first snapshot. Raises ``ArtifactError``."""
        with as_artifact_error(self.path, "cannot be read"):
            if not self.path.exists():
                return {}
            with self.path.open(encoding="ascii", errors="replace", newline="\n") as lines:
                return dict(self._missing(lines, live))

    def write(self, live: Iterable[tuple[str, str]], *, at: str, missed: Mapping[str, LastSeen]) -> None:
        """Replace what is remembered. Raises ``ArtifactError``.

        Args:
            live: Each topic with its identity.
            at: When they were read, RFC 3339 UTC.
            missed: Earlier topics that stay remembered although they are not live.
        """
        text = BytesIO()  # a list of all lines would need four times as much
        text.write(FIRST_LINE.encode())
        text.writelines(f"{topic} {identity} {at}\n".encode() for topic, identity in live)
        text.writelines(f"{topic} {seen.identity} {seen.at}\n".encode() for topic, seen in missed.items())
        with as_artifact_error(self.path, "cannot be written", "; check the disk, then run again"):
            write_atomically(self.path, text.getvalue())

    def _missing(self, lines: Iterator[str], live: Container[str]) -> Iterator[tuple[str, LastSeen]]:
        if next(lines, "") != FIRST_LINE:
            raise ArtifactError(f"{self.path}: does not begin with {FIRST_LINE.strip()!r}; remove it")
        for line in lines:
            topic, _, rest = line.partition(" ")
            if topic in live:
                continue
            found = rest.removesuffix("\n").split(" ")
            if len(found) != 2 or not rest.endswith("\n"):
                raise ArtifactError(f"{self.path}: a line is damaged, {line[:60]!r}; remove the file")
            yield topic, LastSeen(identity=found[0], at=found[1])
