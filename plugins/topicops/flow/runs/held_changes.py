"""The newest held set of an environment: the changes that an approval may still be about.

The pipeline's gate writes ``held/<environment>.json``. It is read after each answer, because an answer may come hours
after the question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.edges.home.memory_file import MemoryFile
from topicops.model.canonical import sha256_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """Changes that wait for an approval, by digest."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """``delete topic.orders`` by digest; empty when nothing is held."""
    found_by: str = ""
    """``<dag id>/<run id>`` of the run whose gate held them."""
    author: str | None = None
    """The user who started the run that found them first; None: not known, as on a schedule."""

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(sorted(self.addresses))

    @property
    def digest(self) -> str:
        """Names the set: the same changes have the same digest, in whatever order and run they were found."""
        return sha256_of(list(self.digests))

    def covers(self, digests: Collection[str]) -> bool:
        return set(digests) <= set(self.addresses)

    def without_topics(self, glob: str) -> HeldSet:
        """The part that a run with ``--only glob`` has not seen."""
        kept = {d: address for d, address in self.addresses.items() if not fnmatchcase(_topic_of(address), glob)}
        return replace(self, addresses=kept)

    def after(self, earlier: HeldSet) -> HeldSet:
        """The set, with the author of the earlier one if that held the same changes."""
        is_known = earlier.author is not None and earlier.covers(self.digests)
        return replace(self, author=earlier.author) if is_known else self


def question_name(digest: str, changes: int) -> str:
    """``3-changes-73c682d1aa21``: names the runs that ask about one set; they are numbered behind a dot."""
    return f"{changes}-{'change' if changes == 1 else 'changes'}-{digest[:12]}"


def held_set_file(home: Path, environment: str) -> MemoryFile[HeldSet]:
    """Replaced as a whole by each write, so that a reader gets the old set or the new one."""
    return MemoryFile(home / "held" / f"{environment}.json", HeldSet)


def read_held(home: Path, environment: str) -> HeldSet:
    """The newest held set; an empty one before the first gate. Raises ``ArtifactError`` when damaged."""
    return held_set_file(home, environment).read() or HeldSet()


def _topic_of(address: str) -> str:
    return address.partition(" topic.")[2]
