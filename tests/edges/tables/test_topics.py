"""A snapshot's topics, written as tables and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fakes.builders import healthy_states, live_topic, snapshot
from fakes.changes import create_topic, delete_topic
from fixtures.random_worlds import World
from topicops.edges.tables.schemas import PARTITIONS, TOPICS
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import LiveTables
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.release import USUAL
from topicops.steps.rack_losses import planned_losses

NASTY = ["Ä", "ä", "a\u0308", "tab\t", "😀", "", "nul\0", "ORDERS", "orders"]


def written(folder: Path, *parts: list[LiveTopic]) -> LiveTables:
    tables = LiveTables(TableFolder.at(folder), USUAL)
    tables.begin()
    for part in parts:
        tables.take(part)
    return tables


def test_a_table_read_back_gives_the_same_topics_for_every_world(tmp_path: Path) -> None:
    for seed in range(80):
        topics = World(seed).live.topics

        found = written(tmp_path, list(topics.values())).finish()

        assert list(found) == sorted(topics)
        assert dict(found.read(topics.keys())) == dict(found) == dict(topics)


def test_a_topic_is_found_alone_whatever_its_name_is(tmp_path: Path) -> None:
    topics = [live_topic(name, partitions=n) for n, name in enumerate(NASTY)]

    found = written(tmp_path, topics[:4], [], topics[4:]).finish()

    assert [found[topic.name] for topic in reversed(topics)] == topics[::-1]
    assert "orders " not in found
    with pytest.raises(KeyError):
        found["orders "]


def test_what_a_reassignment_says_of_a_partition_that_is_not_there_is_kept(tmp_path: Path) -> None:
    topic = live_topic("orders", partitions=1, adding={0: (), 7: (3,)}, removing={9: ()})

    assert written(tmp_path, [topic]).finish()["orders"] == topic


def test_a_reading_that_begins_again_leaves_what_came_before_out(tmp_path: Path) -> None:
    tables = written(tmp_path, [live_topic("gone")])
    tables.begin()
    tables.take([live_topic("orders")])

    assert list(tables.finish()) == ["orders"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["partitions.parquet", "topics.parquet"]


def test_tables_that_were_not_finished_leave_the_old_ones(tmp_path: Path) -> None:
    old = written(tmp_path, [live_topic("orders")]).finish()
    with written(tmp_path, [live_topic("new")]):
        pass

    assert list(old) == list(written(tmp_path / "other", [live_topic("orders")]).finish())
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["partitions.parquet", "topics.parquet"]
    assert [*tmp_path.glob(".topicops-*")] == []
    assert TableFolder.at(tmp_path).read("topics")["topic"].to_pylist() == ["orders"]


def test_the_files_have_the_columns_of_the_schemas(tmp_path: Path) -> None:
    written(tmp_path, [live_topic("orders")]).finish()

    for name, schema in (("topics", TOPICS), ("partitions", PARTITIONS)):
        assert pq.read_schema(tmp_path / f"{name}.parquet").equals(schema)


def test_a_table_that_is_missing_damaged_or_of_another_format_is_one_sentence(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    with pytest.raises(ArtifactError, match=r"topics\.parquet: missing"):
        folder.read("topics")
    written(tmp_path, [live_topic("orders")]).finish()
    whole = (tmp_path / "topics.parquet").read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / "topics.parquet").write_bytes(whole[:size])
        with pytest.raises(ArtifactError, match=r"topics\.parquet: .*run the step that writes it again"):
            folder.read("topics")
    pq.write_table(
        pq.read_table(tmp_path / "partitions.parquet").replace_schema_metadata({}), tmp_path / "topics.parquet"
    )
    with pytest.raises(FormatVersionError, match="format none"):
        folder.read("topics")


def test_what_the_loss_of_a_rack_costs_is_the_same_from_tables_and_no_topic_stays_in_memory(tmp_path: Path) -> None:
    rows = {p: (p % 3 + 1, (p + 1) % 3 + 1) for p in range(6)}
    topics = [live_topic(f"t{n}", assignment=rows, states=healthy_states(rows)) for n in range(4)]
    whole = snapshot(*topics, racks={1: "r1", 2: "r2", 3: "r3"})
    tables = written(tmp_path, topics)
    found = tables.finish()
    changes = [create_topic("new", (1,)), delete_topic(topics[0])]

    assert planned_losses(replace(whole, topics=found, totals=tables.totals), changes) == planned_losses(whole, changes)
    assert not any(found._found.values())
