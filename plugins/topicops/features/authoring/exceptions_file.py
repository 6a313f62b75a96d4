"""Add entries to an environment's file of exceptions; the text that is there stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topicops.features.shared.document_values import PlainValue, field_of, plain_value
from topicops.features.shared.yaml_text import document_text, text_of
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.specs.document import Document, Fields, Items, Node, Text

Read = Callable[[str, str], Document]
"""Reads a file that need not exist yet, from its path below ``topics/`` and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenException:
    """One entry."""

    topic: str
    code: Code
    reason: str

    @property
    def fields(self) -> dict[str, str]:
        return {"topic": self.topic, "code": self.code, "reason": self.reason}


def exceptions_file(environment: str) -> str:
    """The path of the file, below ``topics/``."""
    return f"environments/{environment}.exceptions.yaml"


def with_exceptions(text: str | None, more: Sequence[WrittenException], environment: str, read: Read) -> str:
    """The file's text with ``more`` after its last entry; a new file where ``text`` is None.

    Raises:
        UsageError: The entries are not a block list, so none can be added after them.
    """
    if text is None:
        entries = tuple(exception.fields for exception in more)
        return document_text("Exceptions", {"name": environment}, {"spec": {"exceptions": entries}})
    path = exceptions_file(environment)
    before = read(path, text)
    last = _entries(before)[-1:]
    if not last:
        raise _no_place(before.file)
    edited = _behind(text, last[0], more)
    if _entry_values(read(path, edited)) != [*_entry_values(before), *(exception.fields for exception in more)]:
        raise _no_place(before.file)
    return edited


def _no_place(file: str) -> UsageError:
    return UsageError(
        f"{file}: exceptions cannot be put behind those that are there; write them as a list, one `- topic:` a line, "
        "or delete the file if it has none"
    )


def _behind(text: str, last: Node, more: Sequence[WrittenException]) -> str:
    """The text with the new entries below the last one, with the same indentation."""
    lines = text.split("\n")
    written = [place.span.line for place in _scalars(last)]
    row = max(written) if written else last.span.line
    indentation = " " * max(last.span.column - 3, 0)
    added = [
        f"{indentation}{'- ' if number == 0 else '  '}{line}"
        for exception in more
        for number, line in enumerate(text_of(exception.fields).splitlines())
    ]
    return "\n".join([*lines[:row], *added, *(lines[row:] or [""])])


def _scalars(node: Node) -> list[Text]:
    match node:
        case Text():
            return [node]
        case Items():
            return [below for item in node.items for below in _scalars(item)]
        case Fields():
            return [below for _, value in node.entries for below in _scalars(value)]


def _entries(document: Document) -> tuple[Node, ...]:
    node = field_of(document.root, "spec", "exceptions")
    return node.items if isinstance(node, Items) else ()


def _entry_values(document: Document) -> list[PlainValue]:
    return [plain_value(entry) for entry in _entries(document)]
