"""Where replicas go: one strategy a file, and the table that names them.

A strategy gets a ``PlacementRequest`` and returns the rows of the new partitions. Imports the model alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.balanced import place_balanced
from topicops.steps.planning.placement.kafka import place_like_kafka
from topicops.steps.planning.placement.manual import place_by_hand
from topicops.steps.planning.placement.request import (
    BadAssignmentError,
    BadPartitionCountError,
    Load,
    MixedRacksError,
    PlacementError,
    PlacementRequest,
    Strategy,
    TooFewBrokersError,
)

STRATEGIES: Mapping[str, Strategy] = {
    "balanced": place_balanced,
    "kafka": place_like_kafka,
    "manual": place_by_hand,
}


def place(strategy: str, request: PlacementRequest) -> Assignment:
    """One row for each new partition: distinct live brokers, preferred leader first.

    Raises:
        PlacementError: The request cannot be met; the plan step rules this out before it asks.

    """
    return STRATEGIES[strategy](request)


__all__ = [
    "STRATEGIES",
    "BadAssignmentError",
    "BadPartitionCountError",
    "Load",
    "MixedRacksError",
    "PlacementError",
    "PlacementRequest",
    "Strategy",
    "TooFewBrokersError",
    "place",
]
