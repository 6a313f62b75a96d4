"""The brokers are asked for the sizes of topics only where a plan lets records go, and once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from fixtures.simulated import Simulated
from topicops.model.cluster.snapshot import DirectoriesByBroker


@pytest.mark.parametrize(
    ("retention_ms", "asked"),
    [
        pytest.param("1d", [["shop"]], id="shorter"),
        pytest.param("9d", [], id="longer"),
        pytest.param(None, [["shop"]], id="deleted"),
    ],
)
def test_sizes_are_asked_for_where_records_may_go(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, retention_ms: str | None, asked: list[list[str]]
) -> None:
    simulated.cluster.put_topic("shop", (1, 2), configs={"retention.ms": "604800000"})
    if retention_ms is None:
        simulated.workspace.tombstone("shop")
    else:
        simulated.workspace.topic("shop", partitions=1, replicationFactor=2, configs={"retention.ms": retention_ms})
    seen: list[list[str]] = []
    answer = simulated.cluster.log_directories

    def noted(topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        seen.append([*topics])
        return answer(topics)

    monkeypatch.setattr(simulated.cluster, "log_directories", noted)
    plan = simulated.planned().read_plan()

    assert seen == asked
    assert [*plan.change_set.log_bytes] == ["shop"] * len(asked)
