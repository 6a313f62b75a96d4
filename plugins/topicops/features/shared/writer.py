"""Writes files below ``topics/``: each as a whole or not at all, and never over a file of someone else."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from topicops.edges.durable_files import create_atomically, write_atomically
from topicops.edges.specs.open_files import ReadingError, kind_and_stem, room_of
from topicops.edges.specs.reader import read_document
from topicops.model.errors import SpecError, SpecFileError
from topicops.model.specs.document import Document, Node, Tree


def shown(path: Path) -> str:
    """Return the path as diagnostics name it: relative to the working folder, with ``/``."""
    return os.path.relpath(path).replace(os.sep, "/")


def document_of(topics: Path, below: str, text: str) -> Document:
    """Return what a file would say, by its path below ``topics``, with ``/``. Raises ``SpecError``."""
    path = topics / below
    file = shown(path)
    kind, stem = kind_and_stem(below.split("/")[:-1], path.name)
    return Document(file=file, kind=kind, stem=stem, root=root_of(text, file, room=room_of(kind)))


def tree_with(tree: Tree, *documents: Document) -> Tree:
    """Return a tree of these files and the others; each replaces the one of the same name. It has no ``problems``."""
    by_file = {document.file: document for document in (*tree.documents, *documents)}
    return Tree(documents=tuple(by_file[file] for file in sorted(by_file)), files=len(by_file))


def root_of(text: str, file: str, *, room: int) -> Node:
    """Return what a text says. Raises ``SpecError`` where it cannot be read, with places in ``file``."""
    try:
        return read_document(text.encode(), room=room)
    except ReadingError as error:
        raise SpecError([error.diagnostic(file)]) from error


def node_of(text: str, *, room: int = 1) -> Node | None:
    """Return what a text says, None where it cannot be read; ``room`` times as many nodes as in most files are read."""
    try:
        return read_document(text.encode(), room=room)
    except ReadingError:
        return None


def write_new(topics: Path, texts: Mapping[str, str]) -> None:
    """Make the files, by path below ``topics``, and their folders; none if one of them is there (``SpecFileError``)."""
    for below in texts:
        require_free(topics / below)
    for below, text in texts.items():
        try:
            create_atomically(topics / below, text.encode())
        except OSError as error:
            raise SpecFileError(f"{shown(topics / below)}: cannot be written: {error.strerror}") from error


def replace_text(path: Path, text: str, *, before: str) -> None:
    """Put ``text`` in the place of ``before``, with the file's own permissions. Raises ``SpecFileError``."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or path.read_bytes() != before.encode():
            raise SpecFileError(f"{shown(path)}: it changed while it was looked at; run the command again")
        write_atomically(path, text.encode(), mode=stat.S_IMODE(status.st_mode))
    except OSError as error:
        raise SpecFileError(f"{shown(path)}: cannot be written: {error.strerror}") from error


def require_free(path: Path) -> None:
    """Raise ``SpecFileError`` if there is something with this name, or if its folder is a link."""
    if os.path.lexists(path):
        raise SpecFileError(f"{shown(path)}: there is such a file already; it stays, and nothing was written")
    if path.parent.is_symlink():
        raise SpecFileError(f"{shown(path.parent)}: a link, and links are not followed; choose another folder")
