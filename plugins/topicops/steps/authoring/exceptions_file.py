"""Entries added to an environment's file of exceptions, with all that stands there left as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from topicops.model.errors import UsageError
from topicops.model.specs.document import Document, Fields, Items, Node, Text
from topicops.model.specs.document_values import PlainValue, field_of, plain_value
from topicops.steps.authoring.yaml_text import document_text, text_of

Read = Callable[[str, str], Document]
"""What a file would say: its path below ``topics/``, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenException:
    """One entry."""

    topic: str
    code: str
    reason: str

    @property
    def fields(self) -> dict[str, str]:
        return {"topic": self.topic, "code": self.code, "reason": self.reason}


def exceptions_file(environment: str) -> str:
    """The path below ``topics/``."""
    return f"environments/{environment}.exceptions.yaml"


def with_exceptions(text: str | None, more: Sequence[WrittenException], environment: str, read: Read) -> str:
    """The file with ``more`` behind its last entry; a new one where ``text`` is None.

    Raises:
        UsageError: the entries are not written as a list of lines, so that none can be put behind them.
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
    if _meanings(read(path, edited)) != [*_meanings(before), *(exception.fields for exception in more)]:
        raise _no_place(before.file)
    return edited


def _no_place(file: str) -> UsageError:
    return UsageError(
        f"{file}: exceptions cannot be put behind those that are there; write them as a list, one `- topic:` a line, "
        "or delete the file if it has none"
    )


def _behind(text: str, last: Node, more: Sequence[WrittenException]) -> str:
    """The new entries below the last one, as far to the right as its fields."""
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


def _meanings(document: Document) -> list[PlainValue]:
    return [plain_value(entry) for entry in _entries(document)]
