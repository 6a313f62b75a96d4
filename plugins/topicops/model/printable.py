"""Text that is safe to print: no control character, nothing invisible, no markup that a spec wrote."""

from __future__ import annotations

import re
import unicodedata

_UNPRINTABLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, format characters (bidirectional ones too), surrogates, unassigned, line and paragraph separators."""
_MARKDOWN_SPECIAL = re.compile(
    r"""[\\`*_\[\]#|~@]
      | :(?=//|[\w+-]+:)     # a bare address, an emoji
      | (?<=\bwww)\.         # an address without its scheme
    """,
    re.VERBOSE | re.IGNORECASE,
)


def printable(text: str) -> str:
    r"""``text`` on one line; every character that does not show as itself becomes ``\n``, ``\x1b`` or ``\u202e``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def printable_lines(text: str) -> str:
    """Like ``printable``, with the line feeds kept: for whole documents of our own making."""
    return "\n".join(printable(line) for line in text.split("\n"))


def markdown(text: str) -> str:
    """``text`` as plain words in Markdown: no link, mention, emphasis, table cell, image or HTML can start in it."""
    quoted = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN_SPECIAL.sub(_entity, quoted)


def _entity(match: re.Match[str]) -> str:
    # An entity survives inside tables and code-like words, where a backslash may not.
    return f"&#{ord(match.group())};"


def _escaped(character: str) -> str:
    if unicodedata.category(character) in _UNPRINTABLE_CATEGORIES:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
