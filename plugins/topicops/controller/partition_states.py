"""The four states of a partition in the controller's memory, and which may follow which.

Source: kafka.controller.PartitionState (3.9; the same in 1.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class PartitionStatus(StrEnum):
    NON_EXISTENT = "NonExistentPartition"
    """Never made, or deleted."""
    NEW = "NewPartition"
    """Made, and never led: it has no state znode."""
    ONLINE = "OnlinePartition"
    """A leader was elected."""
    OFFLINE = "OfflinePartition"
    """Its leader died, and no other was elected yet."""


VALID_BEFORE: Mapping[PartitionStatus, frozenset[PartitionStatus]] = {
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.OFFLINE}),
    PartitionStatus.NEW: frozenset({PartitionStatus.NON_EXISTENT}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
}
"""From which states a partition may come into each state."""


def may_become(now: PartitionStatus, then: PartitionStatus) -> bool:
    return now in VALID_BEFORE[then]
