"""A plan for a terminal, as Terraform prints it: a sentence for each change, details below it, the summary last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.plans.changes import DeleteTopic, GateWord
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import printable
from topicops.model.runs.facts import Facts
from topicops.model.specs.environment import Risk
from topicops.steps.reporting.facts_wording import OWNERS_TITLE, owner_lines
from topicops.steps.reporting.plans.plan_wording import (
    PARTICIPLES,
    SIGNS,
    approval_lines,
    effect_lines,
    final_line,
    load_rows,
    origin,
    other_lines,
    risk_text,
    summary_line,
    title,
    traffic_text,
    why_final,
)

_ROWS_SHOWN = 256
"""The most replica lists of one change: enough for any topic that a reviewer reads in full."""
_LONGEST_REASSIGNMENT = 500
"""The most characters of JSON to print; people copy longer JSON from the plan file."""
_LOAD_SHOWN = 40
"""The most rows of brokers and racks."""


def plan_text(plan: Plan, facts: Facts | None = None) -> str:
    """Every line is printable; the most important lines are last, where a terminal stops."""
    lines = [f"{title(plan)}:", ""]
    for gated in plan.changes:
        lines += [*_change_lines(plan, gated), ""]
    for blocked in plan.change_set.blocked:
        lines += [*_blocked_lines(blocked), ""]
    for part in (_load_lines(plan), other_lines(plan), _owner_lines(facts)):
        lines += [*part, ""] if part else []
    lines += [line for line in (summary_line(plan), final_line(plan)) if line]
    closing = approval_lines(plan)
    lines += ["", *closing] if closing else []
    return "\n".join(lines) + "\n"


def _change_lines(plan: Plan, gated: GatedChange) -> Iterator[str]:
    change = gated.change
    yield printable(
        f"  {SIGNS[change.action]} {change.address} {_sentence(gated)}  ({origin(change.location, change.owner)})"
    )
    if change.risk is not Risk.SAFE:
        yield f"      risk: {risk_text(change)}"
    if final := why_final(change):
        yield f"      cannot be undone: {final}"
    yield from (printable(f"      {gated.gate}: {reason}") for reason in gated.reasons)
    yield from (f"      {line}" for line in effect_lines(change, most_rows=_ROWS_SHOWN))
    if isinstance(change, DeleteTopic):
        yield f"      {traffic_text(plan.change_set.activity.get(change.topic))}"
    yield from (printable(f"      note: {note}") for note in change.notes)


def _sentence(gated: GatedChange) -> str:
    participle = PARTICIPLES[gated.change.action]
    if gated.gate is GateWord.RUN:
        return f"will be {participle}"
    return f"would be {participle}, but is {gated.gate}"


def _blocked_lines(blocked: Blocked) -> Iterator[str]:
    yield printable(f"  ! {blocked.address} is blocked  ({origin(blocked.location, blocked.owner)})")
    for code, reason in zip(blocked.codes, blocked.reasons, strict=False):
        yield printable(f"      {code}: {reason}")
    yield printable(f"      way out: {blocked.way_out}")
    if blocked.reassignment:
        fits = len(blocked.reassignment) <= _LONGEST_REASSIGNMENT
        yield printable(f"      reassignment: {blocked.reassignment if fits else 'in the plan file, as JSON'}")


def _owner_lines(facts: Facts | None) -> list[str]:
    """Only where several owners have topics that differ: else the lines above name the one."""
    lines = owner_lines(facts) if facts else []
    return [f"{OWNERS_TITLE}:", *(printable(f"  {line}") for line in lines)] if len(lines) > 1 else []


def _load_lines(plan: Plan) -> list[str]:
    rows = load_rows(plan)
    if not rows:
        return []
    left_out = len(rows) - _LOAD_SHOWN
    more = [f"  … and {left_out} more, all in the plan file"] if left_out > 0 else []
    shown = [(f"  {who}", replicas, leaders) for who, replicas, leaders in rows[:_LOAD_SHOWN]]
    return [*_aligned([("Load, if all of it runs", "replicas", "leaders"), *shown]), *more]


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
