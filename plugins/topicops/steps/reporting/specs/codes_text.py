"""Codes as text: what each means, how it comes about, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from topicops.model.codes import CODES, Code
from topicops.model.errors import UsageError


def code_list(codes: Iterable[Code]) -> str:
    """One line for each code."""
    return "\n".join(f"{code}  {code.meaning}" for code in codes)


def code_text(code: Code) -> str:
    """One code with its cause, an example and the fix."""
    return "\n".join(_lines(code))


def _lines(code: Code) -> Iterator[str]:
    yield f"{code}: {code.meaning}"
    yield ""
    yield f"  Cause:   {code.cause}"
    if code.example:
        yield f"  Example: {code.example}"
    yield f"  Fix:     {code.fix}"
    if page := code.page:
        yield f"  More:    {page}"


def find_code(text: str) -> Code:
    """The code as people type it: ``TOP204``, ``top204``, ``204``, ``v08``.

    Raises:
        UsageError: There is no such code; the message names the nearest one.
    """
    wanted = text.strip().upper()
    wanted = f"TOP{wanted}" if wanted.isdecimal() else wanted
    found = CODES.get(wanted)
    if found is None:
        raise UsageError(f"there is no code {text!r}; the nearest is {_nearest(wanted)}, and `topicops code` lists all")
    return found


def _nearest(wanted: str) -> str:
    digits = wanted.removeprefix("TOP")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        problems = (code for code in Code if code.startswith("TOP"))
        return min(problems, key=lambda code: abs(int(code.removeprefix("TOP")) - int(digits)))
    return next(iter(difflib.get_close_matches(wanted, CODES, n=1, cutoff=0.0)))
