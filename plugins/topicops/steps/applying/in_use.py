"""Does anyone still use a topic that is to be deleted?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.plans.plan import TopicActivity


def activity_reason(planned: TopicActivity | None, now: TopicActivity | None) -> str | None:
    """Why a topic counts as in use; None when it surely rests. What cannot be read counts as in use."""
    if planned is None or planned.end_offsets is None:
        return "its end offsets were not read when the plan was made (TOP409)"
    if now is None or now.end_offsets is None:
        return "its end offsets cannot be read now (TOP409)"
    if moved := sorted(_moved_offsets(planned.end_offsets, now.end_offsets)):
        return f"records were written since the plan (TOP409): {', '.join(moved)}"
    if now.groups is None:
        return "its consumer groups cannot be read (TOP410)"
    if now.groups:
        return f"consumer groups use it (TOP410): {', '.join(sorted(now.groups))}"
    return None


def was_read(activity: TopicActivity | None) -> bool:
    """Whether the brokers told all of it; a silent broker and a missing right look the same from here."""
    return activity is not None and activity.end_offsets is not None and activity.groups is not None


def _moved_offsets(planned: Mapping[int, int], now: Mapping[int, int]) -> Iterator[str]:
    for partition in planned.keys() | now.keys():
        if planned.get(partition) != now.get(partition):
            sides = (f"{side} {ends.get(partition, 'none')}" for side, ends in (("planned", planned), ("live", now)))
            yield f"end offset of partition {partition}: {', '.join(sides)}"
