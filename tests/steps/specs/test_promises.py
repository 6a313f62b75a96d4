"""A new rule is one file and one line in a list: one is added here, and gives diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from topicops.edges.specs.reader import read_document
from topicops.model.choices import PLACEMENTS
from topicops.model.codes import Code
from topicops.model.specs.document import Document, FileKind, Tree
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules import RULES
from topicops.steps.specs.validate import Validated, validate

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
ENVIRONMENT = """\
apiVersion: topicops/v1
kind: Environment
metadata: {name: local}
spec:
  cluster: {class: sandbox, zookeeper: {hosts: zk}, kafka: {bootstrapServers: b}}
  defaults: {partitions: 3, replicationFactor: 1}
"""
TOPIC = """\
apiVersion: topicops/v1
kind: Topic
metadata: {{name: orders, owner: team-shop}}
spec: {spec}
"""


def tree(spec: str) -> Tree:
    files: Mapping[str, tuple[FileKind, str, str]] = {
        "topics/shop/orders.yaml": ("Topic", "orders", TOPIC.format(spec=spec)),
        "topics/environments/local.yaml": ("Environment", "local", ENVIRONMENT),
    }
    return Tree(
        documents=tuple(
            Document(file=file, kind=kind, stem=stem, root=read_document(text.encode()))
            for file, (kind, stem, text) in files.items()
        ),
        files=len(files),
    )


def codes(validated: Validated) -> list[tuple[str, str, int]]:
    return [(found.code, found.file, found.line) for found in validated.diagnostics]


def owners_are_known(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.topics:
        if topic.metadata.get("owner", str) != "team-web":
            yield Finding(
                Code.OWNER_NOT_ALLOWED, topic.file, topic.metadata.values["owner"].span, "no list names this owner"
            )


def test_a_new_rule_is_one_line_in_the_list() -> None:
    spec = tree("{}")

    assert codes(validate(spec, environment="local", now=NOW)) == []
    found = validate(spec, environment="local", now=NOW, rules=(*RULES, owners_are_known))
    assert codes(found) == [("TOP331", "topics/shop/orders.yaml", 3)]


@pytest.mark.parametrize("placement", sorted(PLACEMENTS))
def test_every_placement_of_the_model_is_planned_as_it_is_written(placement: str) -> None:
    _, desired = validate(tree(f"{{placement: {placement}}}"), environment="local", now=NOW).require()

    assert desired.topics["orders"].placement == placement
