"""Kafka's own placement cases: transcribed from its tests, or computed by its classes."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from topicops.steps.placement import (
    BadAssignmentError,
    BadPartitionCountError,
    MixedRacksError,
    PlacementError,
    PlacementRequest,
    TooFewBrokersError,
    place,
)
from topicops.steps.placement.kafka import assign_replicas, expansion_as_broker, rack_alternated
from topicops.testing.builders import round_robin

OUR_COPY = Path(__file__).parents[1] / "data" / "kafka-placement-cases.json"
CASES = Path(os.environ.get("TOPICOPS_KAFKA_CASES", OUR_COPY))
ERRORS: Mapping[str, type[PlacementError]] = {
    "AdminOperationException": PlacementError,
    "BrokerNotAvailableException": BadAssignmentError,
    "InvalidPartitionsException": BadPartitionCountError,
    "InvalidReplicaAssignmentException": BadAssignmentError,
    "InvalidReplicationFactorException": TooFewBrokersError,
    "any": PlacementError,
}
THREE_BROKERS = [{"id": 1, "rack": None}, {"id": 2, "rack": None}, {"id": 3, "rack": None}]

pytestmark = pytest.mark.cases


def cases_of(*sections: str) -> list[Any]:
    every = json.loads(CASES.read_text(encoding="utf-8"))["sections"]
    return [
        pytest.param(case, id=f"{section['id']}-{index}")
        for section in every
        if section["id"] in sections
        for index, case in enumerate(section["cases"])
    ]


def racks_of(case: dict[str, Any]) -> dict[int, str | None]:
    return {broker["id"]: broker["rack"] for broker in case.get("brokers", THREE_BROKERS)}


def assigned(case: dict[str, Any], *, start: int, shift: int) -> Mapping[int, tuple[int, ...]]:
    racks = racks_of(case)
    return assign_replicas(
        list(racks),
        case["partitions"],
        case["replication_factor"],
        start=start,
        shift=shift,
        first_partition=max(0, case.get("start_partition_id", 0)),
        racks=racks,
    )


@pytest.mark.parametrize("case", cases_of("rack-alternated-list", "run-rack-list"))
def test_brokers_alternate_between_racks(case: dict[str, Any]) -> None:
    racks = {int(broker): rack for broker, rack in case["racks"].items()}
    assert list(rack_alternated(racks)) == case["expect"]


@pytest.mark.parametrize("case", cases_of("assign-exact", "assign-errors", "run-assign"))
def test_replicas_land_where_kafka_puts_them(case: dict[str, Any]) -> None:
    start = case.get("fixed_start_index", 0)
    if "error" in case["expect"]:
        with pytest.raises(ERRORS[case["expect"]["error"]]):
            assigned(case, start=start, shift=start)
        return
    found = assigned(case, start=start, shift=start)
    assert {str(p): list(row) for p, row in found.items()} == case["expect"]["ok"]


def starts_and_shifts(case: dict[str, Any]) -> list[tuple[int, int]]:
    fixed, brokers = case.get("fixed_start_index", -1), len(case["brokers"])
    return [(fixed, fixed)] if fixed >= 0 else list(product(range(brokers), repeat=2))


def check_spread(rows: Mapping[int, tuple[int, ...]], case: dict[str, Any]) -> None:
    racks, expect = racks_of(case), case["expect"]
    leaders = Counter(row[0] for row in rows.values())
    replicas = Counter(broker for row in rows.values() for broker in row)
    for row in rows.values():
        assert len(set(row)) == expect["distinct_brokers_per_partition"]
        assert expect["distinct_racks_per_partition"] in (None, len({racks[broker] for broker in row}))
    for broker in racks:
        assert expect["leaders_per_broker"] in (None, leaders[broker])
        assert expect["replicas_per_broker"] in (None, replicas[broker])


@pytest.mark.parametrize("case", cases_of("assign-properties"))
def test_the_spread_is_even_for_every_start(case: dict[str, Any]) -> None:
    for start, shift in starts_and_shifts(case):
        check_spread(assigned(case, start=start, shift=shift), case)


@pytest.mark.parametrize("case", cases_of("expand-properties"))
def test_the_spread_is_even_after_an_expansion_too(case: dict[str, Any]) -> None:
    for start, shift in starts_and_shifts(case):
        rows = assigned(case, start=start, shift=shift)
        check_spread({**rows, **expansion_as_broker(racks_of(case), rows, case["expand_to"])}, case)


def existing_rows(case: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    if "existing" in case:
        return {int(p): tuple(row) for p, row in case["existing"].items()}
    return dict(round_robin(case["existing_partitions"], case.get("replication_factor", 1)))


def expanded(case: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    """As Kafka counts rows by position, the ids of rows given by hand do not matter."""
    existing, manual = existing_rows(case), case.get("manual")
    if manual is None:
        return dict(expansion_as_broker(racks_of(case), existing, case["total_partitions"]))
    given = manual if isinstance(manual, list) else list(manual.values())
    request = PlacementRequest(
        topic="orders",
        partitions=case["total_partitions"],
        replication_factor=len(existing[0]),
        racks=racks_of(case),
        existing=existing,
        manual={**existing, **{len(existing) + i: tuple(row) for i, row in enumerate(given)}},
    )
    return dict(place("manual", request))


@pytest.mark.parametrize("case", cases_of("expand", "run-expand"))
def test_new_partitions_land_where_the_broker_puts_them(case: dict[str, Any]) -> None:
    expect = case["expect"]
    if "error" in expect:
        with pytest.raises(ERRORS[expect["error"]]):
            expanded(case)
        return
    new = expanded(case)
    rows = {**existing_rows(case), **new}
    if "ok" in expect:
        assert [list(row) for row in new.values()] == list(expect["ok"].values())
    assert all(rows[int(p)][0] == leader for p, leader in expect.get("leader", {}).items())
    assert all(sorted(rows[int(p)]) == members for p, members in expect.get("replica_set", {}).items())
    assert all(list(rows[int(p)]) == row for p, row in expect.get("replicas", {}).items())
    # The one case about configs is kept by construction: an expansion carries none.
    assert sorted(rows) == list(range(case["total_partitions"]))


def test_mixed_racks_are_a_refusal_of_their_own() -> None:
    with pytest.raises(MixedRacksError, match="broker\\(s\\) 2 have no rack"):
        assign_replicas([1, 2], 1, 1, start=0, shift=0, racks={1: "a", 2: None})
