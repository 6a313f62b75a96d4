"""How a text looks on a terminal: colour for the lines that matter, and wide lines folded. Elsewhere it is unchanged.

The words are the same with and without colour. Texts of specs and brokers arrive with their control characters escaped.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import TextIO

RESET = "\x1b[0m"
BOLD, RED, GREEN, YELLOW, CYAN = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m")
STYLES: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\A  \+ topic\."), GREEN),
    (re.compile(r"\A  [~>] topic\."), YELLOW),
    (re.compile(r"\A  - topic\."), RED),
    (re.compile(r"\A(?:  ! |      TOP\d{3}: )"), RED),
    (re.compile(r"\A(?:      (risk: destructive|cannot be undone:)|Cannot be undone:)"), RED),
    (re.compile(r"\A(?:      (risk|held|skipped): |.*\bheld: to run them too)"), YELLOW),
    (re.compile(r"\A(?:      (way out|note): |  help: )"), CYAN),
    (re.compile(r"\A\S.*?:\d+:\d+: error TOP\d{3}: "), RED),
    (re.compile(r"\A\S.*?:\d+:\d+: warning TOP\d{3}: "), YELLOW),
    (re.compile(r"\A +\^+$"), RED),
    (re.compile(r"\A(?:Plan: |No changes\.|Plan for environment|\d+ files?: )"), BOLD),
)
"""Patterns of how a line begins, in order: the first that matches decides."""
_SOURCE_LINE = re.compile(r"  \d+ \| | +\^+$")
"""Folding these would move the carets away from what they mark."""
NARROWEST = 40


def wants_colour(stream: TextIO) -> bool:
    """Return whether it is a terminal, unless NO_COLOR is set or TERM is dumb; FORCE_COLOR turns colour on anywhere.

    Source: no-color.org, force-color.org.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def is_terminal(stream: TextIO) -> bool:
    """Return whether it is a terminal that knows colours and can take a line back."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def for_terminal(text: str, stream: TextIO) -> str:
    """Return the text as ``stream`` shows it best."""
    lines = text.split("\n")
    if stream.isatty():
        width = max(NARROWEST, shutil.get_terminal_size().columns)
        lines = [part for line in lines for part in folded(line, width)]
    return "\n".join(map(painted, lines) if wants_colour(stream) else lines)


def painted(line: str) -> str:
    """Return the line in the colour of its kind."""
    style = next((style for form, style in STYLES if form.match(line)), "")
    return f"{style}{line}{RESET}" if style else line


def folded(line: str, width: int) -> list[str]:
    """Return the line in parts of at most ``width`` characters, cut at blanks; later parts are indented further."""
    if len(line) <= width or _SOURCE_LINE.match(line):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    ) or [line]
