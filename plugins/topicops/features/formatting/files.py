"""Write spec files in the standard form. No connection is opened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.specs.open_files import regular_text, room_of
from topicops.edges.specs.reader import read_tree
from topicops.model.specs.document import Document, FileKind, Node

if TYPE_CHECKING:
    from topicops.features.formatting.standard_form import FormatResult
    from topicops.flow.spec_files import Selection


def format_files(selection: Selection, *, check: bool, on_change: Callable[[str], None]) -> FormatResult:
    """Write files in the standard form; with ``check`` nothing is written.

    Args:
        on_change: Takes the name of each file that is changed, or would be.
    """
    from topicops.features.formatting.standard_form import format_tree
    from topicops.features.shared.writer import replace_text
    from topicops.steps.specs.validate import validate

    tree = read_tree(selection.topics)
    diagnostics = validate(tree, environment=None, now=datetime.now(UTC)).diagnostics
    result = format_tree(tree, diagnostics, _text_of, _parse, is_asked_for=selection.holds)
    for file, edit in result.edits.items():
        if not check:
            replace_text(Path(file), edit.after, before=edit.before)
        on_change(file)
    return result


def formatted_topic(text: str) -> str:
    """Give the text of a topic's file in its standard form."""
    from topicops.features.formatting.standard_form import formatted

    return formatted(text, "Topic", partial(_parse, "Topic"))


def _text_of(document: Document) -> str | None:
    return regular_text(Path(document.file), room=room_of(document.kind))


def _parse(kind: FileKind, text: str) -> Node | None:
    from topicops.features.shared.writer import node_of

    return node_of(text, room=room_of(kind))
