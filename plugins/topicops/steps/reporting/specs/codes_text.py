"""The codes of problems as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topicops.model.specs.codes import Code


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
