"""A plan for a pull request: risky changes first, and short enough for one comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from topicops.model.plans.changes import DeleteTopic
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import markdown, printable
from topicops.model.runs.facts import DRIFT_CLASSES, Facts
from topicops.steps.reporting.facts_wording import OWNERS_HEAD, OWNERS_TITLE, owners_with_drift
from topicops.steps.reporting.fitting import MARKDOWN_LIMIT, Section, cells, fitted, size, words
from topicops.steps.reporting.plans.plan_wording import (
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
_SHORT = 60
"""Characters of an owner where rows are brief."""
_ROWS_SHOWN = 12
"""The most replica lists of one change; a table's cell is narrow."""
CHANGES_TABLE = ("| change | what | risk | gate |", "|---|---|---|---|")
BRIEF_TABLE = ("| change | owner | risk | gate |", "|---|---|---|---|")
_NAME_TABLE = ("| change | topics |", "|---|---|")
BLOCKED_TABLE = ("| topic | why | way out |", "|---|---|---|")
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
        Section(title="Blocked", head=BLOCKED_TABLE, rows=tuple(map(blocked_row, found.blocked)), noun="topics"),
        Section(
            title="Other changes", head=CHANGES_TABLE, rows=tuple(change_row(plan, g) for g in others), noun="changes"
        ),
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
    full = Section(
        title=GRAVE, head=CHANGES_TABLE, rows=tuple(change_row(plan, gated) for gated in grave), noun="changes"
    )
    brief = Section(title=GRAVE, head=BRIEF_TABLE, rows=tuple(map(brief_row, grave)), noun="changes")
    for section in (full, brief):
        lines = section.lines(len(grave))
        if size(lines) <= room:
            return lines
    return _name_lines(grave, room)


def _name_lines(grave: Sequence[GatedChange], room: int) -> list[str]:
    """A table of names, one row for each action and risk; its counts hold even where the names do not fit."""
    names: dict[str, list[str]] = {}
    for gated in grave:
        names.setdefault(f"**{gated.change.action}**, {gated.change.risk}", []).append(words(gated.change.topic))
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


def brief_row(gated: GatedChange, *, more: Iterable[str] = ()) -> str:
    """A row of ``BRIEF_TABLE``; ``more`` is Markdown below the gate's word."""
    change, gate = gated.change, "<br>".join([str(gated.gate), *more])
    return cells(change_name(gated), words(change.owner, most=_SHORT), words(risk_text(change)), gate)


# ---- rows ----


def change_row(plan: Plan, gated: GatedChange, *, more: Iterable[str] = ()) -> str:
    """A row of ``CHANGES_TABLE``; ``more`` is Markdown below the gate's reasons."""
    change = gated.change
    said = [*effect_lines(change, most_rows=_ROWS_SHOWN), *change.notes]
    if isinstance(change, DeleteTopic):
        said.append(traffic_text(plan.change_set.activity.get(change.topic)))
    risk = [words(risk_text(change))]
    if final := why_final(change):
        risk.append(f"**cannot be undone**: {words(final)}")
    gate = "<br>".join([f"**{gated.gate}**", *map(words, gated.reasons), *more])
    where = words(origin(change.location, change.owner))
    return cells(f"{change_name(gated)}<br>{where}", "<br>".join(map(words, said)), "<br>".join(risk), gate)


def change_name(gated: GatedChange) -> str:
    """``**configure** orders``. Signs would break it: after ``**`` GitHub takes a tilde for its own markup."""
    return f"**{gated.change.action}** {words(gated.change.topic)}"


def blocked_row(blocked: Blocked) -> str:
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
