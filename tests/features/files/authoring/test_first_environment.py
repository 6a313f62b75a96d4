"""The first environment file and the editor's settings, as texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.first_environment import (
    FirstEnvironment,
    Start,
    editor_settings,
    environment_text,
)
from topicops.features.files.formatting.files import format_files
from topicops.flow.spec_files import Selection
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint
from topicops.steps.specs.validate import validate

RACKS = {1: "a", 2: "b", 3: "c"}


def found(**changes: object) -> FirstEnvironment:
    start = Start(
        name="prod",
        owner="team-platform",
        cluster_class="production",
        zookeeper=ZooKeeperEndpoint(hosts="zk1:2181,zk2:2181/kafka"),
        kafka=KafkaEndpoint(bootstrap_servers="b1:9092,b2:9092"),
        topics="topics",
    )
    said = {name: value for name, value in changes.items() if hasattr(start, name)}
    answers = {"cluster_id": "x9ZkQ0mVTh2c7nUeYw1aBg", "kafka_version": "3.9", "racks": RACKS, **changes}
    answered = {name: value for name, value in answers.items() if name not in said}
    return FirstEnvironment(start=replace(start, **said), **answered)  # type: ignore[arg-type]


def written(folder: Path, environment: FirstEnvironment) -> Path:
    file = folder / "topics" / "environments" / f"{environment.start.name}.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(environment_text(environment), encoding="utf-8")
    return folder / "topics"


CASES = {
    "with addresses": {},
    "with connections": {
        "zookeeper": ZooKeeperEndpoint(connection="zk_prod"),
        "kafka": KafkaEndpoint(connection="kafka_prod"),
    },
    "without ZooKeeper": {"zookeeper": None},
    "a sandbox": {"cluster_class": "sandbox"},
    "one broker without a rack": {"racks": {7: None}},
    "a release that no broker reports": {"kafka_version": None, "cluster_class": "sandbox"},
    "texts that YAML would misread": {"name": "on", "cluster_id": "3.9", "racks": {1: "a\nkind: Topic", 2: '": ['}},
}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_the_environment_file_is_valid_and_in_its_standard_form(changes: Mapping[str, object], tmp_path: Path) -> None:
    topics = written(tmp_path, found(**changes))

    checked = validate(read_tree(topics), environment=None, now=datetime.now(UTC))

    assert checked.diagnostics == ()
    assert format_files(Selection(topics=topics), check=True, on_change=lambda _: None).changed == []


def test_a_production_environment_whose_release_no_broker_reports_says_so(tmp_path: Path) -> None:
    checked = validate(read_tree(written(tmp_path, found(kafka_version=None))), environment=None, now=datetime.now(UTC))

    assert [(each.code, each.is_error) for each in checked.diagnostics] == [("TOP334", False)]


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_the_file_says_what_the_cluster_answered(changes: Mapping[str, object]) -> None:
    environment = found(**changes)

    cluster = yaml.safe_load(environment_text(environment))["spec"]["cluster"]

    assert cluster.get("id") == (environment.cluster_id if environment.start.cluster_class == "production" else None)
    assert cluster.get("kafkaVersion") == environment.kafka_version
    assert (cluster["source"], cluster["lease"]) == (
        ("zookeeper",) * 2 if environment.start.zookeeper else ("kafka", "file")
    )


def test_a_rack_cannot_write_lines_into_the_file() -> None:
    document = yaml.safe_load(environment_text(found(racks={1: "a\nkind: Topic"})))
    assert document["kind"] == "Environment"


def test_replicas_are_as_many_as_the_brokers_can_hold() -> None:
    specs = [yaml.safe_load(environment_text(found(racks=dict.fromkeys(range(n)))))["spec"] for n in (1, 2, 6)]
    assert [spec["defaults"]["replicationFactor"] for spec in specs] == [1, 2, 3]


@pytest.mark.parametrize("topics", ["topics", "kafka/topics"])
def test_the_editor_finds_a_schema_for_each_kind_of_file(topics: str) -> None:
    schemas = json.loads(editor_settings(topics))["yaml.schemas"]
    folder = "./.schemas" if topics == "topics" else "./kafka/.schemas"
    kinds = ["topic", "profile", "environment", "exceptions", "owners"]
    assert list(schemas) == [f"{folder}/{kind}.v1.json" for kind in kinds]
    assert schemas[f"{folder}/topic.v1.json"][0] == f"{topics}/*/*.yaml"


@pytest.mark.parametrize(
    ("kind", "vendor", "line"),
    [
        pytest.param(None, "", None, id="names that tell nothing"),
        pytest.param(None, "Aiven", "kind: managed  # Aiven runs the brokers", id="names of a vendor"),
        pytest.param("managed", "", "kind: managed  # a service runs the brokers", id="as a person says"),
        pytest.param("own", "Aiven", None, id="as a person says against the names"),
    ],
)
def test_a_service_is_known_by_the_names_of_its_brokers_or_by_what_a_person_says(
    tmp_path: Path, kind: str | None, vendor: str, line: str | None
) -> None:
    text = environment_text(found(kind=kind, vendor=vendor))
    written(tmp_path, found(kind=kind, vendor=vendor))

    assert validate(read_tree(tmp_path / "topics"), environment="prod", now=datetime.now(UTC)).diagnostics == ()
    assert ("    kind:" in text) is (line is not None)
    assert line is None or line in text
