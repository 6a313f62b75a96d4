"""What the rules of ``doctor`` share: a finding about places, and the places in its sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topicops.features.doctor.values import Finding, Severity
from topicops.model.codes import Code
from topicops.model.printable import printable
from topicops.steps.reporting.facts_wording import why_command

NAMED = 3
"""How many places a sentence names; it counts the rest."""


def found(
    severity: Severity, message: str, places: Iterable[str], fix: str, code: Code | None = None
) -> Iterator[Finding]:
    """Yield one finding whose message ends with the places; nothing where there are none."""
    if places := tuple(places):
        yield Finding(severity, f"{message} {listed(places)}", fix, code, places)


def listed(places: Iterable[object]) -> str:
    """``a, b, c and 4 more``."""
    found = tuple(map(str, places))
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(map(printable, found[:NAMED])) + more


def with_why(fix: str, topic: str, environment: str) -> str:
    """The fix, and the command that says why this topic, the first of those that are named, is as it is."""
    return f"{fix}; to see all causes: {why_command(topic, environment)}"
