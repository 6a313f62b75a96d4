"""Edits of topics' own files: a value, a value taken out, a tombstone. All other lines and comments stay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.edges.specs.open_files import regular_text
from topicops.features.shared.writer import document_of
from topicops.features.shared.yaml_blocks import chunks_of, field_of, is_block, plain_value
from topicops.features.shared.yaml_edits import with_field
from topicops.features.shared.yaml_text import Content, config_content, text_of
from topicops.model.errors import SpecError, UsageError
from topicops.model.printable import or_not_set
from topicops.model.specs.desired import Desired
from topicops.model.specs.document import Document, Fields, Node, Tree
from topicops.model.specs.topic_config import config_of
from topicops.steps.specs.needed import Needs
from topicops.steps.specs.suggestions import similar_word
from topicops.steps.specs.validate import Validated, validate

_REPLACED = ("spec", "lifecycle")
"""Blocks of a file that the lifecycle of a tombstone replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A spec file before and after the edit."""

    topic: str
    file: str
    """Path, relative to the working folder."""
    before: str
    after: str
    edits: tuple[str, ...]


def named_topics(globs: Sequence[str], topics: Collection[str], *, otherwise: str) -> list[str]:
    """Return the topics that one of the globs fits, sorted. Raises ``UsageError``, ``otherwise``, for one without."""
    for glob in globs:
        if not any(fnmatchcase(topic, glob) for topic in topics):
            close = similar_word(glob, sorted(topics))
            raise UsageError(f"{glob}: {otherwise}" + (f"; did you mean {close}?" if close else ""))
    return sorted(topic for topic in topics if any(fnmatchcase(topic, glob) for glob in globs))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFiles:
    """The present files, as they are judged for one environment."""

    topics: Path
    tree: Tree
    environment: str
    needs: Needs
    """Topics whose files must be valid."""
    now: datetime

    def others(self, document: Document) -> list[str]:
        """Return the other environments that a topic's file is for."""
        others = {found.stem for found in self.tree.documents if found.kind == "Environment"} - {self.environment}
        named = plain_value(field_of(document.root, "metadata", "environments"))
        return sorted(others & {str(name) for name in named} if isinstance(named, list) else others)

    def with_text(self, file: str, text: str) -> Document | None:
        """Return what a topic's file says with this text; None means that it cannot be read."""
        try:
            return document_of(self.topics, "/".join(file.split("/")[-2:]), text)
        except SpecError:
            return None

    def judged(self, edits: Sequence[FileEdit] = ()) -> Validated:
        texts = {edit.file: edit.after for edit in edits}
        documents = ((self.with_text(d.file, texts[d.file]) if d.file in texts else d) for d in self.tree.documents)
        tree = replace(self.tree, documents=tuple(document for document in documents if document))
        return validate(tree, environment=self.environment, now=self.now, needs=self.needs)

    def sound(
        self, edits: Sequence[FileEdit], objection: Callable[[FileEdit, Desired], str]
    ) -> tuple[list[FileEdit], list[tuple[str, str]]]:
        """Return the edits after which all files are valid and nothing is objected, and topic and reason of the others.

        Args:
            objection: Says why an edit does not do what it is for; empty: it does.
        """
        left, refused = list(edits), list[tuple[str, str]]()
        while left:
            after = self.judged(left)
            reasons = {edit.file: why for edit in left if (why := _refusal(edit, after, objection))}
            if not reasons:
                break
            refused += [(edit.topic, reasons[edit.file]) for edit in left if edit.file in reasons]
            left = [edit for edit in left if edit.file not in reasons]
        return left, refused


def _refusal(edit: FileEdit, after: Validated, objection: Callable[[FileEdit, Desired], str]) -> str:
    tried = f"{edit.file}: {'; '.join(edit.edits)}"
    if error := next((found for found in after.diagnostics if found.is_error and found.file == edit.file), None):
        return f"{tried}: {error.code}: {error.summary}"
    if after.desired is None:
        return f"{tried}: other files would not be valid then"
    return objection(edit, after.desired)


def config_line(name: str, value: str | None) -> str:
    """Write a canonical value as people do in a file: ``retention.ms: 7d``, ``segment.bytes: null``."""
    return text_of({name: written_config(name, value)}).rstrip("\n")


def shown_config(name: str, value: str | None) -> str:
    return or_not_set(None if value is None else config_line(name, value).partition(": ")[2])


def written_config(name: str, value: str | None) -> Content:
    return config_content(name, value) if value is not None and config_of(name) else value


def with_value(root: Node | None, text: str, path: Sequence[str], value: Content | object) -> str | None:
    """Do as ``with_field``. None: no line can be changed."""
    try:
        return with_field(text, root, path, value)
    except UsageError:
        return None


def tombstone(topics: Path, document: Document, lifecycle: Mapping[str, Content]) -> tuple[FileEdit, Document]:
    """Turn the spec of a topic into a tombstone; only comments inside replaced blocks are lost. Nothing is written.

    Raises ``UsageError`` where it is one already, or no block can be taken out of the file.
    """
    path, root = Path(document.file), document.root
    text = regular_text(path)
    if text is None or not isinstance(root, Fields):
        raise UsageError(f"{document.file}: it cannot be read; `topicops validate` says why")
    state = field_of(root, "lifecycle", "state")
    if plain_value(state) == "absent":
        raise UsageError(f"{document.file}:{state.span.line if state else 1}: this is a tombstone already")
    edited = _with_lifecycle(root, text, text_of({"lifecycle": lifecycle}))
    after = None if edited is None else document_of(topics, f"{path.parent.name}/{path.name}", edited)
    if edited is None or after is None or _kept(after) != _kept(document):
        raise UsageError(
            f"{document.file}: written so that no block can be taken out of it; write one field a line, "
            "or put the lifecycle there yourself"
        )
    said = ("a tombstone takes the place of its spec",)
    return FileEdit(topic=document.stem, file=document.file, before=text, after=edited, edits=said), after


def _with_lifecycle(root: Fields, text: str, lifecycle: str) -> str | None:
    lines = text.split("\n")
    if not is_block(root, lines) or root.first.column != 1:
        return None
    kept: list[str] = []
    for chunk in chunks_of(root, lines, start=1, end=len(lines) + 1):
        found, is_kept = lines[chunk.start - 1 : chunk.end - 1], chunk.entry[0].text not in _REPLACED
        kept += [line for line in found if is_kept or line.startswith("#")]
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join([*kept, lifecycle])


def _kept(document: Document) -> object:
    """Return the values that must be the same before and after."""
    entries = document.root.entries if isinstance(document.root, Fields) else ()
    return {key.text: plain_value(value) for key, value in entries if key.text not in _REPLACED}
