"""A new placement is one new function and its name: nothing between the YAML file and plan.json knows the others."""

import json
from pathlib import Path

import pytest

from fakes.builders import environment, snapshot
from fixtures.planning import plan_of
from fixtures.spec_folder import topic, validated
from topicops.model.choices import PLACEMENTS
from topicops.model.cluster.snapshot import Assignment
from topicops.model.plans.plan_file import plan_to_json
from topicops.steps.planning.gate import gate
from topicops.steps.planning.placement import place
from topicops.steps.planning.placement.request import PlacementError, PlacementRequest
from topicops.steps.specs import fields

FILES = {"web/a.yaml": topic("a", "spec: {placement: last, partitions: 2, replicationFactor: 2}\n")}


def place_on_last_brokers(request: PlacementRequest) -> Assignment:
    row = tuple(sorted(request.racks, reverse=True)[: request.replication_factor])
    return dict.fromkeys(request.new_partitions, row)


@pytest.fixture
def third_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    """``last`` in the list, for one test; the readers of files that were made before are not used."""
    monkeypatch.setitem(PLACEMENTS, "last", f"{__name__}:place_on_last_brokers")
    monkeypatch.setattr(fields, "_file_reader", fields._file_reader.__wrapped__)


@pytest.mark.usefixtures("third_placement")
def test_a_third_placement_is_planned_from_yaml_to_plan_json(tmp_path: Path) -> None:
    found = validated(tmp_path, FILES)
    assert not found.has_errors
    assert found.desired is not None

    plan = gate(plan_of(found.desired, snapshot(racks=dict.fromkeys((1, 2, 3)))), environment())

    (change,) = json.loads(plan_to_json(plan))["changes"]
    assert change["after"]["assignment"] == {"0": [3, 2], "1": [3, 2]}


def test_a_placement_that_is_not_in_the_list_is_refused(tmp_path: Path) -> None:
    assert [found.code for found in validated(tmp_path, FILES).diagnostics] == ["TOP205"]
    with pytest.raises(PlacementError, match="a: placement last is unknown; known are balanced, kafka"):
        place("last", PlacementRequest(topic="a", partitions=1, replication_factor=1, racks={1: None}))
