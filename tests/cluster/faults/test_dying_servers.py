"""Brokers, the controller and ZooKeeper die or fall silent while a plan is applied; and so does the tool itself.

Connections between them break, lag or lose answers.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from fixtures.fault_runs import PATIENCE_S, FaultRun
from fixtures.live import look, until
from fixtures.proxy import Fate, Strike
from topicops.edges.zookeeper.lease import LEASE

SILENCE_S = 9.0
"""Longer than a broker's session with ZooKeeper."""
Blow = Callable[[FaultRun], None]


@pytest.fixture
def run(fault_run: FaultRun) -> Iterator[FaultRun]:
    """Every server is back after it."""
    yield fault_run
    heal(fault_run)


def heal(run: FaultRun) -> None:
    cluster = run.cluster
    cluster.start_zookeeper()
    for broker in cluster.broker_ports:
        cluster.start_broker(broker)
    until(lambda: is_whole(run), timeout_s=PATIENCE_S)
    run.requests.switch_on()


def is_whole(run: FaultRun) -> bool:
    """Brokers are all there, and every replica of our topics is in sync again."""
    live = look(run.cluster)
    states = [
        state for topic in run.topics if topic in live.topics for state in (live.topics[topic].states or {}).values()
    ]
    all_there = len(live.brokers) == len(run.cluster.broker_ports) and live.controller_id is not None
    return all_there and all(len(state.isr) == 3 for state in states)


def controller(run: FaultRun) -> int:
    found = look(run.cluster).controller_id
    assert found is not None
    return found


def another(run: FaultRun) -> int:
    return next(broker for broker in run.cluster.broker_ports if broker != controller(run))


def silence_zookeeper(run: FaultRun) -> None:
    run.cluster.pause_zookeeper()
    try:
        time.sleep(SILENCE_S)
    finally:
        run.cluster.resume_zookeeper()


def silence(run: FaultRun, broker: int) -> None:
    run.cluster.pause(broker)
    try:
        time.sleep(SILENCE_S)
    finally:
        run.cluster.resume(broker)


def restart_zookeeper(run: FaultRun) -> None:
    run.cluster.stop_zookeeper(now=True)
    run.cluster.start_zookeeper()


BLOWS: Mapping[str, Blow] = {
    "a broker is killed": lambda run: run.cluster.kill(another(run)),
    "the controller is killed": lambda run: run.cluster.kill(controller(run)),
    "ZooKeeper is killed and started": restart_zookeeper,
    "a broker is silent": lambda run: silence(run, another(run)),
    "the controller is silent": lambda run: silence(run, controller(run)),
    "ZooKeeper is silent": silence_zookeeper,
}
POINTS: Mapping[str, tuple[str, ...]] = {
    "a broker is killed": ("before request delete",),
    "the controller is killed": ("before request create", "before request delete"),
    "ZooKeeper is killed and started": ("before request expand",),
    "a broker is silent": ("before request create",),
    "the controller is silent": ("before request create", "after intent #3"),
    "ZooKeeper is silent": ("before request expand",),
}
"""Where the tool is then."""


@pytest.mark.soak
@pytest.mark.parametrize(("blow", "point"), [(blow, at) for blow in BLOWS for at in POINTS[blow]])
def test_a_server_that_dies_or_falls_silent_loses_nothing(run: FaultRun, blow: str, point: str) -> None:
    run.live.verify = dict.fromkeys(("leaders", "isr", "metadata", "deletes"), "5s")  # not for the dead
    process = run.start(point, "stop", "--lock-timeout", "60s")
    run.live.verify = {}
    assert run.is_stopped_at_point(process), process.communicate()
    if blow.endswith("silent"):
        process.send_signal(signal.SIGCONT)  # it goes on meanwhile
    BLOWS[blow](run)
    process.send_signal(signal.SIGCONT)
    ended = run.end(process)
    heal(run)
    story = f"{blow} {point}, status {ended.status}"
    run.check(story=story)

    ended = run.until_done()

    assert ended.status == 0, f"{story}: {ended.err}\nreproduce: {run.reproduce}"
    run.check(story=story)


@pytest.mark.soak
@pytest.mark.parametrize("point", ["before confirm #2", "before intent #3"])
def test_a_tool_that_slept_past_its_session_sends_nothing_more(run: FaultRun, point: str) -> None:
    process = run.start(point, "stop")
    assert run.is_stopped_at_point(process), process.communicate()
    seen = len(run.requests.read())
    until(lambda: run.znodes.exists(LEASE) is None, timeout_s=PATIENCE_S)
    process.send_signal(signal.SIGCONT)
    ended = run.end(process)

    assert "is no longer ours" in ended.err, f"{ended.err}\nreproduce: {run.reproduce}"
    assert len(run.requests.read()) == seen, run.reproduce
    run.check(story=f"slept {point}, status {ended.status}")
    assert run.again().status == 0
    run.check(story=f"slept {point}")


@pytest.mark.soak
def test_a_tool_that_slept_while_another_took_over_sends_nothing_more(run: FaultRun) -> None:
    process = run.start("after intent", "stop")
    assert run.is_stopped_at_point(process), process.communicate()
    assert run.again().status == 0
    seen = len(run.requests.read())
    process.send_signal(signal.SIGCONT)
    ended = run.end(process)

    assert "is no longer ours" in ended.err, f"{ended.err}\nreproduce: {run.reproduce}"
    assert len(run.requests.read()) == seen, run.reproduce
    run.check(story="slept while another took over")


@pytest.mark.soak
def test_a_lease_that_an_administrator_deletes_stops_the_run(run: FaultRun) -> None:
    process = run.start("after intent #2", "stop")
    assert run.is_stopped_at_point(process), process.communicate()
    run.znodes.delete(LEASE)
    process.send_signal(signal.SIGCONT)
    ended = run.end(process)

    assert "its znode is gone" in ended.err
    assert ended.status == 6
    run.check(story="the lease was deleted")
    assert run.again().status == 0
    run.check(story="the lease was deleted")


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
