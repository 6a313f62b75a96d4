"""The newest held set of an environment: what approvals may still be about.

``held/<environment>.json`` is written by the pipeline's gate and read after each answer, since an answer may come hours
after the question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.edges.home.artifacts import ArtifactStore
from topicops.model.canonical import sha256_of
from topicops.model.errors import ArtifactError


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """Changes that wait for an approval, by digest."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """``delete topic.orders`` by digest; empty when nothing is held."""
    found_by: str = ""
    """``<dag id>/<run id>`` of the run whose gate held them."""

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(sorted(self.addresses))

    @property
    def digest(self) -> str:
        """Names the set: the same changes have the same digest, whoever finds them and in whatever order."""
        return sha256_of(list(self.digests))

    def covers(self, digests: Collection[str]) -> bool:
        return set(digests) <= set(self.addresses)

    def without_topics(self, glob: str) -> HeldSet:
        """What a run that looked only at topics of that pattern has not seen."""
        kept = {d: address for d, address in self.addresses.items() if not fnmatchcase(_topic_of(address), glob)}
        return HeldSet(addresses=kept, found_by=self.found_by)


def held_path(home: Path, environment: str) -> Path:
    return home / "held" / f"{environment}.json"


def write_held(path: Path, held: HeldSet) -> None:
    """Replaces the file as a whole: whoever reads it sees the old set or the new one."""
    ArtifactStore(path.parent).write_value(path.name, held)


def read_held(path: Path) -> HeldSet:
    """The newest held set; an empty one when no gate has written yet. Raises ``ArtifactError`` when damaged."""
    store = ArtifactStore(path.parent)
    return store.read_value(path.name, HeldSet) if store.has(path.name) else HeldSet()


def held_or_none(path: Path) -> HeldSet | None:
    """Like ``read_held``, for reports that must not fail."""
    try:
        return read_held(path)
    except ArtifactError:
        return None


def _topic_of(address: str) -> str:
    return address.partition(" topic.")[2]
