"""The reassignment of a topic whose replicas must move: a file for Kafka's own tool."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.canonical import canonical_json
from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.leaders import spread_leaders
from topicops.steps.planning.placement.request import Load
from topicops.steps.planning.placement.tally import Tally


def reassignment_json(topic: str, rows: Assignment) -> str:
    """What ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    partitions = [{"topic": topic, "partition": p, "replicas": list(rows[p])} for p in sorted(rows)]
    return canonical_json({"version": 1, "partitions": partitions})


def resized(
    rows: Assignment, replication_factor: int, racks: Mapping[int, str | None], *, load: Load
) -> Assignment | None:
    """The rows with another replication factor, with the fewest moves: replicas on live brokers stay where possible.

    Leaders stay too, unless the topic's leaders become less even. A row that has its replicas on live brokers stays.

    Args:
        racks: Rack by live broker. Where only some have one, racks do not count.
        load: The cluster's, this topic included.

    Returns:
        None: there are fewer live brokers than replicas.
    """
    if not 0 < replication_factor <= len(racks):
        return None
    changing = sorted(p for p, row in rows.items() if len(row) != replication_factor or not racks.keys() >= set(row))
    tally = Tally(_rack_of(racks), topic=Load.of([rows]), cluster=load)
    found: dict[int, tuple[int, ...]] = {}
    for partition in changing:
        live = [broker for broker in rows[partition] if broker in racks]
        found[partition] = tally.grown(tally.shrunk(live, replication_factor), replication_factor)
    return {**rows, **_with_leaders(tally.evened(found, rows), rows)}


def _rack_of(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _with_leaders(changed: Assignment, rows: Assignment) -> Assignment:
    """The changed rows, each with a leader. Other topics do not count: they would make more leaders move.

    Rows that lost their leader choose first. The others choose anew only if that makes the topic more even still.
    """
    others = Load.of([{p: row for p, row in rows.items() if p not in changed}])
    kept = {p: rows[p][:1] for p, row in changed.items() if rows[p] and rows[p][0] in row}
    leaders = {p: row[0] for p, row in spread_leaders({**changed, **kept}, topic=others, cluster=others).items()}
    ordered = {p: (leaders[p], *(broker for broker in row if broker != leaders[p])) for p, row in changed.items()}
    return spread_leaders(ordered, topic=others, cluster=others)
