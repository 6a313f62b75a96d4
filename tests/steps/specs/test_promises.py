"""A new rule and a new Kafka release are one file and one line in a list: each is added here, and gives diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from topicops.edges.specs.nodes import read_document
from topicops.model.choices import PLACEMENTS
from topicops.model.specs.document import Document, FileKind, Tree
from topicops.model.specs.topic_config import CONFIG_TABLES, ConfigTable
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules import RULES
from topicops.steps.specs.validate import Validated, validate

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {{name: local}}
spec:
  cluster: {{class: sandbox, kafkaVersion: "{version}", zookeeper: {{hosts: zk}}, kafka: {{bootstrapServers: b}}}}
  defaults: {{partitions: 3, replicationFactor: 1}}
"""
TOPIC = """\
apiVersion: topicops/v1
kind: Topic
metadata: {{name: orders, owner: team-shop}}
spec: {spec}
"""


def tree(spec: str, version: str = "3.9") -> Tree:
    files: Mapping[str, tuple[FileKind, str, str]] = {
        "topics/shop/orders.yaml": ("Topic", "orders", TOPIC.format(spec=spec)),
        "topics/environments/local.yaml": ("Environment", "local", ENVIRONMENT.format(version=version)),
    }
    return Tree(
        documents=tuple(
            Document(file=file, kind=kind, stem=stem, root=read_document(text.encode(), file))
            for file, (kind, stem, text) in files.items()
        ),
        files=len(files),
    )


def codes(validated: Validated) -> list[tuple[str, str, int]]:
    return [(found.code, found.file, found.line) for found in validated.diagnostics]


def owners_are_known(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        if topic.metadata.get("owner", str) != "team-web":
            yield Finding("TOP212", topic.file, topic.metadata.values["owner"].span, "no list names this owner")


def test_a_new_rule_is_one_line_in_the_list() -> None:
    spec = tree("{}")

    assert codes(validate(spec, environment="local", now=NOW)) == []
    found = validate(spec, environment="local", now=NOW, rules=(*RULES, owners_are_known))
    assert codes(found) == [("TOP212", "topics/shop/orders.yaml", 3)]


def with_release(release: str) -> Mapping[str, ConfigTable]:
    """The tables, and one more: in this release segments have at least 1 MiB, as in Kafka 4.2."""
    table = CONFIG_TABLES["3.9"]
    segment = table["segment.bytes"]
    larger = replace(segment, constraint=replace(segment.constraint, min=1 << 20))
    return {**CONFIG_TABLES, release: {**table, "segment.bytes": larger}}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("3.6", [], id="older than every table"),
        pytest.param("3.9", [], id="the table of its own"),
        pytest.param("4.1", [], id="before the new table"),
        pytest.param("4.2", [("TOP306", "topics/shop/orders.yaml", 4)], id="the new table"),
        pytest.param("4.10.1", [("TOP306", "topics/shop/orders.yaml", 4)], id="after the new table"),
    ],
)
def test_a_new_release_is_one_table_in_the_list(version: str, expected: list[tuple[str, str, int]]) -> None:
    spec = tree("{configs: {segment.bytes: 512KiB}}", version)

    assert codes(validate(spec, environment="local", now=NOW, config_tables=with_release("4.2"))) == expected


def test_a_config_that_only_the_new_release_has_is_known_there() -> None:
    """Its name is judged by the table of the environment's release."""
    table = CONFIG_TABLES["3.9"]
    tables = {**CONFIG_TABLES, "4.4": {**table, "segment.age": replace(table["segment.ms"], name="segment.age")}}
    old, new = tree("{configs: {segment.age: 1000}}", "4.3"), tree("{configs: {segment.age: 1000}}", "4.4")

    assert codes(validate(old, environment="local", now=NOW, config_tables=tables)) == [
        ("TOP305", "topics/shop/orders.yaml", 4)
    ]
    assert codes(validate(new, environment="local", now=NOW, config_tables=tables)) == []


@pytest.mark.parametrize("placement", sorted(PLACEMENTS))
def test_every_placement_of_the_model_is_planned_as_it_is_written(placement: str) -> None:
    _, desired = validate(tree(f"{{placement: {placement}}}"), environment="local", now=NOW).require()

    assert desired.topics["orders"].placement == placement
