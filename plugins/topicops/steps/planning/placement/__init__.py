"""Where the replicas of new partitions go: one placement for each file.

A placement gets a ``PlacementRequest`` and returns the rows of the new partitions. Imports only the model.
"""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.balanced import place_balanced
from topicops.steps.planning.placement.kafka import place_like_kafka
from topicops.steps.planning.placement.request import PlacementError, PlacementFunction, PlacementRequest, place_by_hand

PLACING: Mapping[str, PlacementFunction] = {"balanced": place_balanced, "kafka": place_like_kafka}
"""The function of each word of ``model.choices.PLACEMENTS``."""


def place(placement: str, request: PlacementRequest) -> Assignment:
    """Return a row for each new partition: distinct live brokers, preferred leader first.

    Rows that the spec gives (``request.manual``) take the place of the placement.

    Raises ``PlacementError`` for an unknown placement or a request that cannot be met; the plan step rules out both.
    """
    if request.manual is not None:
        return place_by_hand(request)
    if placement not in PLACING:
        raise PlacementError(f"{request.topic}: placement {placement} is unknown; known are {', '.join(PLACING)}")
    return PLACING[placement](request)
