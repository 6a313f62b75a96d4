"""Brokers with Kafka's own authorizer: what a reader without rights on the cluster can do where it is a service's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.changes_by_identity import PARTS, changes_are_due
from fixtures.guarded_release import GuardedRelease
from fixtures.kafka_releases import Brokers
from fixtures.workspace import Workspace

pytestmark = pytest.mark.soak


@pytest.fixture
def broker(fast_folder: Path) -> Iterator[GuardedRelease]:
    with GuardedRelease.running(Brokers(kafka="4.4.0", kraft=True), fast_folder / "guarded-by-a-service") as guarded:
        yield guarded


@pytest.fixture
def guarded(broker: GuardedRelease, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    with changes_are_due(broker, workspace, monkeypatch) as prepared:
        yield prepared


def test_in_a_managed_cluster_rights_on_topics_are_enough_and_what_is_refused_is_named(
    guarded: Workspace, broker: GuardedRelease
) -> None:
    spec = broker.spec(**{**PARTS, "connection": "deaf"})
    guarded.cluster = spec
    as_ones_own = guarded.plan()
    guarded.cluster = {**spec, "kind": "managed"}
    planned, applied = guarded.plan(), guarded.apply()

    refusal = "CLUSTER_AUTHORIZATION_FAILED (31)"
    assert (as_ones_own.status, planned.status) == (1, 0), planned.err
    assert refusal in as_ones_own.err
    for request in ("DescribeConfigs", "DescribeLogDirs", "DescribeQuorum", "ListPartitionReassignments"):
        assert f"{request}: {refusal}" in planned.out, planned.out
    assert planned.out.count("not checked: ") == 1
    assert "Applied in part: 3 done, 1 refused" in applied.out, applied.out + applied.err
    assert "owned.going delete: refused: its consumer groups cannot be read (TOP437)" in applied.out
    assert "owned.going" in broker.topics
