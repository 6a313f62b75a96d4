"""The standard form of each spec file: order of keys, spelling, indentation, blanks. Comments and values stay.

Each pass takes a text and returns a text. The result is parsed again; if its values differ, the pass is undone. This
package opens no file; the parser is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from topicops.features.formatting.arrangement import reindented, reordered, without_idle_blanks
from topicops.features.formatting.field_order import LAYOUTS, Layout, canonical_value
from topicops.features.formatting.spellings import respelled
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Document, FileKind, Node, Tree

Parse = Callable[[str], Node | None]
"""Gives the nodes of a text; None: the text cannot be parsed."""
Pass = Callable[[str, Node, Layout], str]

PASSES: tuple[Pass, ...] = (reordered, respelled, reindented, without_idle_blanks)
_MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The text of a file before and after formatting."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatResult:
    """What formatting changes, by file."""

    edits: Mapping[str, FileEdit]
    left_alone: Mapping[str, Diagnostic]
    """The first error of each file that has one."""
    files: int


def format_tree(
    tree: Tree,
    diagnostics: Iterable[Diagnostic],
    text_of: Callable[[Document], str | None],
    parse: Callable[[FileKind, str], Node | None],
    *,
    is_asked_for: Callable[[str], bool],
) -> FormatResult:
    """Format the files of ``tree`` that have no error.

    Args:
        diagnostics: Every problem of the files.
        is_asked_for: Whether the file of this name is to be formatted.
    """
    left_alone: dict[str, Diagnostic] = {}
    for found in diagnostics:
        if found.is_error and is_asked_for(found.file):
            left_alone.setdefault(found.file, found)
    documents = [document for document in tree.documents if is_asked_for(document.file)]
    edits = {}
    for document in documents:
        before = None if document.file in left_alone else text_of(document)
        if before is not None:
            edits[document.file] = FileEdit(before, formatted(before, document.kind, partial(parse, document.kind)))
    changed = {file: edit for file, edit in edits.items() if edit.after != edit.before}
    return FormatResult(edits=changed, left_alone=left_alone, files=len(documents))


def formatted(text: str, kind: FileKind, parse: Parse) -> str:
    """``text`` in its standard form; unchanged if it cannot be parsed, or if each round changes it again."""
    layout = LAYOUTS[kind]
    found = text
    for _ in range(_MOST_ROUNDS):
        again = _one_round(found, layout, parse)
        if again == found:
            return found
        found = again
    return text


def _one_round(text: str, layout: Layout, parse: Parse) -> str:
    root = parse(text)
    if root is None:
        return text
    value = canonical_value(root, layout)
    for change in (_with_line_feeds, *PASSES):
        candidate = change(text, root, layout)
        if candidate == text:
            continue
        again = parse(candidate)
        if again is not None and canonical_value(again, layout) == value:
            text, root = candidate, again
    return text


def _with_line_feeds(text: str, _root: Node, _layout: Layout) -> str:
    return text.replace("\r\n", "\n")


def format_text(result: FormatResult, *, check: bool) -> str:
    """One line for each file that has an error, then the counts."""
    lines = [f"left alone: {file}:{d.line}: {d.code}: {d.summary}" for file, d in sorted(result.left_alone.items())]
    if not result.files:
        return "0 files: nothing was formatted"
    counts = f"{len(result.edits)} of {result.files} file(s) {'would change' if check else 'changed'}"
    rest = f", {len(result.left_alone)} left alone" if result.left_alone else ""
    return "\n".join([*lines, f"{counts}{rest}"])
