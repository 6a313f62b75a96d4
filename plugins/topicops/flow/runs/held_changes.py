"""The changes that an approval may still be about, and those that a person rejected.

Nobody is asked about rejected changes alone until they change. A rejection only keeps questions away; no change is sent
because of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from topicops.edges.home.memories import HELD, REJECTIONS
from topicops.model.printable import printable
from topicops.model.runs.memories import HeldSet, Rejection, Rejections

MOST = 10_000
"""Number of rejections that are remembered, the newest."""


def question_name(digest: str, changes: int) -> str:
    """``3-changes-73c682d1aa21``: names the runs that ask about one set; they are numbered behind a dot."""
    return f"{changes}-{'change' if changes == 1 else 'changes'}-{digest[:12]}"


def read_held(home: Path, environment: str) -> HeldSet:
    """Give the newest held set; an empty one before the first gate. Raises ``ArtifactError`` when damaged."""
    return HELD.of(home, environment).read() or HeldSet()


def keep_held(home: Path, environment: str, held: HeldSet) -> None:
    """Replace the held set. Raises ``ArtifactError``."""
    HELD.of(home, environment).write(held)


def read_rejections(home: Path, environment: str) -> Mapping[str, Rejection]:
    """Give the rejections by digest of the change. Raises ``ArtifactError`` when damaged."""
    found = REJECTIONS.of(home, environment).read()
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
        REJECTIONS.of(home, environment).write(Rejections(by_digest={digest: found[digest] for digest in newest}))


def resting_lines(rejections: Mapping[str, Rejection], held: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for each held change that was rejected.

    Args:
        held: ``delete topic.orders`` by digest.
    """
    for digest, address in held.items():
        if rejection := rejections.get(digest):
            yield printable(f"{address} rests until it changes: {rejection}")
