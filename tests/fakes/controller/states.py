"""States of a partition and of a replica in the controller's memory, and which may follow which.

Source: kafka.controller.PartitionState (3.9; the same in 1.0) and ReplicaState (1.0 to 3.9, each release's own).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from fakes.controller.releases import DEAD_REPLICAS_INELIGIBLE
from topicops.model.release import Release


class PartitionStatus(StrEnum):
    NON_EXISTENT = "NonExistentPartition"
    """Never made, or deleted."""
    NEW = "NewPartition"
    """Made, and never led: it has no state znode."""
    ONLINE = "OnlinePartition"
    """A leader was elected."""
    OFFLINE = "OfflinePartition"
    """Its leader died, and no other was elected yet."""


VALID_PARTITION_BEFORE: Mapping[PartitionStatus, frozenset[PartitionStatus]] = {
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.OFFLINE}),
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
}
"""From which states a partition may come into each state."""


def partition_may_become(now: PartitionStatus, then: PartitionStatus) -> bool:
    return now in VALID_PARTITION_BEFORE[then]


class ReplicaStatus(StrEnum):
    NEW = "NewReplica"
    """Made by a new topic, an expansion or a reassignment; it can only follow."""
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    """Its broker died, or it was told to stop."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    """Its broker was told to delete it, and has not answered."""
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It could not be deleted: its broker is dead, or has a failed disk."""
    NON_EXISTENT = "NonExistentReplica"


_ALIVE = frozenset({ReplicaStatus.NEW, ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE})
VALID_REPLICA_BEFORE: Mapping[ReplicaStatus, frozenset[ReplicaStatus]] = {
    ReplicaStatus.NEW: frozenset({ReplicaStatus.NON_EXISTENT}),
    ReplicaStatus.ONLINE: _ALIVE,
    ReplicaStatus.OFFLINE: _ALIVE,
    ReplicaStatus.DELETION_STARTED: frozenset({ReplicaStatus.OFFLINE}),
    ReplicaStatus.DELETION_SUCCESSFUL: frozenset({ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.DELETION_INELIGIBLE: frozenset({ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED}),
    ReplicaStatus.NON_EXISTENT: frozenset({ReplicaStatus.DELETION_SUCCESSFUL}),
}
"""From which states a replica may come into each state, since 2.3."""


def replica_may_become(now: ReplicaStatus, then: ReplicaStatus, release: Release) -> bool:
    """Before 2.3 a replica that is offline cannot become ineligible; what a user sees is the same."""
    if release < DEAD_REPLICAS_INELIGIBLE and (now, then) == (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE):
        return False
    return now in VALID_REPLICA_BEFORE[then]
