"""Write spec files in the standard form. No connection is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.specs.open_files import regular_text, room_of
from topicops.edges.specs.reader import read_tree
from topicops.model.printable import plural
from topicops.model.specs.diagnostics import Diagnostic

if TYPE_CHECKING:
    from topicops.flow.spec_files import Selection


@dataclass(frozen=True, slots=True)
class FormatResult:
    changed: list[str]
    """Files that are not in the standard form."""
    left_alone: dict[str, Diagnostic]
    """First error of each file that has one."""
    files: int


def format_files(selection: Selection, *, check: bool, on_change: Callable[[str], None]) -> FormatResult:
    """Write the files that have no error in the standard form, unless ``check``; ``on_change`` takes their names."""
    from topicops.features.files.formatting.standard_form import formatted
    from topicops.features.shared.writer import replace_text
    from topicops.steps.specs.validate import validate

    tree = read_tree(selection.topics)
    left_alone: dict[str, Diagnostic] = {}
    for found in validate(tree, environment=None, now=datetime.now(UTC)).diagnostics:
        if found.is_error and selection.holds(found.file):
            left_alone.setdefault(found.file, found)
    documents = [document for document in tree.documents if selection.holds(document.file)]
    changed = []
    for document in documents:
        path = Path(document.file)
        before = None if document.file in left_alone else regular_text(path, room=room_of(document.kind))
        if before is None or (after := formatted(before, document.kind)) == before:
            continue
        if not check:
            replace_text(path, after, before=before)
        on_change(document.file)
        changed.append(document.file)
    return FormatResult(changed, left_alone, files=len(documents))


def format_text(result: FormatResult, *, check: bool) -> str:
    """Return one line for each file that has an error, then the counts."""
    lines = [f"left alone: {file}:{d.line}: {d.code}: {d.summary}" for file, d in sorted(result.left_alone.items())]
    if not result.files:
        return "0 files: nothing was formatted"
    counts = f"{len(result.changed)} of {plural(result.files, 'file')} {'would change' if check else 'changed'}"
    rest = f", {len(result.left_alone)} left alone" if result.left_alone else ""
    return "\n".join([*lines, f"{counts}{rest}"])


def formatted_topic(text: str) -> str:
    from topicops.features.files.formatting.standard_form import formatted

    return formatted(text, "Topic")
