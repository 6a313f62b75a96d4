"""The codes of problems as text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from topicops.model.errors import UsageError
from topicops.model.specs.codes import CODES, Code

_PAGES = {
    "V": "a check of verify: docs/reference/checks.md says when it is healthy",
    "Q": "a rule of data quality: docs/reference/quality.md says what it counts",
}
"""Where reports' other ids are explained, by their letter."""


def code_list(codes: Iterable[Code]) -> str:
    """One line for each code."""
    return "\n".join(f"{code.code}  {code.title}{' (reserved)' if code.is_reserved else ''}" for code in codes)


def code_text(code: Code) -> str:
    """One code with its cause, an example and the fix."""
    return "\n".join(_lines(code))


def _lines(code: Code) -> Iterator[str]:
    yield f"{code.code}: {code.title}"
    yield ""
    if code.is_reserved:
        yield "  Reserved: nothing produces it yet."
    yield f"  Cause:   {code.cause}"
    yield f"  Example: {code.example}"
    yield f"  Fix:     {code.fix}"


def find_code(text: str) -> Code:
    """The code as people type it: ``TOP204``, ``top204``, ``204``.

    Raises:
        UsageError: There is no such code; the message names the nearest one.
    """
    wanted = text.strip().upper()
    wanted = f"TOP{wanted}" if wanted.isdecimal() else wanted
    found = CODES.get(wanted)
    if page := _PAGES.get(wanted[:1]) if re.fullmatch(r"[A-Z]\d\d", wanted) else None:
        raise UsageError(f"{wanted} is {page}")
    if found is None:
        raise UsageError(f"there is no code {text!r}; the nearest is {_nearest(wanted)}, and `topicops code` lists all")
    return found


def _nearest(wanted: str) -> str:
    digits = wanted.removeprefix("TOP")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        return min(CODES, key=lambda code: abs(int(code.removeprefix("TOP")) - int(digits)))
    return next(iter(difflib.get_close_matches(wanted, CODES, n=1, cutoff=0.0)))
