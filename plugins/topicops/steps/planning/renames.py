"""Pairs of a topic that goes and a created one that look like a rename; Kafka has no rename."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
    notes: dict[str, str] = {}
    for old, new in _twins((_sketch(change) for change in changes if isinstance(change, DeleteTopic)), changes):
        notes[old] = f"this is not a rename to {new}: {_CARRIED}"
        notes[new] = f"this is not a rename of {old}: {_CARRIED}"
    return notes


def with_notes_of_lost_files(
    changes: Sequence[Change], lost: Mapping[str, str], partitions: Mapping[str, int]
) -> tuple[Change, ...]:
    """The changes with a note on each created topic that looks like a live one whose file was renamed or removed.

    Args:
        lost: The folder of the file that each of these live topics had; no file names them now.
        partitions: Of these topics.
    """
    sketches = (_Sketch(name, _words(name), (folder, partitions[name])) for name, folder in lost.items())
    notes = {
        new: f"this is not a rename of {old}: {_CARRIED}; {old} stays as it is, and no file describes it now"
        for old, new in _twins(sketches, changes)
    }
    return tuple(
        replace(change, notes=(notes[change.topic], *change.notes)) if change.topic in notes else change
        for change in changes
    )


def _twins(gone: Iterable[_Sketch], changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Each topic that goes, with the created topic that looks most like it, where one does."""
    similar = _index(_sketch(change) for change in changes if isinstance(change, CreateTopic))
    for old in gone:
        candidates = {sketch.topic: sketch for sign in (*old.words, old.place) for sketch in similar.get(sign, ())}
        twin = max(candidates.values(), key=lambda sketch: (_likeness(old, sketch), sketch.topic), default=None)
        if twin is not None and _is_alike(old, twin):
            yield old.topic, twin.topic


def _index(created: Iterable[_Sketch]) -> Mapping[object, Sequence[_Sketch]]:
    """Created topics by each word and by place; a word or place that more than ``_COMMON`` share means little."""
    found: dict[object, list[_Sketch]] = {}
    for sketch in created:
        for sign in (*sketch.words, sketch.place):
            found.setdefault(sign, []).append(sketch)
    return {sign: [min(sketches)] if len(sketches) > _COMMON else sketches for sign, sketches in found.items()}


def _sketch(change: CreateTopic | DeleteTopic) -> _Sketch:
    folder, _, _ = change.location.file.rpartition("/")
    return _Sketch(change.topic, _words(change.topic), (folder, change.partitions))


def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name))


def _is_alike(deleted: _Sketch, created: _Sketch) -> bool:
    likeness, same_place = _likeness(deleted, created)
    return likeness >= 0.5 or same_place


def _likeness(deleted: _Sketch, created: _Sketch) -> tuple[float, bool]:
    """The part of the shorter name's words that both share, 0 to 1, and whether they have one place."""
    shared = len(deleted.words & created.words) / max(1, min(len(deleted.words), len(created.words)))
    return shared, deleted.place == created.place
