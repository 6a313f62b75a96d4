"""What ``topicops moves`` prints: how far our moves are, and what others move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topicops.features.moves.record import EndedMove
from topicops.features.moves.telling.status import MovesStatus, TopicStatus
from topicops.model.printable import plural, printable
from topicops.steps.reporting.plan_wording import size_text

SHOWN_ENDED = 10
"""Number of ended moves that the text names."""
SHOWN_PARTITIONS = 50
"""Number of partitions of a topic that the text names."""


def status_text(found: MovesStatus) -> str:
    """Return a line about all, a part for each topic of ours, then what waits, what others move, and what has ended."""
    return "\n".join(map(printable, _lines(found)))


def bar(found: MovesStatus, *, width: int = 24) -> str:
    """Return one line for a terminal, which shows how far all moves are."""
    filled = width * (found.percent or 0) // 100
    copied = f", {speed(found.bytes_per_s)}" if found.bytes_per_s else ""
    return f"[{'#' * filled}{'-' * (width - filled)}] {found.text}{copied}"


def _lines(found: MovesStatus) -> Iterator[str]:
    head = [found.text]
    head += [speed(found.bytes_per_s)] if found.bytes_per_s else []
    head += [f"throttle {speed(found.throttle)} for each broker"] if found.throttle is not None else []
    head += [f"last step {found.stepped_at:%Y-%m-%d %H:%M:%S} UTC"] if found.stepped_at and not found.is_idle else []
    yield f"{found.environment}: {'; '.join(head)}"
    for topic in found.topics:
        yield from _topic_lines(topic)
    if found.notes and not found.is_idle:
        yield "Waits, or is still to be done:"
        yield from (f"  {note}" for note in found.notes)
    yield from _other_lines(found)
    if found.ended:
        more = f" (the last {SHOWN_ENDED} of {len(found.ended)})" if len(found.ended) > SHOWN_ENDED else ""
        yield f"Ended{more}:"
        yield from map(_ended_line, found.ended[:SHOWN_ENDED])
    if not found.is_idle:
        yield f"To carry them on until they end: topicops moves --watch --environment {found.environment}"


def _topic_lines(topic: TopicStatus) -> Iterator[str]:
    left = f", {speed(topic.bytes_per_s)}" if topic.bytes_per_s else ""
    yield f"  {topic.topic} ({topic.why}; run {topic.run}): {topic.text}{left}"
    for each in topic.partitions[:SHOWN_PARTITIONS]:
        rows = f"[{_ids(each.origin)}] to [{_ids(each.target)}]"
        copied = ""
        if each.size_bytes and each.state == "moves":
            copied = f", {each.percent} % of {size_text(each.size_bytes)}"
            copied += f", {speed(each.bytes_per_s)}" if each.bytes_per_s else ""
        note = f": {each.note}" if each.note else ""
        yield f"    partition {each.partition} {each.state}, {rows}{copied}{note}"
    if more := len(topic.partitions) - SHOWN_PARTITIONS:
        yield from [f"    and {more} more"] if more > 0 else []


def _other_lines(found: MovesStatus) -> Iterator[str]:
    if found.others_unread:
        yield f"Whether others move replicas is not known: {found.others_unread}"
    if found.others:
        yield "Moved by others, which topicops leaves alone:"
    for other in found.others:
        if other.partition is None:
            yield f"  {other.topic}"
            continue
        parts = [f"adds {_ids(other.adding)}"] if other.adding else []
        parts += [f"removes {_ids(other.removing)}"] if other.removing else []
        yield f"  {other.topic}-{other.partition}: {', '.join(parts)}"


def _ended_line(ended: EndedMove) -> str:
    what = f"  {ended.at:%Y-%m-%d %H:%M} UTC  {ended.topic}: {ended.status}, {plural(ended.partitions, 'partition')}"
    return f"{what}: {ended.message}" if ended.message else what


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def speed(bytes_per_s: int) -> str:
    """Return ``12.3MiB/s``."""
    return f"{size_text(bytes_per_s)}/s"
