"""A document, written once and shown as text, as Markdown of a bounded length, and by ``markup`` as HTML.

It is a sequence of sections: paragraphs where a section has no title, else a list, a table or code, maybe folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from topicops.model.printable import bold, markdown, printable

MARKDOWN_LIMIT = 60_000
"""Most characters; GitHub refuses comments above 65,536."""
_LONGEST_WORDS = 300
"""The most characters of one text of a spec in Markdown."""
_LONGEST_CODE = 500
"""The most characters of code on a terminal; people copy longer code from the plan file."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line that reads differently in a table: there its column says what the label says on a terminal.

    Below an entry, a terminal shows no line without a text, and none without a label or bold words: the sentence of the
    entry says it.
    """

    text: str = ""
    label: str = ""
    bold: str = ""
    """Words before the text, bold where the form knows it."""
    is_whole: bool = False
    """Whether the text is shown whole, however long: a command that is cut off cannot be typed."""


Line = str | Said
Cell = Line | tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table, and on a terminal a sentence with the lines of all cells but the first below it."""

    sentence: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy, with the name of what they are for."""

    name: str
    text: str
    language: str = "json"


Row = Line | Code | Entry | tuple[Cell, ...]
"""An item of a list (a paragraph where the section has no title), code, or a row of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with rows below it; one without rows is not shown, unless it is the title of the document."""

    title: str = ""
    head: tuple[str, ...] = ()
    """Columns of a table."""
    rows: Sequence[Row]
    noun: str = "lines"
    """Word for the rows that are left out, in the plural: ``changes``."""
    level: int = 4
    """Level of the heading in Markdown; that of a title is 3."""
    most: int | None = None
    """Number of rows that a terminal shows; None means all."""
    is_folded: bool = False
    """Whether a comment shows the rows only to people who open them."""

    @property
    def is_shown(self) -> bool:
        return bool(self.rows) or self.level < 4


Document = Iterable[Section]


# ---- text ----


def as_text(document: Document) -> str:
    """Return lines for a terminal or a log, all printable, with an empty line between sections."""
    parts = ["\n".join(map(printable, _text_lines(section))) for section in document if section.rows]
    return "\n\n".join(parts) + "\n"


def _text_lines(section: Section) -> Iterator[str]:
    indent = "  " if section.title else ""
    rows = section.rows[: section.most]
    if section.title:
        yield f"{section.title}:"
    if aligned := [tuple(map(_in_text, row)) for row in rows if isinstance(row, tuple)]:
        table = [section.head, *aligned]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        yield from (
            f"{indent}{'  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}".rstrip()
            for row in table
        )
    for row in rows:
        if isinstance(row, Entry):
            yield f"  {row.sentence}"
            yield from (f"      {line}" for cell in row.cells[1:] for line in _below(cell))
        elif isinstance(row, Code):
            text = row.text if len(row.text) <= _LONGEST_CODE else "in the plan file, as JSON"
            yield f"{indent}  {row.name}: {text}"
        elif not isinstance(row, tuple):
            yield f"{indent}{_in_text(row)}"
    if more := len(section.rows) - len(rows):
        yield f"{indent}… and {more} more {section.noun}, all in the plan file"


def _in_text(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return ", ".join(map(_in_text, cell))
    return cell if isinstance(cell, str) else " ".join(filter(None, (cell.bold, cell.text)))


def _below(cell: Cell) -> Iterator[str]:
    for line in cell if isinstance(cell, tuple) else (cell,):
        if isinstance(line, str):
            yield line
        elif line.text and (before := f"{line.label}:" if line.label else line.bold):
            yield f"{before} {line.text}"


# ---- Markdown ----


def as_markdown(document: Document, *, limit: int = MARKDOWN_LIMIT, whole: str = "the plan file") -> str:
    """Write at most ``limit`` characters: the first sections get the room; each counts the rows only ``whole`` has."""
    sections = [section for section in document if section.is_shown]
    lines: list[str] = []
    reserved = least_size(sections)
    for section in sections:
        reserved -= least_size([section])
        lines += markdown_lines(section, room=limit - reserved - size(lines), whole=whole)
    return "\n".join(lines).rstrip("\n") + "\n"


def markdown_lines(
    section: Section, *, room: int | None = None, most: int | None = None, whole: str = "the plan file"
) -> list[str]:
    """Return the section with as many of its first rows as fit; one without a title is always whole.

    Args:
        room: Characters; None means any number.
        most: Rows; None means any number.
    """
    top, bottom = section_head(section), ["</details>", ""] if section.is_folded else []
    if not section.title:
        return [line for row in section.rows for line in (markdown_row(row), "")]
    kept: list[str] = []
    columns = table_head(section)
    left = None if room is None else room - least_size([section]) - size(columns) - 1
    for row in section.rows[:most]:
        shown = markdown_row(row, section.head)
        if left is not None:
            left -= len(shown) + 1
            if left < 0:
                break
        kept.append(shown)
    left_out = len(section.rows) - len(kept)
    body = [*columns, *kept, ""] if kept else []
    note = [_left_out(section, left_out, whole), ""] if left_out else []
    return [*top, *body, *note, *bottom]


def markdown_table(section: Section) -> str:
    """Return the table alone, whole and without a heading; empty where it has no rows."""
    rows = [markdown_row(row, section.head) for row in section.rows]
    return "\n".join([*table_head(section), *rows]) if rows else ""


def section_head(section: Section) -> list[str]:
    if section.is_folded:
        return ["<details>", f"<summary>{markdown(section.title)} ({len(section.rows)})</summary>", ""]
    return [f"{'#' * section.level} {markdown(section.title)}", ""]


def table_head(section: Section) -> list[str]:
    return [_cells(section.head), f"|{'---|' * len(section.head)}"] if section.head else []


def markdown_row(row: Row, head: Sequence[str] | None = None) -> str:
    """Return a row of Markdown; without a head, even an empty one, a paragraph."""
    match row:
        case tuple() | Entry():
            return _cells(map(_in_cell, row.cells if isinstance(row, Entry) else row))
        case Code():
            # A fence is longer than any run of backquotes in the code, so that no text can end it.
            text = printable(row.text)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{words(row.name)}:\n\n{fence}{row.language}\n{text}\n{fence}"
        case _:
            return _in_markdown(row) if head is None else f"- {_in_markdown(row)}"


def least_size(document: Document) -> int:
    """Return the number of characters where every section leaves out all its rows."""
    return sum(
        size(
            [*section_head(section), _left_out(section, len(section.rows), " " * 20), "", "</details>", ""]
            if section.title
            else markdown_lines(section)
        )
        for section in document
        if section.is_shown
    )


def size(lines: Iterable[str]) -> int:
    """Return the number of characters, line feeds included."""
    return sum(len(line) + 1 for line in lines)


def words(text: str) -> str:
    """Clip and escape a text of a spec for Markdown."""
    return markdown(clipped(text, _LONGEST_WORDS))


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _left_out(section: Section, count: int, whole: str) -> str:
    return f"*{count} {section.noun} are left out here; {whole} has all.*"


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _in_cell(cell: Cell) -> str:
    return "<br>".join(map(_in_markdown, cell)) if isinstance(cell, tuple) else _in_markdown(cell)


def _in_markdown(line: Line) -> str:
    if isinstance(line, str):
        return words(line)
    text = markdown(line.text) if line.is_whole else words(line.text)
    return " ".join(filter(None, (bold(line.bold), text)))
