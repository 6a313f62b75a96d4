"""Small files that one run writes and the next ones read: a table of their folders and types, and the topics seen."""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from topicops.edges.durable_files import as_artifact_error, create_atomically, write_atomically
from topicops.edges.home.artifacts import name_on_disk
from topicops.edges.places import Place
from topicops.model.cluster.snapshot import LastSeen
from topicops.model.errors import ArtifactError
from topicops.model.json_types import JsonError, json_errors, known
from topicops.model.runs.memories import (
    HeldSet,
    HomeMark,
    LatestPlan,
    NewestGood,
    Rejections,
    Stop,
    TopicCount,
    VerifiedCommit,
)

T = TypeVar("T")


class MemoryFile(Generic[T]):
    """One value in one file; every problem is an ``ArtifactError`` with the path."""

    def __init__(self, path: Place, value_type: type[T]) -> None:
        self.path = path
        self._value_type = value_type

    def read(self) -> T | None:
        """Return the value of the last write; None before the first one."""
        try:
            data = self.path.read_bytes()
            with json_errors():
                return msgspec.json.decode(data, type=known(self._value_type))
        except FileNotFoundError:
            return None
        except (OSError, JsonError) as error:
            raise ArtifactError(f"{self.path}: cannot be read ({error}); repair or remove it") from error

    def write(self, value: T) -> None:
        """Replace the value; it is on the disk when this returns."""
        with as_artifact_error(self.path, "cannot be written", "; check the disk"):
            write_atomically(self.path, msgspec.json.encode(value))

    def remove(self) -> None:
        """Forget the value; the next ``read`` gives None."""
        with as_artifact_error(self.path, "cannot be removed", "; remove it by hand"):
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Memory(Generic[T]):
    """One kind of memory: ``<home>/<folder>/<key><ending>``."""

    folder: str
    value_type: type[T]
    ending: str = ".json"

    def of(self, home: Place, key: str) -> MemoryFile[T]:
        """Give the file of an environment, a DAG or a cluster; its name may be any text."""
        return MemoryFile(home / self.folder / f"{name_on_disk(key)}{self.ending}", self.value_type)


HELD = Memory("held", HeldSet)
"""Newest held set of an environment, which the pipeline's gate writes.

It is read after each answer, because an answer may come hours after the question.
"""
REJECTIONS = Memory("held", Rejections, ".rejected.json")
"""Held changes that a person rejected, by environment.

A record of its own, because a person may reject a part of a question: the rest of it is another set.
"""
LATEST_PLAN = Memory("newest", LatestPlan)
"""Run of an environment's pipeline that has planned last."""
NEWEST_GOOD = Memory("newest-good", NewestGood)
"""Newest good run of an environment's pipeline, for a monitor that checks that runs still come."""
VERIFIED = Memory("verified", VerifiedCommit)
"""Commit at which an environment was last applied and verified as a whole; ``policy.after`` of others uses it."""
UNVERIFIED = Memory("unverified", dict[str, str])
"""Topics that a run changed and no run has verified yet: the run by topic, by environment."""
STOPS = Memory("stops", Stop)
"""Newest stop of an environment."""
TOPIC_COUNT = Memory("last-good", TopicCount)
"""Count of topics by cluster, with which ``limits.shrinkPercent`` compares."""
IDENTITIES = Memory("identities", dict[str, str])
"""Topic id, or ``czxid:<n>``, by topic when quality was last checked, by cluster.

A topic that was deleted and created again outside git has its old name and another identity.
"""
HOME_MARK = "home.json"


def topic_count(home: Place, cluster_id: str) -> int | None:
    """Give the topics at the last complete snapshot; None before the first one. Raises ``ArtifactError``."""
    file = TOPIC_COUNT.of(home, cluster_id)
    found = file.read()
    if found is not None and found.cluster_id != cluster_id:
        raise ArtifactError(f"{file.path}: is about another cluster, {found.cluster_id!r}; remove it")
    return found.topics if found else None


def keep_topic_count(home: Place, cluster_id: str, topics: int) -> None:
    """Remember the count. Raises ``ArtifactError``."""
    TOPIC_COUNT.of(home, cluster_id).write(TopicCount(cluster_id=cluster_id, topics=topics))


def read_mark(home: Place) -> str | None:
    """Give the token of a home; None if it has none. Raises ``ArtifactError``."""
    found = MemoryFile(home / HOME_MARK, HomeMark).read()
    return found.token if found else None


def mark_of(home: Place) -> str:
    """Give the token of a home; the first call makes it, and later ones never change it. Raises ``ArtifactError``."""
    token = read_mark(home)
    if token is not None:
        return token
    path, content = home / HOME_MARK, msgspec.json.encode(HomeMark(token=secrets.token_hex(16)))
    with as_artifact_error(path, "cannot be written", "; check the disk"):
        try:
            create_atomically(path, content)
        except FileExistsError:
            pass  # another process was faster, and its token counts
        except OSError:  # a file system without hard links
            write_atomically(path, content)
    return read_mark(home) or ""


def _opened(path: Place) -> TextIOWrapper:
    """Open a text of ASCII lines; that of a store is read whole."""
    bytes_of = path.open("rb") if isinstance(path, Path) else BytesIO(path.read_bytes())
    return TextIOWrapper(bytes_of, encoding="ascii", errors="replace", newline="\n")


SEEN_FIRST_LINE = "topicops seen 1.0\n"


class SeenTopics:
    """The topics of the last complete snapshot, and those of earlier ones that are missed since.

    ``<home>/seen/<environment>/<cluster id>.txt`` has a line for each topic, its name, identity and time, so that a
    million of them are compared without holding them.
    """

    def __init__(self, home: Place, environment: str, cluster_id: str) -> None:
        self.path = home / "seen" / environment / f"{name_on_disk(cluster_id)}.txt"

    def missing(self, live: Container[str]) -> dict[str, LastSeen]:
        """Return the remembered topics that are not live; none before the first snapshot. Raises ``ArtifactError``."""
        with as_artifact_error(self.path, "cannot be read"):
            if not self.path.exists():
                return {}
            with _opened(self.path) as lines:
                return dict(self._missing(lines, live))

    def write(self, live: Iterable[tuple[str, str]], *, at: str, missed: Mapping[str, LastSeen]) -> None:
        """Replace what is remembered. Raises ``ArtifactError``.

        Args:
            live: Each topic with its identity.
            at: When they were read, RFC 3339 UTC.
            missed: Earlier topics that stay remembered although they are not live.
        """
        text = BytesIO()  # a list of all lines would need four times as much
        text.write(SEEN_FIRST_LINE.encode())
        text.writelines(f"{topic} {identity} {at}\n".encode() for topic, identity in live)
        text.writelines(f"{topic} {seen.identity} {seen.at}\n".encode() for topic, seen in missed.items())
        with as_artifact_error(self.path, "cannot be written", "; check the disk, then run again"):
            write_atomically(self.path, text.getvalue())

    def _missing(self, lines: Iterator[str], live: Container[str]) -> Iterator[tuple[str, LastSeen]]:
        if next(lines, "") != SEEN_FIRST_LINE:
            raise ArtifactError(f"{self.path}: does not begin with {SEEN_FIRST_LINE.strip()!r}; remove it")
        for line in lines:
            topic, _, rest = line.partition(" ")
            if topic in live:
                continue
            found = rest.removesuffix("\n").split(" ")
            if len(found) != 2 or not rest.endswith("\n"):
                raise ArtifactError(f"{self.path}: a line is damaged, {line[:60]!r}; remove the file")
            yield topic, LastSeen(identity=found[0], at=found[1])
