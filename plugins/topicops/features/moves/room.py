"""Room on the disks of the brokers to which a plan moves replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.plans.changes import Change, ReassignTopic


def with_room(
    obstacles: Mapping[str, tuple[str, ...]], changes: Iterable[Change], live: ClusterSnapshot
) -> Mapping[str, tuple[str, ...]]:
    """Return why moves cannot begin now, by topic, and among these reasons that a disk has no room."""
    full = without_room(changes, live)
    return {**obstacles, **{topic: (*obstacles.get(topic, ()), reason) for topic, reason in full.items()}}


def without_room(changes: Iterable[Change], live: ClusterSnapshot) -> Mapping[str, str]:
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
        if full := next((b for b in sorted(needed) if needed[b] > free[b]), None):
            reasons[change.topic] = (
                f"the disk of broker {full} has {free[full]:,} bytes free, and {needed[full]:,} would be needed"
            )
        else:
            free |= {b: free[b] - size for b, size in needed.items()}
    return reasons


def _received(change: Change) -> Mapping[int, int]:
    """Return the bytes that each broker must have free for the copies; nothing where their size is not known."""
    if not isinstance(change, ReassignTopic) or not change.copied_bytes:
        return {}
    copies = Counter(b for p, row in change.assignment.items() for b in row if b not in change.assignment_before[p])
    return {b: count * change.copied_bytes * 11 // (10 * copies.total()) for b, count in copies.items()}
