"""One field of a spec file set or taken out; all other lines stay as they are, with their comments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from topicops.features.shared.yaml_blocks import end_of, field_of, is_block, last_line
from topicops.features.shared.yaml_text import Content, Written, text_of
from topicops.model.errors import UsageError
from topicops.model.specs.document import Entry, Fields, Items, Node, Text

_Scalar = str | int | float | bool | None
_BRACES = re.compile(r"[\[\]{},]")
GONE: Final = object()
"""In place of a content: the field is taken out, and a mapping that has no other field goes with it."""


def with_field(text: str, root: Node | None, path: Sequence[str], content: Content | object) -> str:
    """Return ``text``, which says ``root``, with ``content`` below these keys.

    A mapping in braces on the way is written anew, one field a line. Raises ``UsageError`` where it holds comments.
    """
    lines, there = text.split("\n"), field_of(root, *path)
    shown = text_of({path[-1]: content}).rstrip("\n").partition(": ")[2] if isinstance(content, _Scalar) else ""
    if isinstance(there, Text) and shown and there.span.line == there.span.end_line and not _BRACES.search(shown):
        line, span = lines[there.span.line - 1], there.span
        lines[span.line - 1] = f"{line[: span.column - 1]}{shown}{line[span.end_column - 1 :]}"
        return "\n".join(lines)
    if not isinstance(root, Fields) or not is_block(root, lines) or root.first.column != 1:
        raise UsageError("it is not written one field a line")
    node, parent = root, [*path]
    if content is GONE and there is None:
        return text
    while content is GONE and len(parent) > 1 and _is_alone(field_of(root, *parent[:-1])):
        parent.pop()
    for depth, name in enumerate(parent):
        entry, below = _entry(node, name), parent[depth + 1 :]
        if entry is None:
            return _inserted(lines, node, _nested(parent[depth:], content))
        value = entry[1]
        if below and isinstance(value, Fields) and value.entries and is_block(value, lines):
            node = value
        else:
            return _replaced(lines, entry, _with(_content_of(value), below, content))
    return text


def _is_alone(node: Node | None) -> bool:
    return isinstance(node, Fields) and len(node.entries) == 1


def _entry(node: Fields, name: str) -> Entry | None:
    return next((entry for entry in node.entries if entry[0].text == name), None)


def _nested(path: Sequence[str], content: Content | object) -> Content:
    """Return the content with a mapping around it for each key of ``path``."""
    found: Content = content  # type: ignore[assignment]
    for name in reversed(path):
        found = {name: found}
    return found


def _inserted(lines: Sequence[str], node: Fields, content: Content) -> str:
    """Put the new field behind the last one of a block."""
    end = end_of(node.entries[-1], lines, end=len(lines) + 1) - 1
    return "\n".join([*lines[:end], *_indented(content, node.first.column), *(lines[end:] or [""])])


def _replaced(lines: Sequence[str], entry: Entry, content: Content | object) -> str:
    """Put a new value in the place of one; a comment behind a value on one line stays."""
    key, value = entry
    start, last = key.span.line, last_line(value, lines, below=key.span.column - 1, line=key.span.line)
    if content is GONE:
        comments = (line for line in lines[start - 1 : last] if line.lstrip().startswith("#"))
        return "\n".join([*lines[: start - 1], *comments, *lines[last:]])
    if last > start and any("#" in line for line in lines[start - 1 : last]):
        raise UsageError(f"{key.text} has comments inside its value; write it one field a line")
    shown = _indented({key.text: content}, key.span.column)  # type: ignore[dict-item]
    if last == start:
        shown[0] += lines[start - 1][value.span.end_column - 1 :].rstrip() if not isinstance(value, Items) else ""
    return "\n".join([*lines[: start - 1], *shown, *lines[last:]])


def _indented(content: Content, column: int) -> list[str]:
    return [f"{' ' * (column - 1)}{line}" for line in text_of(content).splitlines()]  # type: ignore[arg-type]


def _with(content: Content, path: Sequence[str], new: Content | object) -> Content | object:
    if not path:
        return new
    name, *below = path
    fields = dict(content) if isinstance(content, Mapping) else {}
    found = _with(fields.get(name, {}), below, new)
    return {key: value for key, value in {**fields, name: found}.items() if value is not GONE}


def _content_of(node: Node) -> Content:
    """Return what a node says, each plain text spelled as it is."""
    match node:
        case Fields():
            return {key.text: _content_of(value) for key, value in node.entries}
        case Items():
            return tuple(map(_content_of, node.items))
        case _:
            return Written(node.text) if node.plain else node.text
