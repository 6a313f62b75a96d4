"""Where replicas go: one strategy a file; ``model.choices.PLACEMENTS`` is the list of them.

A strategy gets a ``PlacementRequest`` and returns the rows of the new partitions. Imports the model alone.
"""

from __future__ import annotations

from typing import cast

from topicops.model.choices import PLACEMENTS, code_for
from topicops.model.cluster.snapshot import Assignment
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


def place(strategy: str, request: PlacementRequest) -> Assignment:
    """One row for each new partition: distinct live brokers, preferred leader first.

    Args:
        strategy: A word of ``PLACEMENTS``, or ``manual`` for an assignment that the spec gives.

    Raises:
        PlacementError: The request cannot be met; the plan step rules this out before it asks.

    """
    if strategy == "manual":
        return place_by_hand(request)
    return cast("Strategy", code_for(PLACEMENTS[strategy]))(request)


__all__ = [
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
