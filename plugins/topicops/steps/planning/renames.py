"""Where a delete and a create of one plan look like a rename, which Kafka does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from topicops.model.plans.changes import Change, CreateTopic, DeleteTopic

_WORD = re.compile(r"[^._-]+")
"""Of a topic's name."""
_COMMON = 50
_CARRIED = "no record and no group's offset is carried over"


class _Look(NamedTuple):
    """What a rename would leave as it is."""

    topic: str
    words: frozenset[str]
    shape: tuple[str, int]
    """Folder and partitions."""


def rename_notes(changes: Sequence[Change]) -> Mapping[str, str]:
    """A sentence by topic, for both sides of each pair that looks like a rename.

    A deleted topic is paired with the created one that shares most words of its name, if that is at least half of the
    shorter name, or if both have the same folder and the same number of partitions. Rather one pair too many.
    """
    similar = _index(_look(change) for change in changes if isinstance(change, CreateTopic))
    notes: dict[str, str] = {}
    for deleted in (_look(change) for change in changes if isinstance(change, DeleteTopic)):
        candidates = {look.topic: look for sign in (*deleted.words, deleted.shape) for look in similar.get(sign, ())}
        twin = max(candidates.values(), key=lambda look: (_likeness(deleted, look), look.topic), default=None)
        if twin is not None and _is_alike(deleted, twin):
            notes[deleted.topic] = f"this is not a rename to {twin.topic}: {_CARRIED}"
            notes[twin.topic] = f"this is not a rename of {deleted.topic}: {_CARRIED}"
    return notes


def _index(created: Iterable[_Look]) -> Mapping[object, Sequence[_Look]]:
    """New topics by each word and by shape; what half a hundred others share as well tells nothing of a pair."""
    found: dict[object, list[_Look]] = {}
    for look in created:
        for sign in (*look.words, look.shape):
            found.setdefault(sign, []).append(look)
    return {sign: [min(looks)] if len(looks) > _COMMON else looks for sign, looks in found.items()}


def _look(change: CreateTopic | DeleteTopic) -> _Look:
    folder, _, _ = change.location.file.rpartition("/")
    return _Look(change.topic, frozenset(_WORD.findall(change.topic)), (folder, change.partitions))


def _is_alike(deleted: _Look, created: _Look) -> bool:
    likeness, same_shape = _likeness(deleted, created)
    return likeness >= 0.5 or same_shape


def _likeness(deleted: _Look, created: _Look) -> tuple[float, bool]:
    """The part of the shorter name's words that both share, 0 to 1, and whether they have one shape."""
    shared = len(deleted.words & created.words) / max(1, min(len(deleted.words), len(created.words)))
    return shared, deleted.shape == created.shape
