"""The demo's copy of this checkout's specs for another Kafka: it is valid there, and names that Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from topicops import cli
from topicops.flow.runs.run import open_run
from topicops.flow.single_steps import validate
from topicops.model.errors import UsageError
from topicops.model.release import NEWEST, NO_ZOOKEEPER, OLDEST, SINGLE_CONFIGS, TOPIC_IDS, Release
from topicops_local.demo_start import UNMANAGED, copy_files, fit_to_kafka, seeds_of

ROOT = Path(__file__).parents[2]


def copied(folder: Path) -> Path:
    topics, dags = copy_files(ROOT / "topics", ROOT / "dags", folder)
    assert (dags / "topicops_dags.py").is_file()
    return topics


@pytest.mark.parametrize("release", [OLDEST, SINGLE_CONFIGS, TOPIC_IDS, NO_ZOOKEEPER, NEWEST], ids=str)
def test_the_copy_is_valid_for_that_kafka(
    tmp_path: Path, release: Release, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICOPS_CACHE", str(tmp_path / "cache"))
    topics = copied(tmp_path / "files")

    said = list(fit_to_kafka(topics, "local", release, kraft=release >= NO_ZOOKEEPER))
    status = cli.run(["validate", str(topics)])

    assert f'kafkaVersion: "{release}"' in said[0]
    assert status == 0, capsys.readouterr().out


def test_without_zookeeper_the_brokers_are_the_source(tmp_path: Path) -> None:
    topics = copied(tmp_path)
    list(fit_to_kafka(topics, "local", NEWEST, kraft=True))

    cluster = yaml.safe_load((topics / "environments/local.yaml").read_text())["spec"]["cluster"]

    assert (cluster["source"], cluster["lease"]) == ("kafka", "file")
    assert "zookeeper" not in cluster


def test_a_compression_that_the_kafka_lacks_is_replaced_and_named(tmp_path: Path) -> None:
    topics = copied(tmp_path)

    said = list(fit_to_kafka(topics, "local", OLDEST, kraft=False))

    assert said[1:] == ["web.clicks: compression.type: lz4, because Kafka 1.0 has no zstd"]
    assert "zstd" not in (topics / "web/web.clicks.yaml").read_text()


def test_a_second_copy_has_no_file_of_the_first(tmp_path: Path) -> None:
    (copied(tmp_path) / "left-over.yaml").touch()
    assert not (copied(tmp_path) / "left-over.yaml").exists()


def test_specs_without_the_environment_of_the_demo_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the demo needs the environment local"):
        list(fit_to_kafka(tmp_path, "local", OLDEST, kraft=False))


def test_a_kafka_that_has_no_zookeeper_is_not_started_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)

    assert cli.run(["demo", "--source", "zookeeper", "--kafka", str(NEWEST)]) == 1

    assert "has no ZooKeeper; ask for KRaft" in capsys.readouterr().err
    assert not (tmp_path / "demo/cluster").exists()


@pytest.mark.parametrize("moves", [True, False])
def test_one_topic_has_one_replica_of_each_partition_where_kafka_can_move_them(tmp_path: Path, moves: bool) -> None:
    run = open_run(environment="local", topics=copied(tmp_path), group="cli", run_id="1", home=tmp_path / "home")
    validate(run)
    seeds = [topic for topic, _ in seeds_of(run.read_desired(), [1, 2, 3], moves=moves)]
    thin = [topic for topic in seeds if topic.replication_factor == 1 and topic.topic != UNMANAGED]
    assert len(thin) == moves
    assert not any("min.insync.replicas" in topic.configs for topic in thin)
    assert all({len(row) for row in topic.assignment.values()} == {1} for topic in thin)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_the_demo_on_kraft_ends_verified(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "topicops", "demo", "--source", "kafka"],
        cwd=ROOT,
        env={**os.environ, "TOPICOPS_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"Starting three brokers of Kafka {NEWEST}." in demo.stdout + demo.stderr
    assert "The cluster is as the specs say, and verified; delete topic.legacy.orders-v1 waits" in demo.stdout
    assert demo.returncode == 0
