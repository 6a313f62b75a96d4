"""Spec files: those that a command line names, their problems, and what an environment's file says of its DAGs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from topicops.edges.repository import is_specs_root, specs_root_of
from topicops.edges.specs.open_files import ReadingError, open_regular, shown_folder, source_lines, walk
from topicops.edges.specs.reader import read_document, read_tree
from topicops.model.errors import SpecFileError, UsageError
from topicops.model.memory import gc_paused
from topicops.model.specs.diagnostics import Diagnostic
from topicops.model.specs.document import Fields, Items, Node, Text

if TYPE_CHECKING:
    from topicops.steps.specs.validate import Validated


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Files of one folder of specs."""

    topics: Path
    """The folder."""
    below: frozenset[str] = frozenset()
    """Files and domains of it that were named, by the names of files; empty means all."""

    def holds(self, file: str) -> bool:
        return not self.below or file in self.below or file.rpartition("/")[0] in self.below

    def concerns(self, diagnostic: Diagnostic) -> bool:
        """Return whether the problem is in one of the files, or between one of them and another."""
        return self.holds(diagnostic.file) or (diagnostic.note is not None and self.holds(diagnostic.note.file))

    def count(self) -> int:
        return sum(self.holds(place.file) for place in walk(self.topics))


def selection_of(paths: Sequence[Path]) -> Selection:
    """Return what these paths name. Raises ``UsageError`` where one is not there, or they are of several folders."""
    roots = {_root_of(path) for path in paths}
    if len(roots) > 1:
        named = " and ".join(sorted(map(str, roots)))
        raise UsageError(f"these are files of {named}: name those of one folder of specs at a time")
    (topics,) = roots
    if any(os.path.realpath(path) == os.path.realpath(topics) for path in paths):
        return Selection(topics=topics)
    inside = [os.path.relpath(path, topics).replace(os.sep, "/") for path in paths]
    return Selection(topics=topics, below=frozenset(f"{shown_folder(topics)}{place}" for place in inside))


def _root_of(path: Path) -> Path:
    if not path.exists():
        raise UsageError(
            f"{path}: no such folder or file; name the folder of specs, as in: topicops validate topics, or start with "
            "`topicops init`"
        )
    if is_specs_root(path):
        return path
    if found := specs_root_of(path):
        return Path(os.path.relpath(found))
    return path if path.is_dir() else path.parent.parent


@gc_paused()
def validate_files(topics: Path, *, environment: str | None) -> Validated:
    """Find every problem of every file, for all environments if ``environment`` is None.

    Raises ``UsageError`` where there is no such folder, or no such environment.
    """
    from topicops.steps.specs.validate import validate

    return validate(read_tree(topics), environment=environment, now=datetime.now(UTC))


def shown_diagnostics(diagnostics: Sequence[Diagnostic]) -> str:
    """Diagnostics as text, each with its source line."""
    from topicops.steps.reporting.diagnostics_text import diagnostics_text

    return diagnostics_text(diagnostics, source_lines)


def airflow_part(file: Path) -> Mapping[str, str]:
    """Return the plain texts of ``spec.airflow``, by field; ``failOn`` is joined with commas, a null is left out.

    The file is opened and read as ``validate`` does: no link, no pipe, nothing above the limits.

    Raises ``SpecFileError`` where the file cannot be read, or ``spec.airflow`` is no mapping of texts.
    """
    try:
        data = open_regular(file)
    except ReadingError as error:
        raise SpecFileError(f"{file}: {error}") from error
    try:
        root = read_document(data)
    except ReadingError as error:
        raise SpecFileError(f"{file}:{error.span.line}: {error}") from error
    part = _field(_field(root, "spec"), "airflow")
    if part is None or (isinstance(part, Text) and part.is_null):
        return {}
    if not isinstance(part, Fields):
        raise SpecFileError(f"{file}:{part.span.line}: spec.airflow is no mapping")
    written = [(name.text, value) for name, value in part.entries if not (isinstance(value, Text) and value.is_null)]
    texts = {name: _text(value, may_be_list=name == "failOn") for name, value in written}
    if None in texts.values():
        raise SpecFileError(f"{file}:{part.span.line}: spec.airflow is no mapping of texts")
    return {name: text for name, text in texts.items() if text is not None}


def _text(value: Node, *, may_be_list: bool) -> str | None:
    """Read a text, or a list of texts; None means another value."""
    if isinstance(value, Text):
        return value.text
    if may_be_list and isinstance(value, Items) and all(isinstance(item, Text) for item in value.items):
        return ",".join(item.text for item in value.items if isinstance(item, Text))
    return None


def _field(node: Node | None, name: str) -> Node | None:
    entries = node.entries if isinstance(node, Fields) else ()
    return next((value for key, value in entries if key.text == name), None)
