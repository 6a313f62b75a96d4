"""The small tables of a run: each has the columns of its schema, and says what the values say."""

from __future__ import annotations

import json
from pathlib import Path

from fakes.builders import snapshot
from fixtures.random_worlds import World
from topicops.edges.tables.results import write_cluster, write_delta, write_facts, write_quality
from topicops.edges.tables.schemas import SCHEMAS
from topicops.edges.tables.table_folder import TableFolder
from topicops.model.plans.delta import DesiredRow, LiveRow, desired_row, live_row
from topicops.model.runs.facts import Facts, Load, UnhealthyPartitions
from topicops.model.runs.results import FailingRow, QualityResult
from topicops.steps.planning.diff import diff


def test_the_delta_of_a_world_is_in_its_table(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    for world in map(World, range(40)):
        delta = diff(map(desired_row, world.desired.topics.values()), map(live_row, world.live.topics.values()))
        write_delta(folder, delta)

        rows = folder.read("delta").to_pylist()

        assert [(row["topic"], row["topic_class"], frozenset(row["changed"])) for row in rows] == [
            (found.topic, found.topic_class.value, found.changed) for found in delta.topics
        ]
        assert [row["desired"] and DesiredRow(**row["desired"]) for row in rows] == [d.desired for d in delta.topics]
        assert [row["live"] and LiveRow(**row["live"]) for row in rows] == [d.live for d in delta.topics]


def test_the_head_of_the_cluster_is_in_two_tables(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    live = snapshot(racks={2: "b", 1: None}, deleting={"old": 7}, orphan_configs=frozenset({"left"}))
    write_cluster(folder, live)

    (cluster,) = folder.read("cluster").to_pylist()

    assert [(row["broker"], row["rack"]) for row in folder.read("brokers").to_pylist()] == [(1, None), (2, "b")]
    assert cluster["cluster_id"] == live.cluster_id
    assert (cluster["deleting"], cluster["orphan_configs"], cluster["reassigning"]) == ([("old", 7)], ["left"], [])


def test_facts_and_rules_are_in_their_tables(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    load = Load(broker=1, rack="a", is_live=True, partitions=2, replicas=2, preferred_leaders=1, leaders=None)
    unhealthy = UnhealthyPartitions(broker=None, rack=None, rule="Q15", partitions=3)
    write_facts(folder, Facts(load=(load,), unhealthy=(unhealthy,), has_states=False))
    row = FailingRow(row={"topic": "orders", "partition": 1, "isr": [2]}, was_so_before=True)
    failed = QualityResult(
        rule="Q12", title="t", severity="warning", success=False, rows_checked=9, rows_failed=1, examples=(row,)
    )
    write_quality(folder, [failed])

    (bad,) = folder.read("bad_rows").to_pylist()

    assert folder.read("load").to_pylist()[0]["leaders"] is None
    assert folder.read("unhealthy").to_pylist()[0]["cause"] == "on fewer racks than possible"
    assert folder.read("rule_counts").to_pylist()[0]["rows_checked"] == 9
    assert (bad["rule"], bad["topic"], bad["partition"], bad["broker"]) == ("Q12", "orders", 1, None)
    assert json.loads(bad["row"]) == row.row
    assert not folder.has("classes")  # files and cluster were not compared


def test_every_table_has_a_footer_that_says_its_format(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    write_cluster(folder, snapshot())

    assert folder.read("cluster").schema.names == SCHEMAS["cluster"].names  # reading refuses another format
