"""Add entries to an environment's file of exceptions; the text that is there stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topicops.features.shared.yaml_blocks import field_of, last_line, plain_value
from topicops.features.shared.yaml_text import document_text, text_of
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.specs.document import Document, Items, Node

Read = Callable[[str, str], Document]
"""Reads a file that need not exist yet, from its path below ``topics/`` and its text."""


@dataclass(frozen=True, slots=True)
class WrittenException:
    """One entry."""

    topic: str
    code: Code
    reason: str

    @property
    def fields(self) -> dict[str, str]:
        return {"topic": self.topic, "code": self.code, "reason": self.reason}


def exceptions_file(environment: str) -> str:
    """Return the path of the file, below ``topics/``."""
    return f"environments/{environment}.exceptions.yaml"


def with_exceptions(text: str | None, more: Sequence[WrittenException], environment: str, read: Read) -> str:
    """Return the text with ``more`` after its last entry. Raises ``UsageError`` where entries are no block list."""
    added = [exception.fields for exception in more]
    if text is None:
        return document_text("Exceptions", {"name": environment}, {"spec": {"exceptions": tuple(added)}})
    path = exceptions_file(environment)
    before = read(path, text)
    entries = _entries(before)
    edited = _behind(text, entries[-1], added) if entries else text
    if [*map(plain_value, _entries(read(path, edited)))] != [*map(plain_value, entries), *added]:
        raise UsageError(
            f"{before.file}: exceptions cannot be put behind those that are there; write them as a list, one "
            "`- topic:` a line, or delete the file if it has none"
        )
    return edited


def _behind(text: str, last: Node, added: Sequence[dict[str, str]]) -> str:
    """Return the text with the new entries below the last one, with the same indentation."""
    lines, depth = text.split("\n"), max(last.span.column - 3, 0)
    row = last_line(last, lines, below=depth, line=last.span.line)
    new = [
        f"{' ' * depth}{'  ' if number else '- '}{line}"
        for fields in added
        for number, line in enumerate(text_of(fields).splitlines())
    ]
    return "\n".join([*lines[:row], *new, *(lines[row:] or [""])])


def _entries(document: Document) -> tuple[Node, ...]:
    node = field_of(document.root, "spec", "exceptions")
    return node.items if isinstance(node, Items) else ()
