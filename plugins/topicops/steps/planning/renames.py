"""Pairs of a delete and a create in one plan that sketch like a rename; Kafka has no rename."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from topicops.model.plans.changes import Change, CreateTopic, DeleteTopic

_WORD = re.compile(r"[^._-]+")
"""Of a topic's name."""
_COMMON = 50
_CARRIED = "no record and no group's offset is carried over"


class _Sketch(NamedTuple):
    """What a rename would keep."""

    topic: str
    words: frozenset[str]
    place: tuple[str, int]
    """Folder and partitions."""


def rename_notes(changes: Sequence[Change]) -> Mapping[str, str]:
    """A sentence by topic, for both topics of each pair that looks like a rename.

    A deleted topic is paired with the created one that shares most words of its name, if that is at least half of the
    shorter name, or if both have the same folder and the same number of partitions. One pair too many is
    better than one too few.
    """
    similar = _index(_sketch(change) for change in changes if isinstance(change, CreateTopic))
    notes: dict[str, str] = {}
    for deleted in (_sketch(change) for change in changes if isinstance(change, DeleteTopic)):
        candidates = {
            sketch.topic: sketch for sign in (*deleted.words, deleted.place) for sketch in similar.get(sign, ())
        }
        twin = max(candidates.values(), key=lambda sketch: (_likeness(deleted, sketch), sketch.topic), default=None)
        if twin is not None and _is_alike(deleted, twin):
            notes[deleted.topic] = f"this is not a rename to {twin.topic}: {_CARRIED}"
            notes[twin.topic] = f"this is not a rename of {deleted.topic}: {_CARRIED}"
    return notes


def _index(created: Iterable[_Sketch]) -> Mapping[object, Sequence[_Sketch]]:
    """Created topics by each word and by place; a word or place that more than ``_COMMON`` share means little."""
    found: dict[object, list[_Sketch]] = {}
    for sketch in created:
        for sign in (*sketch.words, sketch.place):
            found.setdefault(sign, []).append(sketch)
    return {sign: [min(sketches)] if len(sketches) > _COMMON else sketches for sign, sketches in found.items()}


def _sketch(change: CreateTopic | DeleteTopic) -> _Sketch:
    folder, _, _ = change.location.file.rpartition("/")
    return _Sketch(change.topic, frozenset(_WORD.findall(change.topic)), (folder, change.partitions))


def _is_alike(deleted: _Sketch, created: _Sketch) -> bool:
    likeness, same_place = _likeness(deleted, created)
    return likeness >= 0.5 or same_place


def _likeness(deleted: _Sketch, created: _Sketch) -> tuple[float, bool]:
    """The part of the shorter name's words that both share, 0 to 1, and whether they have one place."""
    shared = len(deleted.words & created.words) / max(1, min(len(deleted.words), len(created.words)))
    return shared, deleted.place == created.place
