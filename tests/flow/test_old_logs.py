"""Before a partition is created, the brokers are asked for logs that an earlier topic of its name has left."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from fixtures.simulated import Simulated, outcomes_of
from topicops.model.cluster.snapshot import DirectoriesByBroker, LogDirectories
from topicops.model.runs.results import OutcomeStatus

Asked = list[dict[str, set[int]]]


@pytest.mark.parametrize(
    ("partitions", "live", "asked"), [pytest.param(2, 0, {0, 1}, id="create"), pytest.param(3, 2, {2}, id="expand")]
)
def test_plan_and_apply_ask_for_logs_of_new_partitions_and_create_none_beside_one(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, partitions: int, live: int, asked: set[int]
) -> None:
    if live:
        simulated.cluster.put_topic("orders", *[(1, 2)] * live)
    simulated.workspace.topic("orders", partitions=partitions, replicationFactor=2)
    seen: Asked = []
    left: dict[str, frozenset[int]] = {}

    def answer(topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        seen.append({name: {*wanted} for name, wanted in topics.items()})
        return {3: LogDirectories(held={}, unused=left)}

    monkeypatch.setattr(simulated.cluster, "log_directories", answer)
    run = simulated.planned()
    assert len(run.read_plan().changes) == 1

    left["orders"] = frozenset({partitions - 1})
    simulated.apply(run, approved=True)

    assert seen == [{"orders": asked}] * 2
    (outcome,) = outcomes_of(run)
    assert outcome.status is OutcomeStatus.REFUSED
    assert f"broker 3 has a log of partition {partitions - 1} of an earlier topic of this name" in outcome.message
    assert [blocked.codes for blocked in simulated.planned().read_plan().change_set.blocked] == [("TOP444",)]
