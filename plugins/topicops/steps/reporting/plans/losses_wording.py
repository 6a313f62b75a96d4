"""What the loss of any one rack would cost, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.plans.plan import RackLossRow, RackLossTable

LOSSES_TITLE = "If a rack is lost after the plan has run"

LONGEST_RACK = 60
"""Characters of a rack's name that a line shows, so that its counts are never cut off."""


def loss_row(row: RackLossRow) -> str:
    """``with rack r2 gone: 0 offline, 4 below min ISR``; where they are others, the counts of now too."""
    before, after = row.before, row.after
    line = f"with rack {_short(row.rack)} gone: {after.offline} offline, {after.below_min_isr} below min ISR"
    if (before.offline, before.below_min_isr) == (after.offline, after.below_min_isr):
        return line
    return f"{line} (now {before.offline} and {before.below_min_isr})"


def worst_losses(table: RackLossTable, most: int) -> Sequence[RackLossRow]:
    """All racks by name, if there are no more than these; else the worst, those first that cost most."""
    if len(table.racks) <= most:
        return table.racks
    return sorted(table.racks, key=lambda row: (-row.after.offline, -row.after.below_min_isr, row.rack))[:most]


def loss_remarks(table: RackLossTable) -> Iterator[str]:
    """What a reader of the counts must know, or why there are none."""
    rackless = table.brokers_without_rack
    if not table.racks and table.only_rack is None:
        yield "No broker names its rack, so what the loss of one costs is not known: set broker.rack."
    elif not table.racks and table.only_rack is not None:
        yield f"All brokers are on one rack, {_short(table.only_rack)}: its loss leaves none."
    elif rackless:
        noun, verb = ("broker", "counts") if len(rackless) == 1 else ("brokers", "count")
        yield f"The {noun} without a rack, {_some(rackless)}, {verb} as live in each line."
    if table.racks and not table.knows_broker_defaults:
        yield "No broker reported min.insync.replicas: 1 is used for topics without their own."


def _short(rack: str) -> str:
    return rack if len(rack) <= LONGEST_RACK else f"{rack[:LONGEST_RACK]}…"


def _some(brokers: Sequence[int]) -> str:
    more = len(brokers) - 10
    return f"{', '.join(map(str, brokers[:10]))}{f' and {more} more' if more > 0 else ''}"
