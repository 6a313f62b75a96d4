"""Text that is safe to print: no control character, nothing invisible, no markup that a spec wrote."""

from __future__ import annotations

import re
from html import escape
from ipaddress import IPv6Address

_MARKDOWN = re.compile(
    r"""
      (?P<entity> & (?=\#?\w+;)                 # a character reference
                | <
                | (?<!\ -) >                    # the > of an arrow may stay: no tag is open
                | [|]                           # a table cell
                | : (?=//)                      # an address
                | (?<=\b[wW]{3}) \. )           # and one without its scheme
    | (?P<after>  [$] )                         # a formula
    | (?P<cut>    @                             # a mention, a mail address
                | \# (?=\d) | (?<=\bGH) - (?=\d)  # an issue
                | : (?=[a-z+-][\w+-]*:) )       # an emoji
    | (?P<slash>  \\ (?=[!-/:-@\[-`{-~]|$)      # elsewhere a backslash is only itself
                | [`*\[\]]
                | (?<![^\W_]) _ | _ (?![^\W_])  # emphasis begins and ends at the edge of a word
                | ~ (?!\s) | (?<!\s) ~              # our own ** may stand beside the text
                | (?<!\S) \# (?=\#*$) )       # the end of a heading
    """,
    re.VERBOSE,
)
_BLOCK_START = re.compile(r"^(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+#](?:[-+#\s]|$)))")
"""The start of a list, a heading or a rule; a backslash is put after it."""
_ZERO_WIDTH_SPACE = "&#8203;"


def printable(text: str) -> str:
    r"""``text`` on one line; every character that is not visible as itself becomes ``\n``, ``\x1b`` or ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, at most 300 characters; its type if it has no text."""
    return first_line_of(str(error)) or type(error).__name__


def first_line_of(text: str) -> str:
    """Return at most 300 characters; empty if there is no text."""
    return (text.strip().splitlines() or [""])[0][:300]


def printable_lines(text: str) -> str:
    """Do as ``printable``, but keep line feeds: for whole documents that this program makes."""
    return "\n".join(printable(line) for line in text.split("\n"))


def plural(number: int, noun: str) -> str:
    """Return ``1 topic``, ``2,000 topics``."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def about(seconds: float) -> str:
    """Return ``1 min``, ``40 min``, ``3 h 20 min``, ``2 days``: as exact as a forecast can be."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, rest = divmod(round(minutes / 10) * 10, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return plural(round(minutes / 60 / 24), "day")


def or_not_set(value: str | None) -> str:
    """Return a config's override, or ``not set``."""
    return "not set" if value is None else value


def markdown(text: str) -> str:
    """Escape ``text`` for GitHub's Markdown: it can start no link, mention, emphasis, table cell, image or HTML.

    Characters without a meaning at their place stay, so that the Markdown itself is easy to read.
    """
    return _BLOCK_START.sub(r"\g<0>\\", _MARKDOWN.sub(_unmarked, printable(text).strip()))


def bold(text: str) -> str:
    """Return ``text`` escaped, and bold where GitHub shows it; without a text there are no asterisks either."""
    words = markdown(text)
    return f"**{words}**" if words else ""


def _unmarked(match: re.Match[str]) -> str:
    character = match.group()
    if match.lastgroup == "entity":
        # GitHub splits cells before it reads backslashes, and autolinks ignore them.
        return f"&#{ord(character)};" if character not in "&<>" else escape(character)
    if match.lastgroup == "after":
        # GitHub has a formula for $x$ and \$x\$, unless something else than a space stands before it.
        return f"{_ZERO_WIDTH_SPACE}&#{ord(character)};"
    if match.lastgroup == "cut":
        # GitHub searches for these in the rendered text, where no backslash and no entity is left.
        return character + _ZERO_WIDTH_SPACE
    return f"\\{character}"


def _escaped(character: str) -> str:
    # Not printable are all controls, format characters (bidirectional ones too), surrogates, unassigned ones, and every
    # separator but the ASCII space: a no-break space in a name looks like a plain one.
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def address(host: str, port: int) -> str:
    """Return ``host:port``; an IPv6 address stands in brackets, because it has colons of its own."""
    return f"{bracketed(host)}:{port}"


def bracketed(text: str) -> str:
    """Return an IPv6 address in brackets; any other text as it is, one with a port too."""
    try:
        IPv6Address(text)
    except ValueError:
        return text
    return f"[{text}]"
