"""The content of a YAML file before any check: text, mappings and lists, each with its position.

No value is converted: ``010``, ``no`` and ``2024-01-02`` are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from topicops.model.specs.diagnostics import Diagnostic

FileKind = Literal["Topic", "Profile", "Environment", "Exceptions", "Owners"]


class Span(msgspec.Struct, frozen=True, gc=False):
    """From the first character to the one after the last; lines and columns from 1."""

    line: int
    column: int
    end_line: int
    end_column: int


START = Span(1, 1, 1, 1)


class Text(msgspec.Struct, frozen=True, gc=False):
    """A scalar. ``gc=False``: the cyclic collector skips these structs; a big repository has a million of them."""

    text: str
    plain: bool
    """Neither quoted nor a block: only plain text can mean null."""
    span: Span

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in NULLS


NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""YAML's spellings of null, as plain text."""


COLON_WITHOUT_BLANK = re.compile(r"\s*([A-Za-z][\w.]*):([^\s/:]\S*)\s*")
"""``partitions:12``, which YAML takes for one text."""


class Items(msgspec.Struct, frozen=True, gc=False):
    """A YAML sequence."""

    items: tuple[Node, ...]
    span: Span


class Fields(msgspec.Struct, frozen=True, gc=False):
    """A YAML mapping; each key is there once."""

    entries: tuple[Entry, ...]
    span: Span

    @property
    def first(self) -> Span:
        """The first key, where a missing field is shown; the mapping itself when it is empty."""
        return self.entries[0][0].span if self.entries else self.span


Node = Text | Items | Fields
Entry = tuple[Text, Node]
"""Key and value."""


class Document(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One file under ``topics/``."""

    file: str
    """Relative to the working folder, with ``/``."""
    kind: FileKind
    """Kind, by the file's folder."""
    stem: str
    """The file's name without extension; ``metadata.name`` must be the same."""
    root: Node | None
    """Root node; None means that the file could not be read, and the tree's problems say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All files of a ``topics/`` folder, by path."""

    documents: tuple[Document, ...]
    problems: tuple[Diagnostic, ...] = ()
    """Reasons why files could not be read."""
    files: int = 0
    """Number of files, unreadable ones included."""
