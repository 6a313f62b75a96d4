"""``topicops code``: what a code of a problem means, how it comes about, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Annotated

import typer

from topicops.cli.output import print_result
from topicops.model.errors import UsageError
from topicops.model.specs.codes import CODES, Code


def code_command(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[TOPnnn]", help="A code as in a message; left out: all.", show_default=False),
    ] = None,
) -> None:
    """Explain a code, or list all of them."""
    if code is None:
        print_result("\n".join(map(_as_line, CODES.values())))
    else:
        print_result("\n".join(_lines(find_code(code))))


def find_code(text: str) -> Code:
    """The code as people type it: ``TOP204``, ``top204``, ``204``.

    Raises:
        UsageError: there is no such code; the text names the nearest.
    """
    wanted = text.strip().upper()
    wanted = f"TOP{wanted}" if wanted.isdecimal() else wanted
    found = CODES.get(wanted)
    if found is None:
        raise UsageError(
            f"no code is called {text!r}; the nearest is {_nearest(wanted)}, and `topicops code` lists all"
        )
    return found


def _nearest(wanted: str) -> str:
    digits = wanted.removeprefix("TOP")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        return min(CODES, key=lambda code: abs(int(code.removeprefix("TOP")) - int(digits)))
    return next(iter(difflib.get_close_matches(wanted, CODES, n=1, cutoff=0.0)))


def _as_line(code: Code) -> str:
    return f"{code.code}  {code.title}" + (" (reserved)" if code.is_reserved else "")


def _lines(code: Code) -> Iterator[str]:
    yield f"{code.code}: {code.title}"
    yield ""
    if code.is_reserved:
        yield "  Reserved: nothing produces it yet."
    yield f"  Cause:   {code.cause}"
    yield f"  Example: {code.example}"
    yield f"  Fix:     {code.fix}"
