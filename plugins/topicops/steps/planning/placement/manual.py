"""Rows that the spec gives, with the checks that Kafka does not make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.request import BadAssignmentError, PlacementRequest, known_racks


def place_by_hand(request: PlacementRequest) -> Assignment:
    """The rows of the new partitions, as given.

    Raises:
        BadAssignmentError: With every problem of the rows.
        MixedRacksError: On an expansion, which the broker refuses while only some brokers have a rack.
    """
    rows = request.manual or {}
    if problems := list(assignment_problems(rows, request)):
        raise BadAssignmentError(f"{request.topic}: " + "; ".join(problems))
    if request.existing:
        known_racks(request.racks)
    return {partition: tuple(rows[partition]) for partition in request.new_partitions}


def assignment_problems(rows: Assignment, request: PlacementRequest) -> Iterator[str]:
    """One sentence for each rule that the rows break. On a create, Kafka itself checks only some of them."""
    if not rows:
        yield "there is no row"
    elif sorted(rows) != list(range(request.partitions)):
        yield f"partition ids must be 0 to {request.partitions - 1}"
    for partition in sorted(rows):
        for problem in _row_problems(tuple(rows[partition]), request.existing.get(partition), request):
            yield f"partition {partition} {problem}"


def _row_problems(row: Sequence[int], live: Sequence[int] | None, request: PlacementRequest) -> Iterator[str]:
    if not row:
        yield "has no replica"
    elif len(row) != request.replication_factor:
        yield f"has {len(row)} replica(s) instead of {request.replication_factor}"
    if len(set(row)) < len(row):
        yield "names a broker twice"
    if live is None and (unknown := sorted(set(row) - request.racks.keys())):
        yield f"names broker(s) {', '.join(map(str, unknown))}, which are not live"
    if live is not None and tuple(live) != tuple(row):
        yield f"is on {list(live)}, and no expansion moves it"
