"""Sort the fields of block mappings; each field keeps its comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.formatting.field_order import Layout
from topicops.model.specs.document import Entry, Fields, Node
from topicops.steps.authoring.yaml_blocks import Chunk, chunks_of, end_of, is_block, lines_of


def reordered(text: str, root: Node, layout: Layout) -> str:
    """``text`` with every mapping of the layout in order; the first and last lines outside the fields stay."""
    lines = text.split("\n")
    if not isinstance(root, Fields) or not root.entries or not is_block(root, lines):
        return text
    first = root.entries[0][0].span.line
    body = _in_order(root, layout, lines, start=first, end=len(lines) + 1)
    return "\n".join([*lines[: first - 1], *body])


def _in_order(fields: Fields, layout: Layout, lines: Sequence[str], *, start: int, end: int) -> list[str]:
    tail = end_of(fields.entries[-1], lines, end=end)  # later lines belong to the mapping as a whole
    chunks = chunks_of(fields, lines, start=start, end=tail)
    place = {name: number for number, name in enumerate(layout.fields)}
    pairs = sorted(zip(chunks, fields.entries, strict=True), key=lambda pair: place.get(pair[0].name, len(place)))
    found = [line for chunk, entry in pairs for line in _lines(chunk, entry, layout, lines)]
    return [*found, *lines[tail - 1 : end - 1]]


def _lines(chunk: Chunk, entry: Entry, layout: Layout, lines: Sequence[str]) -> Iterator[str]:
    key, value = entry
    below = layout.below(key.text)
    if below is None or not isinstance(value, Fields) or not value.entries or not is_block(value, lines):
        yield from lines_of(chunk, lines)
        return
    yield from lines[chunk.start - 1 : key.span.line]
    yield from _in_order(value, below, lines, start=key.span.line + 1, end=chunk.end)
