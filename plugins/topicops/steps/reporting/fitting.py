"""Markdown within a length: rows that do not fit are left out whole, and each section counts what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicops.model.printable import markdown

MARKDOWN_LIMIT = 60_000
"""Characters; GitHub refuses comments above 65,536."""
_LONGEST_WORDS = 300
"""The most characters of one text of a spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with rows of a table, items of a list, or whole blocks below it."""

    title: str
    head: tuple[str, ...] = ()
    """The first two lines of a table."""
    rows: tuple[str, ...]
    noun: str
    """What a row is, in the plural: ``changes``."""

    def lines(self, kept: int) -> list[str]:
        """The section with its first ``kept`` rows."""
        left_out = len(self.rows) - kept
        body = [*self.head, *self.rows[:kept], ""] if kept else []
        note = [f"*{left_out} {self.noun} are left out here; the plan file has all.*", ""] if left_out else []
        return [f"#### {self.title}", "", *body, *note]


def fitted(sections: Sequence[Section], room: int) -> list[str]:
    """The lines of all sections in ``room`` characters: the first sections get the room, the others their heading."""
    lines: list[str] = []
    reserved = sum(size(section.lines(0)) for section in sections)
    for section in sections:
        reserved -= size(section.lines(0))
        lines += _longest(section, room - reserved - size(lines))
    return lines


def _longest(section: Section, room: int) -> list[str]:
    whole = section.lines(len(section.rows))
    if size(whole) <= room:
        return whole
    room -= size(section.lines(0)) + size(section.head) + 1
    kept = 0
    while room >= len(section.rows[kept]) + 1:
        room -= len(section.rows[kept]) + 1
        kept += 1
    return section.lines(kept)


def size(lines: Sequence[str]) -> int:
    """The number of characters, line feeds included."""
    return sum(map(len, lines)) + len(lines)


def clipped(lines: Sequence[str], limit: int) -> str:
    """Join whole lines up to ``limit`` characters; the last one then says how many are left out."""
    text = "\n".join(lines) + "\n"
    if len(text) <= limit:
        return text
    kept: list[str] = []
    room = limit - 100
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(
        [*kept, "", f"*{len(lines) - len(kept)} more lines are left out here; the plan file has all.*", ""]
    )


def words(text: str, *, most: int = _LONGEST_WORDS) -> str:
    """Clip and escape a text of a spec for Markdown."""
    short = text if len(text) <= most else f"{text[:most]}…"
    return markdown(short)


def cells(*texts: str) -> str:
    """One row of a table."""
    return f"| {' | '.join(texts)} |"
