"""Which replicas are on a log directory that failed, so that no delete takes them away.

A live broker neither serves nor deletes what is on such a directory, until it is restarted with another disk. Source:
kafka.server.ReplicaManager#stopReplicas (3.9) answers KAFKA_STORAGE_ERROR, and ZooKeeper's controller then waits for
ever; KRaft's forgets the topic at once, and the records stay on that disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from topicops.model.cluster.snapshot import Assignment, DirectoriesByBroker, LogDirectories
from topicops.model.printable import printable

REPAIR = "replace the disk, or take it out of log.dirs, and restart the broker"
ASK_AGAIN = "check that the broker answers, and that the reader has Describe on the cluster (topicops doctor)"


def failed_by_broker(directories: DirectoriesByBroker) -> Mapping[int, tuple[str, ...]]:
    """Paths of the failed log directories, of the brokers that have one."""
    told = ((broker, found) for broker, found in sorted(directories.items()) if isinstance(found, LogDirectories))
    return {broker: found.failed for broker, found in told if found.failed}


def replicas_on_failed(topic: str, rows: Assignment, directories: DirectoriesByBroker) -> dict[int, list[int]]:
    """Partitions by broker: the broker has a failed log directory, and their replica in none that works."""
    found: dict[int, list[int]] = {}
    for broker, told in sorted(directories.items()):
        if isinstance(told, LogDirectories) and told.failed:
            held = told.held.get(topic, frozenset())
            if lost := sorted(p for p, row in rows.items() if broker in row and p not in held):
                found[broker] = lost
    return found


def delete_obstacles(topic: str, rows: Assignment, directories: DirectoriesByBroker) -> Iterator[tuple[str, str]]:
    """What cannot be deleted, and what to do; nothing where no replica is known to be on a failed disk."""
    failed = failed_by_broker(directories)
    for broker, partitions in replicas_on_failed(topic, rows, directories).items():
        which = f"partition{'s' if partitions[1:] else ''} {', '.join(map(str, partitions[:5]))}"
        yield (
            f"the replica of {which} on broker {broker} is on a failed log directory ({named(failed[broker])}): "
            "the broker cannot delete it",
            f"{REPAIR}, or move the replicas away",
        )


def delete_doubts(rows: Assignment, directories: DirectoriesByBroker, brokers: Collection[int]) -> Iterator[str]:
    """Of which live broker with a replica it is not known whether a log directory has failed, and why."""
    for broker in sorted({b for row in rows.values() for b in row} & set(brokers)):
        told = directories.get(broker, f"broker {broker} gave no answer")
        if isinstance(told, str):
            yield f"whether a log directory of broker {broker} has failed is not known: {printable(told)}"


def not_checked(directories: DirectoriesByBroker) -> tuple[str, ...]:
    """A sentence where brokers do not offer the question: nothing is refused for that."""
    without = [broker for broker, told in sorted(directories.items()) if told is None]
    if not without:
        return ()
    brokers = f"broker{'s' if without[1:] else ''} {', '.join(map(str, without))}"
    return (f"not checked: log directories of {brokers}, which does not offer DescribeLogDirs",)


def named(paths: Collection[str]) -> str:
    """``/data/1, /data/2``."""
    return ", ".join(map(printable, sorted(paths)))
