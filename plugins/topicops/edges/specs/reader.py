"""Reads ``topics/`` as a tree of documents, each with its nodes or with the reason why it cannot be read."""

from __future__ import annotations

from pathlib import Path

from topicops.edges.specs.nodes import nodes_of
from topicops.edges.specs.open_files import (
    Place,
    check_place,
    kind_and_stem,
    open_regular,
    require_folder,
    room_of,
    walk,
)
from topicops.edges.specs.problems import ReadingError
from topicops.model.codes import Code
from topicops.model.memory import gc_paused
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, Tree


def read_tree(topics: Path) -> Tree:
    """Every file below ``topics``, each with what it says or with the reason why it cannot be read.

    Raises:
        UsageError: there is no such folder.
    """
    require_folder(topics)
    with gc_paused():
        read = [_read_place(place) for place in walk(topics)]
    documents = sorted((document for document, _ in read if document is not None), key=lambda found: found.file)
    problems = tuple(problem for _, problem in read if problem is not None)
    return Tree(documents=tuple(documents), problems=problems, files=len(read))


def _read_place(place: Place) -> tuple[Document | None, Diagnostic | None]:
    """Return what the file says, and what keeps it from being read."""
    kind, stem = kind_and_stem(place.folders, place.name)
    room = room_of(kind)
    try:
        check_place(place, kind, stem)
        root = nodes_of(open_regular(place.path, room=room), room=room)
    except ReadingError as found:
        known = found.code not in (Code.MISPLACED_FILE, Code.WRONG_EXTENSION)
        unread = Document(file=place.file, kind=kind, stem=stem, root=None) if known else None
        return unread, found.diagnostic(place.file)
    return Document(file=place.file, kind=kind, stem=stem, root=root), None
