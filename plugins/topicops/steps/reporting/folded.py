"""Many changes of a plan in few lines: equal ones together, then a line each, then names alone. Each one is named."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from topicops.model.plans.changes import Change, GateWord
from topicops.model.plans.plan import GatedChange
from topicops.model.printable import plural, printable
from topicops.model.specs.environment import Risk
from topicops.steps.reporting.document import Entry, Said, clipped
from topicops.steps.reporting.plan_wording import PARTICIPLES, SIGNS, effect_lines, is_grave, risk_text

_IN_FULL, _IN_BRIEF = 30, 44
"""The most lines of changes with all their facts, and of changes with a line each."""
_WIDTH = 110
_LONGEST_WHAT = 120
"""Characters of what one change does, where it has one line."""
IN_FULL = "Not all of each change is shown; -v shows it."

Group = Sequence[GatedChange]


def folded(
    changes: Sequence[GatedChange],
    entry_of: Callable[[GatedChange], Entry],
    more_of: Callable[[Sequence[Change]], Iterable[str]],
) -> Iterator[Entry]:
    """Yield the entries of a text, in the order of ``changes``; those with one cell are single lines.

    Args:
        entry_of: Gives all of one change.
        more_of: Gives lines about changes together, which may differ between changes that are one block.
    """
    groups: dict[object, list[GatedChange]] = {}
    entries = {id(gated): entry_of(gated) for gated in changes}
    for gated in changes:
        groups.setdefault((gated.change.action, gated.gate, entries[id(gated)].cells[1:]), []).append(gated)
    full = [(group, _in_full(group, entries[id(group[0])], more_of)) for group in groups.values()]
    grave = [entry for group, entry in full if is_grave(group[0])]
    others = [entry for group, entry in full if not is_grave(group[0])]
    room = _IN_FULL
    for part, of in ((grave, True), (others, False)):
        used = sum(map(_lines, part))
        members = [gated for gated in changes if is_grave(gated) == of]
        if used <= room:
            yield from part
        elif len(members) <= _IN_BRIEF:
            yield from (Entry(_in_brief(gated), ("",)) for gated in members)
        else:
            yield from _by_name(members)
        room -= used


def _lines(entry: Entry) -> int:
    return 2 + sum(len(cell) if isinstance(cell, tuple) else 1 for cell in entry.cells[1:])


def _in_full(group: Group, first: Entry, more_of: Callable[[Sequence[Change]], Iterable[str]]) -> Entry:
    name, *cells = first.cells
    cells.insert(1, tuple(more_of([gated.change for gated in group])))
    if len(group) == 1:
        return replace(first, cells=(name, *cells))
    return Entry(_sentence(group), (name, _names(group), *cells))


def _sentence(group: Group) -> str:
    change, gate = group[0].change, group[0].gate
    participle, topics = PARTICIPLES[change.action], plural(len(group), "topic")
    will = f"will be {participle}" if gate is GateWord.RUN else f"would be {participle}, but are {gate}"
    return f"{SIGNS[change.action]} {topics} {will}:"


def _names(group: Group) -> tuple[Said | str, ...]:
    names = ", ".join(sorted(printable(gated.change.topic) for gated in group))
    return tuple(textwrap.wrap(names, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _in_brief(gated: GatedChange) -> str:
    """Return ``+ shop.orders: partitions: 6; retention.ms: 604800000 (7d)``, with the risk and the gate if any."""
    change = gated.change
    what = clipped("; ".join(effect_lines(change, most_rows=0)), _LONGEST_WHAT)
    risk = "" if change.risk is Risk.SAFE else f"  [{risk_text(change)}]"
    gate = "" if gated.gate is GateWord.RUN else f"  ({gated.gate})"
    return f"{SIGNS[change.action]} {change.action} {printable(change.topic)}: {what}{risk}{gate}"


def _by_name(changes: Group) -> Iterator[Entry]:
    kinds: dict[tuple[object, ...], list[GatedChange]] = {}
    for gated in changes:
        kinds.setdefault((gated.change.action, gated.gate, gated.change.risk), []).append(gated)
    for group in kinds.values():
        yield Entry(_sentence(group), ("", _names(group), f"risk: {group[0].change.risk}"))
