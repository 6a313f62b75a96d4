"""Is this the cluster the environment means, and is it still whole? Asked before anything is concluded from it."""

from __future__ import annotations

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.errors import ShrunkenWorldError, WrongTargetError
from topicops.model.printable import printable
from topicops.model.specs.environment import Environment


def require_cluster(snapshot: ClusterSnapshot, environment: Environment) -> None:
    """Do what ``require_cluster_id`` does, for a snapshot that was read already."""
    require_cluster_id(snapshot.cluster_id, environment)


def require_cluster_id(found_id: str, environment: Environment) -> None:
    """Raise ``WrongTargetError`` with both ids; an environment without an id, a sandbox, takes any cluster."""
    expected_id = environment.spec.cluster.id
    if expected_id is None or found_id == expected_id:
        return
    raise WrongTargetError(
        f"{environment.place_of('cluster.id')}: the environment means cluster {expected_id}, and the one that answered "
        f"is {printable(found_id)}; nothing was sent: correct the address, or the id if this is the cluster you mean"
    )


def require_not_shrunken(topics_now: int, topics_last: int | None, shrink_percent: int) -> None:
    """Raise ``ShrunkenWorldError`` when more than ``shrink_percent`` of the topics are gone.

    Args:
        topics_now: How many topics are live.
        topics_last: How many the last good snapshot had; None: there is none, and nothing to compare with.
        shrink_percent: ``limits.shrinkPercent``, 0 to 100.

    """
    if topics_last is None:
        return
    gone = topics_last - topics_now
    if gone * 100 <= shrink_percent * topics_last:
        return
    raise ShrunkenWorldError(
        f"{topics_now} topics are live, {topics_last} were at the last good snapshot: "
        f"more than limits.shrinkPercent ({shrink_percent}) are gone, so nothing is planned; "
        "find out why, then remove the cluster's file in $TOPICOPS_HOME/last-good if it is meant"
    )
