"""A plan as text, as Terraform prints it, and as Markdown for a pull request: what it says of each change is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from topicops.model.plans.changes import DeleteTopic, GateWord
from topicops.model.plans.plan import Blocked, GatedChange, Plan
from topicops.model.printable import markdown
from topicops.model.runs.facts import Facts, owners_with_drift
from topicops.model.specs.environment import Risk
from topicops.steps.reporting.document import (
    MARKDOWN_LIMIT,
    Code,
    Entry,
    Line,
    Said,
    Section,
    as_markdown,
    as_text,
    clipped,
    least_size,
    markdown_lines,
    size,
)
from topicops.steps.reporting.facts_wording import OWNERS_HEAD, OWNERS_TITLE
from topicops.steps.reporting.folded import IN_FULL, folded
from topicops.steps.reporting.plan_wording import (
    FEW,
    PARTICIPLES,
    SIGNS,
    approval_lines,
    disk_lines,
    drained_title,
    effect_lines,
    final_line,
    is_drained_without_file,
    is_grave,
    load_rows,
    origin,
    other_lines,
    risk_text,
    some,
    summary_line,
    title,
    traffic_text,
    why_final,
)

GRAVE = "Look at these first"
CHANGES_HEAD = ("change", "what", "risk", "gate")
BRIEF_HEAD = ("change", "owner", "risk", "gate")
BLOCKED_HEAD = ("topic", "why", "way out")
_LONGEST_OWNER, _LONGEST_NAME = 60, 300
"""Characters of an owner where rows are brief, and of a topic where it is one of a list."""
_ROWS_IN_TABLE, _ROWS_IN_TEXT = 12, 256
"""The most replica lists of one change: a table's cell is narrow; in a text, any topic that is read in full."""


def plan_text(plan: Plan, facts: Facts | None = None, *, verbose: bool = False) -> str:
    """Write the counts first and last, then what a person must look at first: destructive and risky changes.

    Equal changes are one block with their names. Many changes have a line each, and very many are named by what becomes
    of them; ``verbose`` gives each all of its lines, with replicas, and the load of the brokers.
    """
    by_risk = sorted(plan.changes, key=lambda gated: (-gated.change.risk.rank, gated.change.reversible))
    asked, drained = with_file(by_risk), without_file(by_risk)
    moves, load, owners, also = _beside(plan, facts)
    blocked = list(map(blocked_entry, plan.change_set.blocked) if verbose else blocked_entries(plan.change_set.blocked))
    changes, moved = (_entries(plan, found, verbose=verbose) for found in (asked, drained))
    is_cut = any(len(entry.cells) < len(CHANGES_HEAD) for entry in (*changes, *moved))
    return as_text(
        [
            Section(rows=(summary_line(plan), f"{title(plan)}:")),
            *(Section(rows=(entry,)) for entry in (*changes, *blocked) if len(entry.cells) > 1),
            Section(rows=[entry for entry in changes if len(entry.cells) == 1]),
            Section(title=drained_title(gated.change for gated in drained), rows=moved),
            *((moves, load, owners) if verbose else (moves,)),
            Section(rows=also.rows),
            Section(rows=[*_summary(plan), *([IN_FULL] if is_cut else [])]),
            Section(rows=approval_lines(plan)),
        ]
    )


def plan_markdown(plan: Plan, facts: Facts | None = None) -> str:
    """Render a comment of at most ``MARKDOWN_LIMIT`` characters.

    The risky changes come first and are never left out: in full, else in brief, else by name alone.
    """
    asked, drained = with_file(plan.changes), without_file(plan.changes)
    grave = sorted((g for g in asked if is_grave(g)), key=lambda gated: -gated.change.risk.rank)
    others = [change_entry(plan, gated) for gated in asked if not is_grave(gated)]
    moved = [change_entry(plan, gated) for gated in drained]
    moves, load, owners, also = _beside(plan, facts)
    summary, *final = _summary(plan)
    head = [Section(title=title(plan), level=3, rows=()), Section(rows=(Said(bold=summary), *final))]
    rest = [
        Section(title=drained_title(g.change for g in drained), head=CHANGES_HEAD, rows=moved, noun="changes"),
        Section(title="Blocked", head=BLOCKED_HEAD, rows=list(blocked_entries(plan.change_set.blocked)), noun="topics"),
        Section(title="Other changes", head=CHANGES_HEAD, rows=others, noun="changes"),
        *(also, owners, load, moves),
        Section(rows=approval_lines(plan)),
    ]
    first = _grave(plan, grave, MARKDOWN_LIMIT - least_size([*head, *rest]))
    return as_markdown([*head, first, *rest])


def _entries(plan: Plan, changes: Sequence[GatedChange], *, verbose: bool) -> list[Entry]:
    if verbose:
        return [change_entry(plan, gated, most_rows=_ROWS_IN_TEXT) for gated in changes]
    return list(folded(changes, partial(change_entry, plan, most_rows=0, is_sized=False), partial(disk_lines, plan)))


def with_file(changes: Sequence[GatedChange]) -> list[GatedChange]:
    return [gated for gated in changes if not is_drained_without_file(gated.change)]


def without_file(changes: Sequence[GatedChange]) -> list[GatedChange]:
    """Return the moves of topics that no file describes; they have a section of their own."""
    return [gated for gated in changes if is_drained_without_file(gated.change)]


def _summary(plan: Plan) -> list[str]:
    return [line for line in (summary_line(plan), final_line(plan)) if line]


def _beside(plan: Plan, facts: Facts | None) -> tuple[Section, Section, Section, Section]:
    """Return the rest, most important last: JSON to copy, the load, the owners with differences, and single lines."""
    moves = [Code(found.topic, found.reassignment) for found in plan.change_set.blocked if found.reassignment]
    loads = Section(
        title="Load of brokers and racks",
        head=("if all of it runs", "replicas", "leaders"),
        rows=load_rows(plan),
        noun="rows",
        most=40,
    )
    tool = Section(title="For Kafka's reassignment tool", rows=moves, noun="reassignments")
    return tool, loads, owners_section(facts), also_section(plan)


def owners_section(facts: Facts | None) -> Section:
    """Show whose topics differ, most first; no rows if one owner has them all, because the changes name him."""
    found = owners_with_drift(facts) if facts else []
    rows = [(each.owner or "", each.domain or "", *map(str, each.differing)) for each in found]
    return Section(title=OWNERS_TITLE, head=OWNERS_HEAD, rows=rows if len(rows) > 1 else (), noun="owners", most=10)


def also_section(plan: Plan) -> Section:
    return Section(title="Also", rows=other_lines(plan))


def change_entry(
    plan: Plan, gated: GatedChange, *, most_rows: int = _ROWS_IN_TABLE, more: Iterable[Line] = (), is_sized: bool = True
) -> Entry:
    """Return all of a change, in the columns of ``CHANGES_HEAD``.

    Args:
        more: Lines below the gate's reasons.
        is_sized: Whether it says how many bytes the change copies or frees.
    """
    change = gated.change
    what: list[Line] = [
        *effect_lines(change, most_rows=most_rows),
        *(Said(note, label="note") for note in change.notes),
    ]
    if isinstance(change, DeleteTopic):
        what.append(traffic_text(plan.change_set.activity.get(change.topic)))
    what += disk_lines(plan, [change]) if is_sized else ()
    risk = [Said(risk_text(change), label="" if change.risk is Risk.SAFE else "risk")]
    if final := why_final(change):
        risk.append(Said(final, bold="cannot be undone:"))
    place = origin(change.location, change.owner)
    participle = PARTICIPLES[change.action]
    will = f"will be {participle}" if gated.gate is GateWord.RUN else f"would be {participle}, but is {gated.gate}"
    reasons = (Said(reason, label=gated.gate) for reason in gated.reasons)
    return Entry(
        f"{SIGNS[change.action]} {change.address} {will}  ({place})",
        ((change_name(gated), place), tuple(what), tuple(risk), (Said(bold=gated.gate), *reasons, *more)),
    )


def brief_entry(gated: GatedChange, *, more: Iterable[Line] = ()) -> Entry:
    """Return the columns of ``BRIEF_HEAD``; ``more`` is below the gate's word."""
    change = gated.change
    owner = clipped(change.owner, _LONGEST_OWNER)
    return Entry("", (change_name(gated), owner, risk_text(change), (gated.gate, *more)))


def change_name(gated: GatedChange) -> Said:
    """Return ``**configure** orders``. Signs would break it: after ``**`` GitHub takes a tilde for its own markup."""
    return Said(gated.change.topic, bold=gated.change.action)


def blocked_entry(blocked: Blocked) -> Entry:
    """Return the columns of ``BLOCKED_HEAD``."""
    place = origin(blocked.location, blocked.owner)
    why = tuple(f"{code}: {reason}" for code, reason in zip(blocked.codes, blocked.reasons, strict=False))
    sentence = f"! {blocked.address} is blocked  ({place})"
    return Entry(sentence, ((blocked.topic, place), why, Said(blocked.way_out, label="way out")))


def blocked_entries(blocked: Sequence[Blocked]) -> Iterator[Entry]:
    """Yield an entry for each topic, and one for many with the same reason."""
    groups: dict[object, list[Blocked]] = {}
    for each in blocked:
        groups.setdefault((each.codes, each.reasons, each.way_out), []).append(each)
    for found in groups.values():
        if len(found) <= FEW:
            yield from map(blocked_entry, found)
        else:
            who = f"{len(found)} topics are blocked: {some(each.topic for each in found)}"
            yield Entry(f"! {who}", (who, *blocked_entry(found[0]).cells[1:]))


def _grave(plan: Plan, grave: Sequence[GatedChange], room: int) -> Section:
    """Return all risky changes, with as much detail as fits."""
    full = Section(title=GRAVE, head=CHANGES_HEAD, rows=[change_entry(plan, g) for g in grave], noun="changes")
    brief = Section(title=GRAVE, head=BRIEF_HEAD, rows=list(map(brief_entry, grave)), noun="changes")
    for section in (full, brief):
        if size(markdown_lines(section)) <= room - 100:  # the note that nothing needs has its room too
            return section
    names: dict[tuple[str, str], list[str]] = {}
    for gated in grave:
        names.setdefault((gated.change.action, gated.change.risk), []).append(gated.change.topic)
    share = (room - 300) // len(names)
    rows = [
        (Said(f"{risk}: {len(found)}", bold=action), _names(found, share - 100))
        for (action, risk), found in names.items()
    ]
    return Section(title=GRAVE, head=("change", "topics"), rows=rows, noun="rows")


def _names(names: Sequence[str], room: int) -> Said:
    """Name them; the counts hold even if the names do not fit."""
    shown = [clipped(name, _LONGEST_NAME) for name in names]
    kept = 0
    while kept < len(shown) and room >= len(markdown(shown[kept])) + 2:
        room -= len(markdown(shown[kept])) + 2
        kept += 1
    more = len(shown) - kept
    counted = f" and {more} more, which only the plan file names" if more else ""
    return Said(", ".join(shown[:kept]) + counted, is_whole=True)
