"""One config of a topic's own file, set or written anew. All other lines stay as they are."""

from __future__ import annotations

from topicops.features.shared.yaml_blocks import field_of, is_block, last_line
from topicops.features.shared.yaml_text import config_content, text_of
from topicops.model.specs.document import Entry, Fields, Node, Span, Text
from topicops.model.specs.topic_config import TOPIC_CONFIGS


def with_config(root: Node | None, text: str, name: str, value: str | None) -> str | None:
    """Write this config into the text of a spec. None means that no line can be changed or added as it is written.

    Args:
        value: Canonical. None means that the file says that no override may be live.
    """
    lines, written = text.split("\n"), _line(name, value)
    spec = field_of(root, "spec")
    configs = field_of(spec, "configs")
    found = field_of(configs, name)
    if isinstance(found, Text):
        return _replaced(lines, found.span, written.partition(": ")[2])
    if isinstance(configs, Fields) and configs.entries and is_block(configs, lines):
        return _added(lines, configs.entries[-1], [written])
    if configs is None and isinstance(spec, Fields) and spec.entries and is_block(spec, lines):
        return _added(lines, spec.entries[-1], ["configs:", f"  {written}"])
    return None


def written_value(name: str, value: str | None) -> str:
    """Write a canonical value as people do in a file: ``7d``, ``1GiB``, ``null``."""
    return _line(name, value).partition(": ")[2]


def _line(name: str, value: str | None) -> str:
    content = config_content(name, value) if value is not None and name in TOPIC_CONFIGS else value
    return text_of({name: content}).rstrip("\n")


def _replaced(lines: list[str], span: Span, value: str) -> str | None:
    if span.line != span.end_line or span.column == span.end_column:
        return None
    line = lines[span.line - 1]
    edited = f"{line[: span.column - 1]}{value}{line[span.end_column - 1 :]}"
    return "\n".join([*lines[: span.line - 1], edited, *lines[span.line :]])


def _added(lines: list[str], after: Entry, new: list[str]) -> str:
    """Return the lines with new ones below a field, indented as its key is."""
    key, value = after
    depth = key.span.column - 1
    last = last_line(value, lines, below=depth, line=key.span.line)
    return "\n".join([*lines[:last], *(f"{' ' * depth}{line}" for line in new), *lines[last:]])
