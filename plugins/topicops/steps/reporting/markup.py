"""HTML without injection: text is always escaped, and only ``Html`` is used as it is.

Only these functions make ``Html``; none makes it from foreign text, and none writes a script or a style.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from topicops.model.printable import printable
from topicops.steps.reporting.document import Cell, Entry, Line, Said, Section

_VOID = frozenset({"meta", "link", "input"})
_ONLY_OURS = frozenset({"script", "style"})


@dataclass(frozen=True, slots=True)
class Html:
    """Finished markup; made by the functions of this module only."""

    text: str


def tag(name: str, /, *content: Html | str | None, **attributes: str | int | None) -> Html:
    """Write one element. A text is escaped, None left out.

    Args:
        attributes: Python's words with ``_`` for ``-``; ``cls`` is ``class``. None leaves the attribute out.
    """
    given = {
        ("class" if key == "cls" else key.replace("_", "-")): str(value)
        for key, value in attributes.items()
        if value is not None
    }
    written = "".join(f' {key}="{_escaped(value)}"' for key, value in given.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    if name in _ONLY_OURS and content:
        raise ValueError(f"<{name}> takes no content: the page's policy would not run it")
    return Html(f"<{name}{written}>{together(*content).text}</{name}>")


def together(*content: Html | str | None) -> Html:
    there = (piece for piece in content if piece is not None)
    return Html("".join(piece.text if isinstance(piece, Html) else _escaped(piece) for piece in there))


def lines(texts: Iterable[Html | str], *, cls: str | None = None) -> Html:
    return together(*(tag("div", text, cls=cls) for text in texts))


def table(
    head: Iterable[Html | str], rows: Iterable[Html | Iterable[Html | str | None]], *, cls: str | None = None
) -> Html:
    """Return a table that scrolls by itself; a row is its cells, escaped as any text, or a finished ``tr``."""
    header = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head)))
    drawn = (row if isinstance(row, Html) else tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", header, tag("tbody", *drawn), cls=cls), cls="scroll")


def section(found: Section, *, most: int) -> Html | None:
    """Return a heading, and a list or a table of at most this many rows; None where there are no rows."""
    if not found.rows:
        return None
    shown = found.rows[:most]
    rows = [row.cells if isinstance(row, Entry) else row for row in shown]
    listed = [tag("li", _line(row)) for row in rows if isinstance(row, str | Said)]
    body = (
        tag("ul", *listed) if listed else table(found.head, [map(_cell, row) for row in rows if isinstance(row, tuple)])
    )
    return together(tag("h2", found.title), body, more(len(found.rows) - len(shown), found.noun))


def more(count: int, noun: str) -> Html | None:
    return tag("p", f"… and {count:,} more {noun}, all in the plan file", cls="muted") if count > 0 else None


def _cell(cell: Cell) -> Html:
    return lines(map(_line, cell)) if isinstance(cell, tuple) else _line(cell)


def _line(line: Line) -> Html:
    if isinstance(line, str):
        return together(line)
    return together(tag("strong", line.bold) if line.bold else None, f" {line.text}" if line.bold else line.text)


def number(count: int) -> Html:
    return tag("span", f"{count:,}", cls="number")


def pill(word: str, tone: str) -> Html:
    """Return a word on a colour: ``good``, ``warn``, ``bad`` or ``calm``."""
    return tag("span", word, cls=f"pill {tone}")


def document(title: str, *content: Html | None, static: str) -> Html:
    """Return the whole page; ``static`` leads from it to the folder of the stylesheet and the script."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="stylesheet", href=f"{static}pages.css"),
        tag("script", src=f"{static}pages.js", defer="defer"),
    )
    body = tag("body", tag("main", *content))
    return Html(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en').text}\n")


def _escaped(text: str) -> str:
    """Escape as text and quoted attribute; characters that a browser hides or moves are spelled out."""
    return escape(printable(text), quote=True)
