"""The facts of a run in words: who has topics that differ, which brokers have unhealthy partitions, who holds what."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from topicops.model.printable import plural
from topicops.model.runs.facts import CAUSES, DRIFT_CLASSES, Facts, UnhealthyPartitions, owners_with_drift

LOAD_HEAD = ("broker or rack", "partitions", "replicas", "preferred leaders", "leaders")
OWNERS_TITLE = "Topics that differ from their files, by owner"
OWNERS_HEAD = ("owner", "domain", *(topic_class.value for topic_class in DRIFT_CLASSES))
_SHOWN = 10
"""Lines of one kind in a text; the tables have all."""


def owner_lines(facts: Facts) -> list[str]:
    """Return ``team-billing (billing): 3 missing, 1 different``; none when all topics are as their files want them."""
    lines = []
    for found in owners_with_drift(facts):
        counts = zip(DRIFT_CLASSES, found.differing, strict=True)
        classes = ", ".join(f"{count} {name.value}" for name, count in counts if count)
        lines.append(f"{found.owner}{f' ({found.domain})' if found.domain else ''}: {classes}")
    return _first(lines, "owners")


def unhealthy_by_broker(facts: Facts) -> list[tuple[str, Sequence[UnhealthyPartitions]]]:
    """Return each broker that makes partitions unhealthy, and how; those with the most of one cause first."""
    dead = {load.broker for load in facts.load if not load.is_live}
    groups = [list(group) for _, group in groupby(facts.unhealthy, key=lambda found: found.broker)]
    groups.sort(key=lambda group: -max(found.partitions for found in group))
    firsts = [(group[0].broker, group[0].rack) for group in groups]
    names = [_broker_name(broker, rack, is_live=broker not in dead) for broker, rack in firsts]
    return list(zip(names, groups, strict=True))


def unhealthy_lines(facts: Facts) -> list[str]:
    """``broker 3, rack b: 12 partitions without a live leader``; none when all partitions are healthy, or unknown."""
    lines = [
        f"{name}: {', '.join(cause_words(found) for found in group)}" for name, group in unhealthy_by_broker(facts)
    ]
    return _first(lines, "brokers")


def load_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    """Yield a row for each rack, then for each broker, as in ``LOAD_HEAD``; racks only if one has several brokers."""
    brokers = [load for load in facts.load if load.broker is not None]
    racks = [load for load in facts.load if load.broker is None]
    has_racks = len([load for load in brokers if load.rack is not None]) > len(racks)
    for load in [*(racks if has_racks else ()), *brokers]:
        numbers = (load.partitions, load.replicas, load.preferred_leaders, load.leaders)
        name = f"rack {load.rack}"
        if load.broker is not None:
            name = _broker_name(load.broker, load.rack, is_live=load.is_live)
        yield name, *("" if number is None else f"{number:,}" for number in numbers)


def cause_words(found: UnhealthyPartitions) -> str:
    return f"{plural(found.partitions, 'partition')} {CAUSES[found.rule]} ({found.rule})"


def _broker_name(broker: int | None, rack: str | None, *, is_live: bool) -> str:
    if broker is None:
        return "no single broker"
    if not is_live:
        return f"broker {broker}, not registered"
    return f"broker {broker}" if rack is None else f"broker {broker}, rack {rack}"


def _first(lines: Sequence[str], noun: str) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"… and {more} more {noun}"] if more > 0 else [])]


MOST = 4
"""Commands that one text shows; JSON has all."""


def why_command(topic: str, environment: str) -> str:
    """Return ``topicops why payments.orders --environment prod``."""
    if topic.startswith("-"):  # else it would be read as an option
        return f"topicops why --environment {environment} -- {shlex.quote(topic)}"
    return f"topicops why {shlex.quote(topic)} --environment {environment}"


def why_commands(topics: Iterable[str], environment: str) -> list[str]:
    """Return a line for each of the first topics, and how many more there are."""
    named = list(dict.fromkeys(topics))
    more = len(named) - MOST
    shown = [why_command(topic, environment) for topic in named[:MOST]]
    return [*shown, f"… and {more} more; topicops why takes any of them"] if more > 0 else shown
