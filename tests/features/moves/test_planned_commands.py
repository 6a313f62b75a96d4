"""`topicops rebalance`, `drain` and `leaders`, over files and a cluster in memory."""

from __future__ import annotations

import json

import pytest

from fixtures.simulated import Simulated


def plan_of(simulated: Simulated, *words: str) -> dict:
    ended = simulated.workspace.run(*words, "--out", "plan.json")
    assert ended.status == 0, ended.err
    return json.loads((simulated.workspace.folder / "plan.json").read_text(encoding="utf-8"))


def test_try(simulated: Simulated) -> None:
    simulated.workspace.cluster["kafkaVersion"] = "3.9"
    for n in range(6):
        simulated.workspace.topic(f"topic-{n}", partitions=1, replicationFactor=1)
        simulated.cluster.put_topic(f"topic-{n}", (1,))
    simulated.cluster.put_topic("other", (2,))
    ended = [simulated.workspace.run("rebalance", "--out", "plan.json"), simulated.workspace.run("drain", "1", "--out", "plan.json"), simulated.workspace.run("leaders")]
    for e in ended: print(e.status); print(e.out); print(e.err)
    assert 0
