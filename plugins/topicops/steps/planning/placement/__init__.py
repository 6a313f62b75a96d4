"""Where the replicas of new partitions go: one placement for each file; ``model.choices.PLACEMENTS`` lists them.

A placement gets a ``PlacementRequest`` and returns the rows of the new partitions. Imports only the model.
"""

from __future__ import annotations

from typing import cast

from topicops.model.choices import PLACEMENTS, code_for
from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.manual import place_by_hand
from topicops.steps.planning.placement.request import PlacementError, PlacementFunction, PlacementRequest


def place(placement: str, request: PlacementRequest) -> Assignment:
    """One row for each new partition: distinct live brokers, preferred leader first.

    Rows that the spec gives (``request.manual``) take the place of the placement.

    Raises:
        PlacementError: There is no such placement, or the request cannot be met; the plan step rules out both before.
    """
    if request.manual is not None:
        return place_by_hand(request)
    if placement not in PLACEMENTS:
        raise PlacementError(f"{request.topic}: placement {placement} is unknown; known are {', '.join(PLACEMENTS)}")
    return cast("PlacementFunction", code_for(PLACEMENTS[placement]))(request)
