"""Connections that break, lag or lose answers, between the tool and a broker or ZooKeeper."""

from __future__ import annotations

import pytest

from fixtures.fault_runs import FaultRun
from fixtures.proxy import Fate, Strike

MUTATIONS = ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics")
CUTS = (Fate.CUT_BEFORE, Fate.CUT_AFTER, Fate.CUT_MIDWAY)
SURROUNDED = (*((name, fate) for name in MUTATIONS for fate in CUTS[1:]), ("CreateTopics", Fate.CUT_BEFORE))
"""Only one that never arrives: it is read back for a minute, as it might still arrive."""
ZOOKEEPER_REQUESTS = 136
"""Of a run from its beginning to its last delete; the first change is sent near the 65th."""
PARTS = 8
SHORT, LONG = (), pytest.mark.soak
IN_MAKE_TEST = {("CreateTopics", Fate.CUT_AFTER)}


def ends_well(run: FaultRun, story: str) -> None:
    ended = run.until_done()
    assert ended.status == 0, f"{story}: {ended.err}\nreproduce: {run.reproduce}"
    run.check(story=story)


@pytest.mark.parametrize(
    ("name", "fate"),
    [
        pytest.param(
            name, fate, id=f"{name} {fate.name}", marks=() if (name, fate) in IN_MAKE_TEST else pytest.mark.soak
        )
        for name, fate in SURROUNDED
    ],
)
def test_a_connection_that_ends_around_a_request_is_settled_by_reading_back(
    fault_run: FaultRun, name: str, fate: Fate
) -> None:
    with fault_run.between(Strike(name, fate)) as (brokers, _):
        ended = fault_run.again()
    assert brokers.done == [f"{name} #1: {fate.name}"]
    if fate is not Fate.CUT_BEFORE:
        assert ended.status == 0, f"{ended.err}\nreproduce: {fault_run.reproduce}"
    ends_well(fault_run, f"{name} {fate.name}, statuses {fault_run.statuses}")


@pytest.mark.soak
def test_late_and_sliced_answers_change_nothing(fault_run: FaultRun) -> None:
    late = [Strike(name, Fate.DELAY) for name in MUTATIONS]
    sliced = [Strike(name, Fate.SLICE, number) for name in ("Metadata", "ApiVersions") for number in range(1, 9)]
    bytewise = [Strike("", Fate.SLICE, number) for number in range(1, 200)]
    with fault_run.between(*late, *sliced, zookeeper=bytewise) as (brokers, zookeeper):
        ended = fault_run.again()

    assert ended.status == 0, f"{ended.err}\nreproduce: {fault_run.reproduce}"
    assert (len(brokers.done) > len(MUTATIONS), len(zookeeper.done) > len(MUTATIONS)) == (True, True)
    fault_run.check(story="late and sliced")


@pytest.mark.soak
def test_an_answer_that_never_comes_is_settled_by_reading_back(fault_run: FaultRun) -> None:
    with fault_run.between(Strike("DeleteTopics", Fate.SWALLOW)) as (brokers, _):
        ended = fault_run.again()

    assert brokers.done == ["DeleteTopics #1: SWALLOW"]
    assert ended.status == 0, f"{ended.err}\nreproduce: {fault_run.reproduce}"
    fault_run.check(story="an answer was kept")


@pytest.mark.soak
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_connection_to_zookeeper_that_ends_anywhere_loses_nothing(fault_run: FaultRun, part: int) -> None:
    chance = fault_run.chance
    share = ZOOKEEPER_REQUESTS // PARTS
    first = chance.randint((part - 1) * share + 1, part * share)
    second = chance.randint(first + 1, ZOOKEEPER_REQUESTS + 1)
    strikes = [Strike("", chance.choice(CUTS), number) for number in (first, second)]
    story = f"to ZooKeeper {[(strike.fate.name, strike.number) for strike in strikes]}"
    with fault_run.between(zookeeper=strikes):
        ended = fault_run.again()
    fault_run.check(story=f"{story}, status {ended.status}")

    fault_run.bury_session()
    ends_well(fault_run, story)
