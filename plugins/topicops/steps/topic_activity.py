"""Is a topic that is to be deleted in use? Plan and apply ask the same, and reports show the same."""

from __future__ import annotations

from datetime import datetime, timedelta

from topicops.model.plans.plan import NO_RECORD, TopicActivity
from topicops.model.release import OWN_RIGHTS
from topicops.model.specs.spellings import largest_unit
from topicops.model.times import EPOCH, time_of_ms

STOP_CLIENTS = "stop its clients and plan again, or set policy.deleteActive: allow"
HIDDEN_GROUPS = (
    f"the brokers do not tell, as Kafka's own do since {OWN_RIGHTS}, whether the reader sees every consumer group"
)
CHECK_BY_HAND = "check by hand that no group uses it, then set policy.deleteActive: allow"
_MS = timedelta(milliseconds=1)


def recent_record(activity: TopicActivity, rests_for: timedelta, now: datetime) -> str | None:
    """Why the newest record keeps the topic in use; None if all records are older than ``rests_for``, or not known.

    The time of a record is the one that its producer gave it, or the broker for ``message.timestamp.type:
    LogAppendTime``. A record dated in the future keeps the topic in use, and so does one that retention took if it may
    have been younger then.
    """
    newest, rest_ms = activity.last_record_ms, rests_for // _MS
    if not rest_ms or newest is None:
        return None
    if activity.emptied and (activity.kept_ms is None or activity.kept_ms < rest_ms):
        return _emptied_text(activity, rest_ms)
    if newest == NO_RECORD or newest <= (now - EPOCH) // _MS - rest_ms:
        return None
    return f"its last record is of {time_text(newest)}; it rests {_duration(rest_ms)} after that (policy.restsFor)"


def _emptied_text(activity: TopicActivity, rest_ms: int) -> str:
    partition, rest = activity.emptied[0], _duration(rest_ms)
    if activity.kept_ms is None:
        return (
            f"partition {partition} had records, and the brokers tell the time of none: it is not known what took "
            f"them, or they have no time, or are in remote storage alone; so the last one may be younger than {rest} "
            "(policy.restsFor); where no client writes, policy.restsFor: 0s compares the end offsets alone"
        )
    return (
        f"partition {partition} holds none of its records any more (retention.ms {_duration(activity.kept_ms)}), so "
        f"the last one may be younger than {rest} (policy.restsFor); where no client writes, give the topic a "
        f"retention.ms of at least {rest} and wait that long"
    )


def _duration(ms: int) -> str:
    count, unit = largest_unit(ms, "ms")
    return f"{count}{unit}"


def groups_text(activity: TopicActivity) -> list[str]:
    """``billing (Stable, lag 12)`` for each group that uses the topic, by name."""
    return [f"{group}{_use_text(activity, group)}" for group in sorted(activity.groups or ())]


def use_by_groups(activity: TopicActivity) -> tuple[str, str] | None:
    """Which groups keep the topic in use, and what to do; None if none does. One that cannot be read does."""
    unread = {group: use for group, use in sorted(activity.group_uses.items()) if use.unread}
    read = [f"{group}{_use_text(activity, group)}" for group in sorted(activity.groups or ()) if group not in unread]
    sentences = [f"consumer groups use it: {', '.join(read)}"] if read else []
    for group, use in unread.items():
        of_type = f" of type {use.type}" if use.type else ""
        sentences.append(f"group {group}{of_type} cannot be read: {use.unread}")
    return ("; ".join(sentences), STOP_CLIENTS if read else CHECK_BY_HAND) if sentences else None


def time_text(ms: int) -> str:
    """``2026-11-22T17:44:10Z`` for ms since 1970; the number for a time that no calendar here has."""
    at = time_of_ms(ms)
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else f"{ms} ms since 1970"


def _use_text(activity: TopicActivity, group: str) -> str:
    use = activity.group_uses.get(group)
    if use is None:
        return ""
    lag = "no commits" if use.lag is None else f"lag {use.lag}"
    parts = [use.type, use.state, "cannot be read" if use.unread else lag]
    return f" ({', '.join(part for part in parts if part)})"
