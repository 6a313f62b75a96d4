"""A plan for a pull request: risky changes first, and short enough for one comment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from topicops.model.plans.changes import DeleteTopic
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import markdown, printable
from topicops.model.runs.facts import DRIFT_CLASSES, Facts
from topicops.steps.reporting.facts_wording import OWNERS_HEAD, OWNERS_TITLE, owners_with_drift
from topicops.steps.reporting.fitting import MARKDOWN_LIMIT, Section, cells, fitted, size, words
from topicops.steps.reporting.plans.plan_wording import (
    SIGNS,
    approval_lines,
    effect_lines,
    final_line,
    is_grave,
    load_rows,
    origin,
    other_lines,
    risk_text,
    summary_line,
    title,
    traffic_text,
    why_final,
)

GRAVE = "Look at these first"
_ROWS_SHOWN = 12
"""The most replica lists of one change; a table's cell is narrow."""
_TABLE = ("| change | what | risk | gate |", "|---|---|---|---|")
_BRIEF_TABLE = ("| change | owner | risk | gate |", "|---|---|---|---|")
_NAME_TABLE = ("| change | topics |", "|---|---|")
_BLOCKED_TABLE = ("| topic | why | way out |", "|---|---|---|")
_OWNERS_TABLE = (cells(*OWNERS_HEAD), "|---" * len(OWNERS_HEAD) + "|")
_LOAD_TABLE = ("| if all of it runs | replicas | leaders |", "|---|---|---|")


def plan_markdown(plan: Plan, facts: Facts | None = None) -> str:
    """Render a comment of at most ``MARKDOWN_LIMIT`` characters.

    The risky changes come first and are never left out: in full, else in brief, else by name alone.
    """
    grave = sorted((g for g in plan.changes if is_grave(g)), key=lambda gated: -gated.change.risk.rank)
    others = [gated for gated in plan.changes if not is_grave(gated)]
    sections = [section for section in _other_sections(plan, others, facts) if section.rows]
    head = [f"### {words(title(plan))}", "", *_summary(plan), ""]
    closing = [words(line) for line in approval_lines(plan)]
    room = MARKDOWN_LIMIT - size(head) - size(closing)
    first = _grave_lines(plan, grave, room - sum(size(section.lines(0)) for section in sections))
    return "\n".join([*head, *first, *fitted(sections, room - size(first)), *closing]).rstrip("\n") + "\n"


def _summary(plan: Plan) -> list[str]:
    final = final_line(plan)
    return [f"**{markdown(summary_line(plan))}**", *(["", markdown(final)] if final else [])]


def _other_sections(plan: Plan, others: Sequence[GatedChange], facts: Facts | None) -> list[Section]:
    found = plan.change_set
    loads = tuple(cells(*map(words, row)) for row in load_rows(plan))
    moves = tuple(_reassignment(blocked) for blocked in found.blocked if blocked.reassignment)
    return [
        Section(title="Blocked", head=_BLOCKED_TABLE, rows=tuple(map(_blocked_row, found.blocked)), noun="topics"),
        Section(title="Other changes", head=_TABLE, rows=tuple(_row(plan, g) for g in others), noun="changes"),
        Section(title="Also", rows=tuple(f"- {words(line)}" for line in other_lines(plan)), noun="lines"),
        Section(title=OWNERS_TITLE, head=_OWNERS_TABLE, rows=_owner_rows(facts), noun="owners"),
        Section(title="Load of brokers and racks", head=_LOAD_TABLE, rows=loads, noun="rows"),
        Section(title="For Kafka's reassignment tool", rows=moves, noun="reassignments"),
    ]


# ---- what must be seen ----


def _grave_lines(plan: Plan, grave: Sequence[GatedChange], room: int) -> list[str]:
    """All risky changes, with as much detail as fits."""
    if not grave:
        return []
    full = Section(title=GRAVE, head=_TABLE, rows=tuple(_row(plan, gated) for gated in grave), noun="changes")
    brief = Section(title=GRAVE, head=_BRIEF_TABLE, rows=tuple(map(_brief_row, grave)), noun="changes")
    for section in (full, brief):
        lines = section.lines(len(grave))
        if size(lines) <= room:
            return lines
    return _name_lines(grave, room)


def _name_lines(grave: Sequence[GatedChange], room: int) -> list[str]:
    """A table of names, one row for each action and risk; its counts hold even where the names do not fit."""
    names: dict[str, list[str]] = {}
    for gated in grave:
        names.setdefault(f"{_sign(gated)}, {gated.change.risk}", []).append(words(gated.change.topic))
    share = (room - 300) // len(names)
    rows = tuple(cells(f"{kind}: {len(found)}", _names(found, share - 100)) for kind, found in names.items())
    return Section(title=GRAVE, head=_NAME_TABLE, rows=rows, noun="rows").lines(len(rows))


def _names(names: Sequence[str], room: int) -> str:
    kept = 0
    while kept < len(names) and room >= len(names[kept]) + 2:
        room -= len(names[kept]) + 2
        kept += 1
    more = len(names) - kept
    return ", ".join(names[:kept]) + (f" **and {more} more, which only the plan file names**" if more else "")


def _brief_row(gated: GatedChange) -> str:
    change = gated.change
    return cells(
        f"{_sign(gated)} {words(change.topic)}", words(change.owner), words(risk_text(change)), str(gated.gate)
    )


# ---- rows ----


def _row(plan: Plan, gated: GatedChange) -> str:
    change = gated.change
    said = [*effect_lines(change, most_rows=_ROWS_SHOWN), *change.notes]
    if isinstance(change, DeleteTopic):
        said.append(traffic_text(plan.change_set.activity.get(change.topic)))
    risk = [words(risk_text(change))]
    if final := why_final(change):
        risk.append(f"**cannot be undone**: {words(final)}")
    gate = "<br>".join([f"**{gated.gate}**", *map(words, gated.reasons)])
    where = words(origin(change.location, change.owner))
    return cells(
        f"{_sign(gated)} {words(change.topic)}<br>{where}", "<br>".join(map(words, said)), "<br>".join(risk), gate
    )


def _sign(gated: GatedChange) -> str:
    return f"**{SIGNS[gated.change.action]} {gated.change.action}**"


def _blocked_row(blocked: Blocked) -> str:
    reasons = [f"{code}: {reason}" for code, reason in zip(blocked.codes, blocked.reasons, strict=False)]
    topic = f"{words(blocked.topic)}<br>{words(origin(blocked.location, blocked.owner))}"
    return cells(topic, "<br>".join(map(words, reasons)), words(blocked.way_out))


def _owner_rows(facts: Facts | None) -> tuple[str, ...]:
    """Only where several owners have topics that differ: else the rows of the changes name the one."""
    found = owners_with_drift(facts) if facts else []
    if len(found) <= 1:
        return ()
    return tuple(
        cells(words(owner), words(domain), *(str(counts.get(name, 0)) for name in DRIFT_CLASSES))
        for owner, domain, counts in found
    )


def _reassignment(blocked: Blocked) -> str:
    """One line in a code fence that is longer than any run of backquotes in it, so that no text can end the fence."""
    text = printable(blocked.reassignment or "")
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{words(blocked.topic)}:\n\n{fence}json\n{text}\n{fence}"
