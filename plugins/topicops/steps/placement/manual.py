"""Placement ``manual``: the spec's own rows, checked for all that Kafka leaves unchecked."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.snapshot import Assignment
from topicops.steps.placement.request import BadAssignmentError, PlacementRequest


def place_by_hand(request: PlacementRequest) -> Assignment:
    """The rows of the new partitions, as given.

    Raises:
        BadAssignmentError: With every problem of the rows.

    """
    rows = request.manual or {}
    if problems := list(assignment_problems(rows, request)):
        raise BadAssignmentError(f"{request.topic}: " + "; ".join(problems))
    return {partition: tuple(rows[partition]) for partition in request.new_partitions}


def assignment_problems(rows: Assignment, request: PlacementRequest) -> Iterator[str]:
    """One sentence for each rule that the rows break. On a create Kafka itself looks at a part of them only."""
    if sorted(rows) != list(range(request.partitions)):
        yield f"partition ids must be 0 to {request.partitions - 1}"
    for partition in sorted(rows):
        row = rows[partition]
        if len(row) != request.replication_factor:
            yield f"partition {partition} has {len(row)} replica(s) instead of {request.replication_factor}"
        if len(set(row)) < len(row):
            yield f"partition {partition} names a broker twice"
        if partition >= len(request.existing) and (dead := sorted(set(row) - set(request.racks))):
            yield f"partition {partition} names broker(s) {', '.join(map(str, dead))}, which are not live"
