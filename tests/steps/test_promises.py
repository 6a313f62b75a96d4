"""A new placement, rule or check is one function and one line in a list: each is added, and seen in the output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.builders import environment, snapshot
from fakes.resting_cluster import RestingCluster
from fixtures.planning import plan_of
from fixtures.spec_folder import NOW, topic, validated
from topicops.edges.specs.reader import read_tree
from topicops.model.choices import PLACEMENTS
from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.plans.plan_file import plan_to_json
from topicops.model.runs.results import Check, Verdict
from topicops.steps.planning.gate import gate
from topicops.steps.planning.placement import PLACING, place
from topicops.steps.planning.placement.request import PlacementError, PlacementRequest
from topicops.steps.reporting.run_report import RunReport, report_json, report_text
from topicops.steps.specs import fields
from topicops.steps.specs.findings import Finding as SpecFinding
from topicops.steps.specs.layers import EnvironmentView
from topicops.steps.specs.rules import RULES as SPEC_RULES
from topicops.steps.specs.validate import validate
from topicops.steps.verifying import checks
from topicops.steps.verifying.observation import Finding, Observation
from topicops.steps.verifying.verify import verify_cluster

FILES = {"web/a.yaml": topic("a", "spec: {placement: last, partitions: 2, replicationFactor: 2}\n")}


def place_on_last_brokers(request: PlacementRequest) -> Assignment:
    row = tuple(sorted(request.racks, reverse=True)[: request.replication_factor])
    return dict.fromkeys(request.new_partitions, row)


def test_a_third_placement_is_planned_from_yaml_to_plan_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLACEMENTS, "last", "")
    monkeypatch.setitem(PLACING, "last", place_on_last_brokers)
    monkeypatch.setattr(fields, "_model_reader", fields._model_reader.__wrapped__)  # readers of files are kept

    _, desired = validated(tmp_path, FILES).require()
    plan = gate(plan_of(desired, snapshot(racks=dict.fromkeys((1, 2, 3)))), environment())

    (change,) = json.loads(plan_to_json(plan))["changes"]
    assert change["after"]["assignment"] == {"0": [3, 2], "1": [3, 2]}


def test_a_placement_that_is_not_in_the_list_is_refused(tmp_path: Path) -> None:
    assert set(PLACING) == set(PLACEMENTS)
    assert [found.code for found in validated(tmp_path, FILES).diagnostics] == ["TOP205"]
    with pytest.raises(PlacementError, match="a: placement last is unknown; known are balanced, kafka"):
        place("last", PlacementRequest(topic="a", partitions=1, replication_factor=1, racks={1: None}))


@pytest.mark.parametrize("placement", sorted(PLACEMENTS))
def test_every_placement_of_the_model_is_planned_as_it_is_written(placement: str, tmp_path: Path) -> None:
    _, desired = validated(tmp_path, {"web/a.yaml": topic("a", f"spec: {{placement: {placement}}}\n")}).require()

    assert desired.topics["a"].placement == placement


def owners_are_known(view: EnvironmentView) -> Iterator[SpecFinding]:
    for each in view.topics:
        if each.metadata.get("owner", str) != "team-shop":
            owner = each.metadata.values["owner"]
            yield SpecFinding(Code.OWNER_NOT_ALLOWED, each.file, owner.span, "no list names this owner")


def test_a_new_rule_of_specs_is_one_line_in_the_list(tmp_path: Path) -> None:
    assert validated(tmp_path, {"web/a.yaml": topic("a")}).diagnostics == ()

    found = validate(read_tree(tmp_path), environment="local", now=NOW, rules=(*SPEC_RULES, owners_are_known))

    assert [(each.code, Path(each.file).name, each.line) for each in found.diagnostics] == [("TOP331", "a.yaml", 3)]


def few_partitions(observation: Observation) -> Iterator[Finding]:
    """A topic has two partitions or more."""
    if observation.present.partitions < 2:
        yield Finding(Code.V17, Verdict.DEGRADED, "has one partition", Code.NO_LEADER)


def test_a_new_check_is_seen_in_the_results_and_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "RULES", {**checks.RULES, (Code.V17, "source"): few_partitions})
    cluster = RestingCluster()
    cluster.put_topic("one", (1, 2))
    cluster.put_topic("two", (1, 2), (2, 3))

    found = verify_cluster(cluster.snapshot(states=True), cluster)

    assert [check for check in found if check.id is Code.V17] == [
        Check(id=Code.V17, topic="one", verdict=Verdict.DEGRADED, message="has one partition", code=Code.NO_LEADER),
        Check(id=Code.V17, topic="two", verdict=Verdict.HEALTHY),
    ]
    report = RunReport(environment="local", checks=found)
    assert "degraded: topic.one V17: has one partition (TOP601)" in report_text(report)
    assert "V17" in str(report_json(report).checks)
