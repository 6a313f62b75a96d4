"""The small tables of a run: the cluster's head, and what diff, rules and facts found. Python writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.plans.delta import Delta
from topicops.model.runs.facts import CAUSES, Facts, Load, OwnedTopics
from topicops.model.runs.results import QualityResult

Row = Mapping[str, object]


def write_cluster(folder: TableFolder, live: ClusterSnapshot) -> None:
    """The tables ``brokers`` and ``cluster``."""
    brokers = sorted(live.brokers.values(), key=lambda broker: broker.id)
    _write(
        folder,
        "brokers",
        [{"broker": b.id, "rack": b.rack, "endpoints": b.endpoints, "epoch": b.epoch} for b in brokers],
    )
    head = {
        "cluster_id": live.cluster_id,
        "chroot": live.chroot,
        "source": live.source,
        "controller_id": live.controller_id,
        "controller_epoch": live.controller_epoch,
        "deleting": list(live.deleting.items()),
        "reassigning": sorted(live.reassigning),
        "orphan_configs": sorted(live.orphan_configs),
    }
    _write(folder, "cluster", [head])


def read_cluster(folder: TableFolder, before: ClusterSnapshot, topics: Mapping[str, LiveTopic]) -> ClusterSnapshot:
    """The snapshot that these tables are of.

    Args:
        before: An earlier one of the same cluster, for what no table has.
    """
    (head,) = folder.read("cluster").to_pylist()
    rows = folder.read("brokers").to_pylist()
    brokers = [Broker(id=b["broker"], rack=b["rack"], endpoints=tuple(b["endpoints"]), epoch=b["epoch"]) for b in rows]
    return replace(
        before,
        controller_id=head["controller_id"],
        controller_epoch=head["controller_epoch"],
        brokers={broker.id: broker for broker in brokers},
        topics=topics,
        deleting=dict(head["deleting"]),
        reassigning=frozenset(head["reassigning"]),
        orphan_configs=frozenset(head["orphan_configs"]),
        totals=None,
    )


def write_delta(folder: TableFolder, delta: Delta) -> None:
    """The table ``delta``: the topics that differ, by name."""
    rows = (
        {
            "topic": row.topic,
            "presence": row.presence,
            "topic_class": row.topic_class.value,
            "changed": sorted(row.changed),
            "desired": row.desired._asdict() if row.desired else None,
            "live": row.live._asdict() if row.live else None,
        }
        for row in delta.topics
    )
    _write(folder, "delta", rows)


def write_facts(folder: TableFolder, facts: Facts) -> None:
    """The tables ``load`` and ``unhealthy``; with ``classes`` where files and cluster were compared."""
    if facts.classes:
        _write(folder, "classes", map(_owned_row, facts.classes))
    _write(folder, "load", map(_load_row, facts.load))
    unhealthy = (
        {
            "broker": found.broker,
            "rack": found.rack,
            "rule": found.rule,
            "cause": CAUSES[found.rule],
            "partitions": found.partitions,
        }
        for found in facts.unhealthy
    )
    _write(folder, "unhealthy", unhealthy)


def write_quality(folder: TableFolder, results: Sequence[QualityResult]) -> None:
    """The tables ``rule_counts`` and ``bad_rows``, in the order of the rules."""
    counts = SCHEMAS["rule_counts"].names
    _write(folder, "rule_counts", [{name: getattr(result, name) for name in counts} for result in results])
    _write(folder, "bad_rows", (row for result in results for row in _bad_rows(result)))


def _bad_rows(result: QualityResult) -> Iterator[Row]:
    for example in result.examples:
        yield {
            "rule": result.rule,
            **{name: example.row.get(name) for name in ("topic", "partition", "broker")},
            "row": json.dumps(example.row),
            "was_so_before": example.was_so_before,
        }


def _owned_row(owned: OwnedTopics) -> Row:
    return {
        "owner": owned.owner,
        "domain": owned.domain,
        "topic_class": owned.topic_class.value,
        "topics": owned.topics,
    }


def _load_row(load: Load) -> Row:
    return {name: getattr(load, name) for name in SCHEMAS["load"].names}


def _write(folder: TableFolder, name: str, rows: Iterable[Row]) -> None:
    schema = SCHEMAS[name]
    table = folder.new_table(name, schema)
    try:
        table.write(pa.RecordBatch.from_pylist(list(rows), schema=schema))
        table.keep()
    finally:
        table.discard()
