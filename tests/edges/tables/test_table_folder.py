"""A run's tables: each as its schema, written and read back, in its own folder or below TOPICOPS_TABLES."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from fakes.builders import desired_topic, healthy_states, live_topic, owner_counts, snapshot
from fakes.changes import create_topic, delete_topic
from fixtures.random_worlds import World
from fixtures.simulated import Simulated
from topicops.edges.home.artifacts import runs_folder
from topicops.edges.tables.results import write_cluster, write_delta, write_facts, write_quality
from topicops.edges.tables.schemas import DESIRED, PARTITIONS, SCHEMAS, TOPICS
from topicops.edges.tables.table_folder import TableFolder
from topicops.edges.tables.topics import LiveTables, desired_batch, read_desired_topics
from topicops.flow import single_steps
from topicops.flow.runs import run as run_module
from topicops.flow.runs.run import EnvironmentRun, open_run
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.errors import ArtifactError, FormatVersionError
from topicops.model.plans.delta import DesiredRow, LiveRow, desired_row, live_row
from topicops.model.release import USUAL
from topicops.model.runs.facts import Facts, Load, UnhealthyPartitions
from topicops.model.runs.results import FailingRow, QualityResult
from topicops.steps.planning.diff import diff
from topicops.steps.rack_losses import planned_losses

SETTING = "TOPICOPS_TABLES"


def read(simulated: Simulated, run_id: str) -> EnvironmentRun:
    simulated.workspace.write_environment()
    run = open_run(environment="local", topics=Path("topics"), group="topic pipeline", run_id=run_id)
    single_steps.validate(run, as_tables=True)
    single_steps.snapshot(run)
    return run


WITHOUT_PANDAS = """
import sys
from pathlib import Path
from topicops.edges.tables.results import write_rows
from topicops.edges.tables.schemas import TOPICS
from topicops.edges.tables.table_folder import TableFolder
tables = TableFolder.at(Path(sys.argv[1]))
write_rows(tables, "topics", TOPICS, [{"topic": "a"}])
print(tables.read("topics")["topic"].to_pylist(), "pandas" in sys.modules)
print(tables.read("topics").to_pandas()["topic"][0])
"""


def test_tables_are_written_and_read_without_pandas_which_may_still_read_them(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS, str(tmp_path)], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("['a'] False\na\n", "")


def test_tables_of_many_runs_are_one_data_set_and_rows_tell_their_run(simulated: Simulated) -> None:
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))
    first, second = read(simulated, "manual:1"), read(simulated, "manual:2")

    for table in ("desired", "topics", "partitions", "brokers", "cluster"):
        rows = duckdb.sql(
            f"SELECT DISTINCT environment, run, cluster_id, epoch_us(began_at) "
            f"FROM '{simulated.workspace.folder}/home/runs/*/*/tables/{table}.parquet' ORDER BY run"
        ).fetchall()
        assert [row[:3] for row in rows] == [
            ("local", run.name, simulated.cluster.cluster_id()) for run in (first, second)
        ], table
        assert rows[0][3] < rows[1][3]
    tables = first.known_tables(), second.known_tables()
    assert tables[0].digest("desired", "topics", "partitions") == tables[1].digest("desired", "topics", "partitions")
    assert tables[0].read("topics").schema.names == SCHEMAS["topics"].names


def test_a_table_that_has_a_topic_twice_is_refused(tmp_path: Path) -> None:
    tables, orders = TableFolder.at(tmp_path), desired_topic("orders")
    tables.write("desired", DESIRED, [desired_batch([orders, desired_topic("items"), orders], USUAL)])
    with pytest.raises(ArtifactError, match="a table of this run has orders twice"):
        read_desired_topics(tables)


def test_a_table_whose_rows_are_others_has_another_digest(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    digests = set()
    for live in (snapshot(), snapshot(racks={1: "a"}), snapshot(racks={1: "b"})):
        write_cluster(folder, live)
        digests.add(folder.digest("brokers", "cluster"))
    assert len(digests) == 3


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://{}/"])
def test_tables_are_below_the_setting_by_group_and_run_and_the_run_reads_them_there(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    monkeypatch.setenv(SETTING, form.format(tmp_path / "all-tables"))
    simulated.workspace.topic("orders")
    simulated.cluster.put_topic("orders", (1, 2, 3))

    run = read(simulated, "manual:1")

    folder = tmp_path / "all-tables" / "topic%20pipeline" / "manual%3A1"
    assert {path.stem for path in folder.iterdir()} >= {"desired", "partitions", "topics"}
    assert not run.store.path("tables").exists()
    assert [*run.read_desired().topics] == ["orders"]
    assert run.read_live().topics["orders"].assignment == {0: (1, 2, 3)}


def test_another_setting_than_the_run_began_with_is_refused(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "here"))
    run = read(simulated, "1")
    for other in (str(tmp_path / "there"), ""):
        monkeypatch.setenv(SETTING, other)
        with pytest.raises(
            ArtifactError, match=r"/here/topic%20pipeline/1: .* TOPICOPS_TABLES now names another place"
        ):
            run.read_live()


def test_the_tables_of_old_runs_are_removed_with_them(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "all"))
    old = read(simulated, "old").store.folder
    long_ago = (run_module.now() - timedelta(days=91)).timestamp()
    last_look = tmp_path / "home/runs/.pruned"
    for path in (*old.iterdir(), old, last_look):
        os.utime(path, (long_ago, long_ago))

    read(simulated, "new")

    assert not old.exists()
    assert [path.name for path in (tmp_path / "all" / "topic%20pipeline").iterdir()] == ["new"]


def test_the_tables_of_a_run_of_many_environments_are_below_that_run(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "all"))
    run = open_run(environment="local", topics=Path("topics"), group="cli", run_id="1", part="local")
    simulated.workspace.write_environment()

    single_steps.validate(run, as_tables=True)

    assert run.store.folder == tmp_path / "home/runs/cli/1/local"
    assert (tmp_path / "all/cli/1/local/desired.parquet").is_file()


def test_old_runs_stay_while_their_tables_cannot_be_removed(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = runs_folder(tmp_path / "home", "cli", "old")
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setenv(SETTING, "nowhere://tests:s3cret@store/tables")

    with pytest.raises(ArtifactError, match=r"^nowhere://store/tables: no place for tables: "):
        read(simulated, "new")

    assert old.is_dir()
    assert "so 1 old runs are not removed" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "uri",
    [
        "nowhere://key:s3cret@bucket/x",
        "s3://key:s3cret@bucket/x?unknown=s3cret",
        "s3://key:s3/cret@bucket/x y?password=s3cret",
        "s3://key:s3cret@",
        "relative/path",
    ],
)
def test_an_address_that_cannot_be_used_is_one_sentence_without_a_secret(uri: str) -> None:
    with pytest.raises(ArtifactError, match=r": no place for tables: .") as caught:
        TableFolder.at(uri)
    assert "cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


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
    assert not folder.has("owners")  # files and cluster were not compared


def test_each_owner_has_a_row(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    counts = owner_counts("billing", topics=3, partitions=9, missing=1, unhealthy=2)

    write_facts(folder, Facts(owners=(counts, owner_counts(None)), load=(), unhealthy=(), has_states=True))

    assert folder.read("owners").to_pylist() == [asdict(counts), asdict(owner_counts(None))]


def test_every_table_has_a_footer_that_says_its_format(tmp_path: Path) -> None:
    folder = TableFolder.at(tmp_path)
    write_cluster(folder, snapshot())

    assert folder.read("cluster").schema.names == SCHEMAS["cluster"].names  # reading refuses another format


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
