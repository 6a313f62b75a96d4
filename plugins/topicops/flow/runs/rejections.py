"""Held changes that a person rejected: nobody is asked about them alone until they change.

A record of its own, because a person may reject a part of a question: the rest of it is another set. It only keeps
questions away; no change is sent because of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from topicops.edges.home.memory_file import MemoryFile
from topicops.model.printable import printable

MOST = 10_000
"""How many are remembered, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    by: str
    """As the audit log names a person: ``admin (id 1)``."""
    at: datetime
    run: str
    """``<dag id>/<run id>`` of the run that asked."""
    comment: str = ""

    def __str__(self) -> str:
        said = f": {self.comment}" if self.comment else ""
        return printable(f"rejected by {self.by}, {self.at:%Y-%m-%d %H:%M} UTC{said}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejections:
    by_digest: Mapping[str, Rejection] = field(default_factory=dict)


def rejections_file(home: Path, environment: str) -> MemoryFile[Rejections]:
    return MemoryFile(home / "held" / f"{environment}.rejected.json", Rejections)


def read_rejections(home: Path, environment: str) -> Mapping[str, Rejection]:
    """By digest of the change. Raises ``ArtifactError`` when damaged."""
    found = rejections_file(home, environment).read()
    return found.by_digest if found else {}


def note_answer(
    home: Path, environment: str, rejection: Rejection, *, rejected: Collection[str], approved: Collection[str]
) -> None:
    """Remember what was rejected, and forget the rejection of what was approved now."""
    before = read_rejections(home, environment)
    kept = {digest: found for digest, found in before.items() if digest not in approved}
    found = {**kept, **dict.fromkeys(rejected, rejection)}
    if found != before:
        newest = sorted(found, key=lambda digest: found[digest].at, reverse=True)[:MOST]
        rejections_file(home, environment).write(Rejections(by_digest={digest: found[digest] for digest in newest}))


def resting_lines(rejections: Mapping[str, Rejection], held: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each held change that was rejected.

    Args:
        held: ``delete topic.orders`` by digest.
    """
    for digest, address in held.items():
        if rejection := rejections.get(digest):
            yield printable(f"{address} rests until it changes: {rejection}")
