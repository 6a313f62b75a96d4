"""Room on the disks of the brokers to which a plan moves replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.plans.changes import ReassignTopic


def without_room(changes: Iterable[ReassignTopic], live: ClusterSnapshot) -> Mapping[str, str]:
    """Return which broker has no room for the copies of a topic and a tenth of them, by topic.

    Topics that come first take their room first; what moves away gives none, because it may move later. What is not
    known is no reason: the step that starts a move asks again, with the size of each log.

    Args:
        live: With the log directories of the brokers.
    """
    told = (live.log_directories or {}).items()
    free = {
        b: found.free_bytes for b, found in told if isinstance(found, LogDirectories) and found.free_bytes is not None
    }
    reasons: dict[str, str] = {}
    for change in changes:
        needed = {b: size for b, size in _received(change).items() if b in free}
        if full := [broker for broker in sorted(needed) if needed[broker] > free[broker]]:
            broker = full[0]
            reasons[change.topic] = (
                f"the disk of broker {broker} has {free[broker]:,} bytes free, and {needed[broker]:,} would be needed"
            )
        else:
            free |= {broker: free[broker] - size for broker, size in needed.items()}
    return reasons


def _received(change: ReassignTopic) -> Mapping[int, int]:
    """Return the bytes that each broker must have free for the copies; nothing where their size is not known."""
    if not change.copied_bytes:
        return {}
    copies = Counter(b for p, row in change.assignment.items() for b in row if b not in change.assignment_before[p])
    return {b: count * change.copied_bytes * 11 // (10 * copies.total()) for b, count in copies.items()}
