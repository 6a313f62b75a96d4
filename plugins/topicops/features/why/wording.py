"""Words and times that the rules of ``why`` share."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypeVar

from topicops.features.why.values import WhyFacts
from topicops.model.cluster.snapshot import Assignment
from topicops.model.specs.spellings import time_of_ms

K = TypeVar("K", int, tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]])


def grouped(partitions: Iterable[tuple[K, int]]) -> list[tuple[K, list[int]]]:
    """The partitions of each key, sorted by the keys."""
    found: defaultdict[K, list[int]] = defaultdict(list)
    for key, partition in partitions:
        found[key].append(partition)
    return sorted(found.items())


def since(facts: WhyFacts, partitions: Iterable[int]) -> str:
    """`` since 2024-05-01 12:00 UTC``, when the oldest of these states was written; empty where it is not known."""
    times = facts.times.states if facts.times else {}
    return when("since", min((times[p] for p in partitions if p in times), default=None))


def when(word: str, ms: int | None) -> str:
    """`` at 2024-05-01 12:00 UTC``; empty where it is not known."""
    if not ms:
        return ""
    at = time_of_ms(ms)
    return f" {word} {at:%Y-%m-%d %H:%M} UTC" if at else f" {word} {ms} ms since 1970"


def are(brokers: Collection[int]) -> str:
    return "are" if len(brokers) > 1 else "is"


def metadata_of(brokers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"metadata of broker {broker}" for broker in sorted(brokers))


def topic_znode(topic_id: str | None, rows: Assignment, adding: Assignment, removing: Assignment) -> str:
    """The data of a topic's znode: with an id as Kafka writes it since 2.8, else as 1.0 does, which all read."""
    written = ({str(p): list(row) for p, row in sorted(by.items())} for by in (rows, adding, removing))
    names = ("partitions", "adding_replicas", "removing_replicas")
    value: dict[str, object] = {"version": 3, "topic_id": topic_id, **dict(zip(names, written, strict=True))}
    if topic_id is None:
        value = {"version": 1, "partitions": value["partitions"]}
    return json.dumps(value, separators=(",", ":"))
