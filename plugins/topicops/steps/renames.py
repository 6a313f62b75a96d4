"""Where a delete and a create of one plan look like a rename, which Kafka does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from topicops.model.changes import Change, CreateTopic, DeleteTopic

_WORD = re.compile(r"[^._-]+")
"""Of a topic's name."""
_CARRIED = "no record and no group's offset is carried over"


def rename_notes(changes: Sequence[Change]) -> Mapping[str, str]:
    """A sentence by topic, for both sides of each pair that looks like a rename.

    A deleted topic is paired with the created one that shares most words of its name, if that is at least half of the
    shorter name, or if both have the same folder and the same number of partitions. Rather one pair too many.
    """
    created = [change for change in changes if isinstance(change, CreateTopic)]
    notes: dict[str, str] = {}
    for deleted in (change for change in changes if isinstance(change, DeleteTopic)):
        ranked = [(_likeness(deleted, change), change) for change in created]
        (likeness, shape), twin = max(ranked, key=lambda entry: entry[0], default=((0.0, False), None))
        if twin is not None and (likeness >= 0.5 or shape):
            notes[deleted.topic] = f"this is not a rename to {twin.topic}: {_CARRIED}"
            notes[twin.topic] = f"this is not a rename of {deleted.topic}: {_CARRIED}"
    return notes


def _likeness(deleted: DeleteTopic, created: CreateTopic) -> tuple[float, bool]:
    """The part of the shorter name's words that both share, 0 to 1, and whether folder and partitions are the same."""
    words, others = set(_WORD.findall(deleted.topic)), set(_WORD.findall(created.topic))
    shared = len(words & others) / max(1, min(len(words), len(others)))
    folders = {PurePosixPath(change.location.file).parent for change in (deleted, created)}
    return shared, len(folders) == 1 and deleted.partitions == created.partitions
