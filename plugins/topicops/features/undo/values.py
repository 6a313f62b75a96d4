"""What takes a run back: edits of files, what only a person may do, and what cannot come back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoNote:
    """One sentence about a topic of the run."""

    topic: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A spec file before and after the edit."""

    topic: str
    file: str
    """Relative to the working folder."""
    before: str
    after: str
    edits: tuple[str, ...]
    """What changes in it, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How far a run can be taken back. Every topic of the run is in at least one of the lists."""

    run: str
    environment: str
    commit: str | None
    """Of the files that the run was planned from; None: not known."""
    topics: tuple[str, ...]
    """Those that the run changed, sorted."""
    lost: tuple[UndoNote, ...] = ()
    """What cannot come back."""
    edits: tuple[FileEdit, ...] = ()
    to_retire: tuple[str, ...] = ()
    """Topics that the run created: only a tombstone deletes them, and only a person writes one."""
    by_hand: tuple[UndoNote, ...] = ()
    """What the files must ask for, where undo cannot edit them."""
    done: tuple[UndoNote, ...] = ()
    """What the files of now ask for already."""
    notes: tuple[str, ...] = ()
