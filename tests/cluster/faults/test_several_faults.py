"""A connection to a broker that breaks, one to ZooKeeper, and a kill, in one run; by the dice."""

from __future__ import annotations

import pytest

from fixtures.fault_runs import FaultRun
from fixtures.proxy import Fate, Strike

POINTS = ("recheck", "intent", "confirm", "request", "audit", "outcome", "release")


@pytest.mark.soak
@pytest.mark.parametrize("number", range(1, 9))
def test_several_faults_in_one_run_lose_nothing(fault_run: FaultRun, number: int) -> None:
    chance = fault_run.chance
    request = chance.choice(("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics"))
    to_broker = Strike(request, chance.choice((Fate.CUT_AFTER, Fate.CUT_MIDWAY, Fate.DELAY)))
    to_zookeeper = Strike("", chance.choice((Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.SLICE)), chance.randint(1, 136))
    point = f"{chance.choice(('before', 'after'))} {chance.choice(POINTS)} #{chance.randint(1, 4)}"
    story = f"{request} {to_broker.fate.name}, ZooKeeper {to_zookeeper.fate.name} #{to_zookeeper.number}, kill {point}"
    with fault_run.between(to_broker, zookeeper=[to_zookeeper]):
        fault_run.end(fault_run.start(point))
    fault_run.bury_session()
    fault_run.check(story=f"{story}, status {fault_run.statuses[-1]}")

    ended = fault_run.until_done()

    assert ended.status == 0, f"{story}: {ended.err}\nreproduce: {fault_run.reproduce}"
    fault_run.check(story=story)
    assert "No changes." in fault_run.replan().out, fault_run.reproduce
