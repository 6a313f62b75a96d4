"""The content of a spec file after the edit that a diagnostic proposes; nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

from topicops.edges.specs.nodes import read_document
from topicops.edges.specs.open_files import Place, kind_and_stem, regular_text
from topicops.edges.specs.problems import UnreadableError
from topicops.model.specs.diagnostics import Diagnostic, Fix, Position
from topicops.model.specs.document import Document


def document_after_fix(diagnostic: Diagnostic, topics: Path) -> Document | None:
    """The file after the edit; None if it cannot be read, before or after the edit.

    Args:
        diagnostic: With a fix or another name.
        topics: The folder that the file is in.
    """
    path = Path(diagnostic.file)
    folders = Path(os.path.relpath(path.parent, topics)).parts
    name = diagnostic.rename_to or path.name
    if len(folders) != 1:
        return None
    text = regular_text(path)
    if text is None:
        return None
    try:
        root = read_document(_edited(text, diagnostic.fix).encode(), diagnostic.file)
    except UnreadableError:
        return None
    kind, stem = kind_and_stem(Place(str(path), diagnostic.file, folders, name, looks_regular=True))
    return Document(file=path.with_name(name).as_posix(), kind=kind, stem=stem, root=root)


def _edited(text: str, fix: Fix | None) -> str:
    if fix is None:
        return text
    return text[: _index(text, fix.start)] + fix.text + text[_index(text, fix.end) :]


def _index(text: str, place: Position) -> int:
    start = 0
    for _ in range(place.line - 1):
        start = text.index("\n", start) + 1
    return start + place.column - 1
