"""The small tables of a run: the cluster's head, and what diff, rules and facts found. Python writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.plans.delta import Delta
from topicops.model.runs.facts import CAUSES, Facts
from topicops.model.runs.results import QualityResult


def write_cluster(folder: TableFolder, live: ClusterSnapshot) -> None:
    brokers = sorted(live.brokers.values(), key=lambda broker: broker.id)
    rows = ({"broker": b.id, "rack": b.rack, "endpoints": b.endpoints, "epoch": b.epoch} for b in brokers)
    _write(folder, "brokers", rows)
    head = {
        "deleting": list(live.deleting.items()),
        "reassigning": sorted(live.reassigning),
        "orphan_configs": sorted(live.orphan_configs),
    }
    _write(folder, "cluster", [_row("cluster", live) | head])


def read_cluster(folder: TableFolder, before: ClusterSnapshot, topics: Mapping[str, LiveTopic]) -> ClusterSnapshot:
    """Return the snapshot that these tables are of; ``before`` is an earlier one, for what no table has."""
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
    """Write the table ``delta``: the topics that differ, by name."""
    rows = (
        _row("delta", row)
        | {
            "changed": sorted(row.changed),
            "desired": row.desired._asdict() if row.desired else None,
            "live": row.live._asdict() if row.live else None,
        }
        for row in delta.topics
    )
    _write(folder, "delta", rows)


def write_facts(folder: TableFolder, facts: Facts) -> None:
    """Write the tables ``load`` and ``unhealthy``; with ``owners`` if files and cluster were compared."""
    if facts.owners:
        _write(folder, "owners", (_row("owners", found) for found in facts.owners))
    _write(folder, "load", (_row("load", found) for found in facts.load))
    unhealthy = (_row("unhealthy", found) | {"cause": CAUSES[found.rule]} for found in facts.unhealthy)
    _write(folder, "unhealthy", unhealthy)


def write_quality(folder: TableFolder, results: Sequence[QualityResult]) -> None:
    """Write the tables ``rule_counts`` and ``bad_rows``, in the order of the rules."""
    _write(folder, "rule_counts", (_row("rule_counts", result) for result in results))
    bad_rows = (
        {name: found.row.get(name) for name in ("topic", "partition", "broker")}
        | {"rule": result.rule, "row": json.dumps(found.row), "was_so_before": found.was_so_before}
        for result in results
        for found in result.examples
    )
    _write(folder, "bad_rows", bad_rows)


def _row(table: str, value: object) -> dict[str, object]:
    """Return the fields of a value that have the names of the table's columns."""
    return {name: getattr(value, name) for name in SCHEMAS[table].names if hasattr(value, name)}


def _write(folder: TableFolder, name: str, rows: Iterable[Mapping[str, object]]) -> None:
    write_rows(folder, name, SCHEMAS[name], rows)


def write_rows(folder: TableFolder, name: str, schema: pa.Schema, rows: Iterable[Mapping[str, object]]) -> None:
    """Write a table of few rows; a column that a row lacks is null."""
    folder.write(name, schema, [pa.RecordBatch.from_pylist(list(rows), schema=schema)])
