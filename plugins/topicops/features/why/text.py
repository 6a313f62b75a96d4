"""The answer of ``why`` as text."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.features.why.values import Cause, Why
from topicops.model.printable import printable


def why_text(found: Why) -> str:
    """A part for each cause: what is so, what ends it, what to type, and where it was read."""
    name = printable(f"{found.topic} in {found.environment}:")
    if not found.causes:
        return f"{name} nothing is wrong with it, neither in its metadata nor on its brokers."
    return "\n\n".join([name, *("\n".join(map(printable, _lines(cause))) for cause in found.causes)])


def _lines(cause: Cause) -> Iterator[str]:
    yield f"{cause.kind}: {cause.message}"
    yield f"  way out: {cause.way_out}"
    if cause.last_resort:
        yield f"  last resort: {cause.last_resort}"
    yield from (f"    {command}" for command in cause.commands)
    if cause.caution:
        yield f"  careful: {cause.caution}"
    yield f"  read from: {', '.join(cause.read_from)}"
