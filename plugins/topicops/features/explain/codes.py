"""Codes as text: what each means, how it comes about, and what to do."""

from __future__ import annotations

import difflib

from topicops.model.codes import CODES, Code
from topicops.model.errors import UsageError


def code_text(code: Code) -> str:
    """Return one code with its cause, an example and the fix."""
    parts = {"Cause:": code.cause, "Example:": code.example, "Fix:": code.fix, "More:": code.page}
    return "\n".join([f"{code}: {code.meaning}", "", *(f"  {part:<8} {text}" for part, text in parts.items() if text)])


def find_code(text: str) -> Code:
    """Return the code as people type it: ``TOP204``, ``top204``, ``204``, ``v08``.

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
