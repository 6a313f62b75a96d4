"""Every pair of states, as the classes of every release with ZooKeeper answer it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from fakes.controller.states import (
    PartitionStatus,
    ReplicaStatus,
    partition_may_become,
    replica_may_become,
)
from topicops.model.release import NO_ZOOKEEPER, OLDEST, Release

TABLE = Path(__file__).parents[1] / "data" / "controller-states.json"
VALID_BEFORE = {
    release: group["valid_before"]
    for group in json.loads(TABLE.read_text(encoding="utf-8"))["groups"]
    for name in group["releases"]
    if (release := Release.parse(name))
}


@pytest.mark.parametrize("release", VALID_BEFORE, ids=str)
def test_all_16_pairs_of_partition_states_are_valid_or_not_as_in_each_release(release: Release) -> None:
    pairs = list(product(PartitionStatus, repeat=2))
    ours = {(now, then): partition_may_become(now, then) for now, then in pairs}
    assert ours == {(now, then): now in VALID_BEFORE[release][then] for now, then in pairs}
    assert len(pairs) == 16


@pytest.mark.parametrize("release", VALID_BEFORE, ids=str)
def test_all_49_pairs_of_replica_states_are_valid_or_not_as_in_each_release(release: Release) -> None:
    pairs = list(product(ReplicaStatus, repeat=2))
    ours = {(now, then): replica_may_become(now, then, release) for now, then in pairs}
    assert ours == {(now, then): now in VALID_BEFORE[release][then] for now, then in pairs}
    assert len(pairs) == 49


def test_the_table_has_each_release_with_zookeeper() -> None:
    assert min(VALID_BEFORE) == OLDEST
    assert len(VALID_BEFORE) == 21
    assert max(VALID_BEFORE) < NO_ZOOKEEPER
