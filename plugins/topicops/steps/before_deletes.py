"""What is known of a topic before it is deleted: who uses it, and which replicas are on log directories that failed.

A live broker neither serves nor deletes what is on such a directory, until it is restarted with another disk. Source:
kafka.server.ReplicaManager#stopReplicas (3.9) answers KAFKA_STORAGE_ERROR, and ZooKeeper's controller then waits for
ever; KRaft's forgets the topic at once, and the records stay on that disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment, DirectoriesByBroker, LogDirectories
from topicops.model.plans.plan import NO_RECORD, TopicActivity
from topicops.model.ports import Unoffered
from topicops.model.printable import printable
from topicops.model.release import OWN_RIGHTS
from topicops.model.specs.spellings import EPOCH, largest_unit, time_of_ms

REPAIR = "replace the disk, or take it out of log.dirs, and restart the broker"
ASK_AGAIN = "check that the broker answers, and that the reader has Describe on the cluster (topicops doctor)"


def failed_by_broker(directories: DirectoriesByBroker) -> Mapping[int, tuple[str, ...]]:
    """Return paths of the failed log directories, of the brokers that have one."""
    told = ((broker, found) for broker, found in sorted(directories.items()) if isinstance(found, LogDirectories))
    return {broker: found.failed for broker, found in told if found.failed}


def replicas_on_failed(topic: str, rows: Assignment, directories: DirectoriesByBroker) -> dict[int, list[int]]:
    """Return partitions by broker: the broker has a failed log directory, and their replica in none that works."""
    found: dict[int, list[int]] = {}
    for broker, told in sorted(directories.items()):
        if isinstance(told, LogDirectories) and told.failed:
            held = told.held.get(topic, frozenset())
            if lost := sorted(p for p, row in rows.items() if broker in row and p not in held):
                found[broker] = lost
    return found


def delete_obstacles(topic: str, rows: Assignment, directories: DirectoriesByBroker) -> Iterator[tuple[str, str]]:
    """Yield what cannot be deleted, and what to do; nothing where no replica is known to be on a failed disk."""
    failed = failed_by_broker(directories)
    for broker, partitions in replicas_on_failed(topic, rows, directories).items():
        which = f"partition{'s' if partitions[1:] else ''} {', '.join(map(str, partitions[:5]))}"
        yield (
            f"the replica of {which} on broker {broker} is on a failed log directory ({named(failed[broker])}): "
            "the broker cannot delete it",
            f"{REPAIR}, or move the replicas away",
        )


def delete_doubts(rows: Assignment, directories: DirectoriesByBroker, brokers: Collection[int]) -> Iterator[str]:
    """Yield each live broker with a replica whose log directories are not known to work, and why."""
    for broker in sorted({b for row in rows.values() for b in row} & set(brokers)):
        told = directories.get(broker, f"broker {broker} gave no answer")
        if isinstance(told, str) and not isinstance(told, Unoffered):
            yield f"whether a log directory of broker {broker} has failed is not known: {printable(told)}"


def not_checked(directories: DirectoriesByBroker) -> tuple[str, ...]:
    """Return a sentence where brokers do not offer the question: nothing is refused for that."""
    without = [broker for broker, told in sorted(directories.items()) if told is None]
    if not without:
        return ()
    return (f"not checked: log directories of {brokers_text(without)}, which does not offer DescribeLogDirs",)


def cordons_not_known(directories: DirectoriesByBroker, brokers: Collection[int]) -> Iterator[str]:
    """Yield a sentence for brokers that may be cordoned: such a broker refuses the replicas of a plan."""
    if unknown := [b for b in brokers if not isinstance(directories.get(b), LogDirectories)]:
        yield (
            f"whether {brokers_text(unknown)} may get replicas is not known, because the log directories could not be "
            "read: a broker that is cordoned refuses what is planned for it, and then nothing is sent to it"
        )


def named(paths: Collection[str]) -> str:
    """Return ``/data/1, /data/2``."""
    return ", ".join(map(printable, sorted(paths)))


STOP_CLIENTS = "stop its clients and plan again, or set policy.deleteActive: allow"
HIDDEN_GROUPS = (
    f"the brokers do not tell, as Kafka's own do since {OWN_RIGHTS}, whether the reader sees every consumer group"
)
CHECK_BY_HAND = "check by hand that no group uses it, then set policy.deleteActive: allow"
_MS = timedelta(milliseconds=1)


def recent_record(activity: TopicActivity, rests_for: timedelta, now: datetime) -> str | None:
    """Say why the newest record keeps the topic in use; None: all are older than ``rests_for``, or not known.

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
    """Return ``billing (Stable, lag 12)`` for each group that uses the topic, by name."""
    return [f"{group}{_use_text(activity, group)}" for group in sorted(activity.groups or ())]


def use_by_groups(activity: TopicActivity) -> tuple[str, str] | None:
    """Say which groups keep the topic in use, and what to do; None if none does. An unreadable one does."""
    unread = {group: use for group, use in sorted(activity.group_uses.items()) if use.unread}
    read = [f"{group}{_use_text(activity, group)}" for group in sorted(activity.groups or ()) if group not in unread]
    sentences = [f"consumer groups use it: {', '.join(read)}"] if read else []
    for group, use in unread.items():
        of_type = f" of type {use.type}" if use.type else ""
        sentences.append(f"group {group}{of_type} cannot be read: {use.unread}")
    return ("; ".join(sentences), STOP_CLIENTS if read else CHECK_BY_HAND) if sentences else None


def time_text(ms: int) -> str:
    """Return ``2026-11-22T17:44:10Z`` for ms since 1970; the number for a time that no calendar here has."""
    at = time_of_ms(ms)
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else f"{ms} ms since 1970"


def _use_text(activity: TopicActivity, group: str) -> str:
    use = activity.group_uses.get(group)
    if use is None:
        return ""
    lag = "no commits" if use.lag is None else f"lag {use.lag}"
    parts = [use.type, use.state, "cannot be read" if use.unread else lag]
    return f" ({', '.join(part for part in parts if part)})"
