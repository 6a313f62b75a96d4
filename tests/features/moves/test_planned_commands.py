"""`topicops rebalance`, `drain` and `leaders`, over files and a cluster in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.fake_ports import FakeMover
from fixtures.simulated import CLUSTER_ID, Recorded, Simulated
from topicops import plugged
from topicops.features.moves.carrying.ports import LogSizes
from topicops.features.moves.offered import MovesByKafka
from topicops.features.moves.planned import electing, planning
from topicops.features.moves.record import MOVES, MovesRecord, PartitionMove, TopicMove, TopicPartition
from topicops.model.cluster.snapshot import LogDirectories
from topicops.model.plans.changes import MoveReason


class MovedBy(MovesByKafka):
    """Plans as the feature does, and gives this mover."""

    def __init__(self, mover: FakeMover) -> None:
        self._mover = mover

    def mover(self, *_: object, **__: object) -> FakeMover:  # type: ignore[override]  # it opens nothing
        return self._mover


@pytest.fixture
def uneven(simulated: Simulated) -> Simulated:
    """Six topics of one replica, all on broker 1, and one that no file describes."""
    for number in range(6):
        simulated.workspace.topic(f"topic-{number}", partitions=1, replicationFactor=1)
        simulated.cluster.put_topic(f"topic-{number}", (1,))
    simulated.cluster.put_topic("other", (1,))
    return simulated


def planned(simulated: Simulated, *words: str) -> dict[str, Any]:
    ended = simulated.workspace.run(*words, "--out", "plan.json")
    assert ended.status == 0, ended.err
    found: dict[str, Any] = json.loads((simulated.workspace.folder / "plan.json").read_text(encoding="utf-8"))
    return found


def targets(plan: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    return {change["topic"]: change["after"]["assignment"] for change in plan["changes"]}


def test_rebalance_gives_each_broker_its_share_and_moves_only_described_topics(uneven: Simulated) -> None:
    plan = planned(uneven, "rebalance")
    assert {change["actions"][0] for change in plan["changes"]} == {"reassign"}
    assert "other" not in targets(plan)
    assert Counter(row[0] for its in targets(plan).values() for row in its.values()) == {2: 2, 3: 2}
    assert plan["warnings"][0] == (
        "1 topic counted, and not moved: no file describes it, or the file asks for another change, gives the replicas "
        "by hand, pauses or deletes it"
    )


@pytest.mark.parametrize(
    ("words", "held"),
    [
        pytest.param(("--brokers", "3"), {3: 2}, id="one that joins"),
        pytest.param(("--brokers", "2,3"), {2: 2, 3: 2}, id="two of them"),
        pytest.param(("--leaders",), {}, id="no replica has another place for its leader"),
    ],
)
def test_rebalance_moves_replicas_to_the_brokers_that_are_named(
    uneven: Simulated, words: Sequence[str], held: Mapping[int, int]
) -> None:
    plan = planned(uneven, "rebalance", *words)
    gained = Counter(row[0] for its in targets(plan).values() for row in its.values())
    assert gained.keys() == held.keys()
    assert all(count >= held[broker] for broker, count in gained.items())


def test_rebalance_leaders_changes_only_the_order_of_replicas_and_needs_no_approval(simulated: Simulated) -> None:
    simulated.workspace.topic("orders", partitions=3)
    simulated.cluster.put_topic("orders", (1, 2, 3), (1, 2, 3), (1, 2, 3))
    plan = planned(simulated, "rebalance", "--leaders")
    (rows,) = targets(plan).values()
    assert {tuple(sorted(row)) for row in rows.values()} == {(1, 2, 3)}
    assert {row[0] for row in rows.values()} == {2, 3}
    assert [change["gate"] for change in plan["changes"]] == ["run"]


def test_a_topic_whose_producers_could_not_bear_the_move_stays_and_is_named(uneven: Simulated) -> None:
    topic = uneven.cluster.put_topic("topic-0", (1,))
    uneven.cluster.put_as_is(replace(topic, overrides={"min.insync.replicas": "2"}))

    plan = planned(uneven, "rebalance")

    assert targets(plan)
    assert "topic-0" not in targets(plan)
    stays = "topic-0 stays as it is: min.insync.replicas is 2, and of partition 0 only 1 is in sync"
    assert [warning for warning in plan["warnings"] if warning.startswith(stays)]


@pytest.fixture
def crowded(simulated: Simulated) -> Simulated:
    """Brokers 1 and 2 share a rack; two of four partitions have both of their replicas there."""
    simulated.cluster.cluster.brokers[2].rack = simulated.cluster.cluster.brokers[1].rack
    rows = ((1, 2), (1, 3), (2, 1), (3, 2))
    simulated.workspace.topic("orders", partitions=4, replicationFactor=2)
    simulated.workspace.topic("anywhere", partitions=4, replicationFactor=2, rackAware=False)
    for name in ("orders", "anywhere"):
        simulated.cluster.put_topic(name, *rows)
    return simulated


def test_rebalance_racks_moves_one_replica_of_each_partition_whose_replicas_share_a_rack(crowded: Simulated) -> None:
    (change,) = planned(crowded, "rebalance", "--racks")["changes"]
    assert (change["topic"], change["why"]) == ("orders", "racks")
    assert change["before"]["assignment"] == {"0": [1, 2], "2": [2, 1]}
    for partition, row in change["after"]["assignment"].items():
        assert 3 in row
        assert len({*row} & {*change["before"]["assignment"][partition]}) == 1


def test_rebalance_racks_leaves_what_cannot_be_better(crowded: Simulated) -> None:
    crowded.cluster.cluster.brokers[3].rack = crowded.cluster.cluster.brokers[1].rack
    assert planned(crowded, "rebalance", "--racks")["changes"] == []


def test_rebalance_racks_needs_the_rack_of_every_broker(crowded: Simulated) -> None:
    crowded.cluster.cluster.brokers[3].rack = None
    ended = crowded.workspace.run("rebalance", "--racks")
    assert (ended.status, ended.out) == (1, "")
    assert "--racks: broker 3 has no rack; give every broker a broker.rack" in ended.err


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"partitions": 2, "replicationFactor": 1}, id="gets partitions"),
        pytest.param({"partitions": 1, "replicationFactor": 2}, id="gets another factor"),
        pytest.param({"partitions": 1, "replicationFactor": 1, "assignment": {0: [1]}}, id="has replicas by hand"),
    ],
)
def test_a_topic_whose_file_asks_for_something_else_is_not_moved_for_balance(
    simulated: Simulated, spec: dict[str, object]
) -> None:
    simulated.workspace.topic("first", **spec)
    simulated.workspace.topic("second", partitions=1, replicationFactor=1)
    for name in ("first", "second"):
        simulated.cluster.put_topic(name, (1,))
    assert targets(planned(simulated, "rebalance")).keys() == {"second"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(("--brokers", "7"), "--brokers: broker 7, not live, gets no replicas", id="a broker that is not"),
        pytest.param(("--brokers", "x"), "--brokers: 'x' is no list of broker ids: write 7,8", id="no id"),
        pytest.param(("--brokers", "1,"), "--brokers: '1,' is no list of broker ids: write 7,8", id="an empty id"),
        pytest.param(("--bytes", "5GB"), "'5GB' is no number of bytes", id="no size"),
        pytest.param(("--leaders", "--bytes", "5GiB"), "--leaders moves no bytes: leave --bytes out", id="both"),
        pytest.param(("--racks", "--leaders"), "--racks moves only replicas that share a rack", id="racks and leaders"),
    ],
)
def test_rebalance_refuses_what_makes_no_sense(uneven: Simulated, words: Sequence[str], problem: str) -> None:
    ended = uneven.workspace.run("rebalance", *words)
    assert ended.status == 1
    assert problem in ended.err


@dataclass
class FakeMoveCluster:
    """What the commands ask of ``MoveCluster``."""

    cluster: Recorded
    sizes: Mapping[int, LogSizes | str] = field(default_factory=dict)
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    elections: list[list[TopicPartition]] = field(default_factory=list)

    def log_sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[int, LogSizes | str]:
        return {broker: self.sizes.get(broker, LogSizes()) for broker in brokers}

    def elect(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        self.elections.append(list(partitions))
        return {place: self.refused.get(place, "") for place in partitions}


@pytest.fixture
def moving(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> FakeMoveCluster:
    found = FakeMoveCluster(simulated.cluster)

    @contextmanager
    def opened(*_: object) -> Iterator[FakeMoveCluster]:
        yield found

    monkeypatch.setattr(planning, "open_cluster", opened)
    monkeypatch.setattr(electing, "open_cluster", opened)
    return found


@pytest.mark.parametrize(
    ("most", "moved"),
    [
        pytest.param("1GiB", {"topic-0", "topic-1"}, id="the largest that fit"),
        pytest.param("150B", {"topic-2"}, id="the largest within the limit"),
        pytest.param("9B", set(), id="none is so small"),
    ],
)
def test_rebalance_of_bytes_copies_no_more_than_was_allowed(
    uneven: Simulated, moving: FakeMoveCluster, most: str, moved: set[str]
) -> None:
    sizes = {"topic-0": 300, "topic-1": 290, "topic-2": 140, "topic-3": 130, "topic-4": 20, "topic-5": 20}
    moving.sizes = {1: LogSizes(bytes_of={TopicPartition(name, 0): size for name, size in sizes.items()})}
    found = targets(planned(uneven, "rebalance", "--bytes", most)).keys()
    assert found >= moved
    assert bool(found) == bool(moved)
    if most == "150B":
        assert sum(sizes[name] for name in found) <= 150


def test_rebalance_of_bytes_needs_the_sizes_of_every_broker(uneven: Simulated, moving: FakeMoveCluster) -> None:
    moving.sizes = {2: "broker 2 does not answer"}
    ended = uneven.workspace.run("rebalance", "--bytes", "1GiB")
    assert ended.status == 1
    assert "broker 2 does not answer; leave --bytes out to count replicas" in ended.err


def test_drain_moves_all_described_replicas_off_a_broker_and_names_what_stays(uneven: Simulated) -> None:
    ended = uneven.workspace.run("drain", "1", "--out", "plan.json")
    plan = json.loads((uneven.workspace.folder / "plan.json").read_text(encoding="utf-8"))
    assert targets(plan).keys() == {f"topic-{number}" for number in range(6)}
    assert all(1 not in row for its in targets(plan).values() for row in its.values())
    assert plan["warnings"][0].startswith("broker 1 (cluster.draining, ")
    assert plan["warnings"][0].endswith(": 1 topic with 1 partition there (other)")
    assert ended.err.splitlines()[-1] == (
        "This drains broker 1 once. So that it stays empty, and each run plans what is left, write in "
        "topics/environments/local.yaml, below `cluster:`:  draining: [1]"
    )


def test_a_move_without_room_on_the_disk_of_its_target_is_planned_and_skipped(
    uneven: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {f"topic-{number}": frozenset({0}) for number in range(6)}
    told = LogDirectories(held=held, log_bytes=dict.fromkeys(held, 100), free_bytes=109)
    monkeypatch.setattr(Recorded, "log_directories", lambda *_: dict.fromkeys((1, 2, 3), told))
    plan = planned(uneven, "drain", "1")
    reasons = {change["gate"]: change["reasons"] for change in plan["changes"]}
    assert reasons.keys() == {"skipped"}
    assert "bytes free, and 110 would be needed" in reasons["skipped"][0]


def test_drain_moves_undescribed_topics_where_the_policy_allows_it_and_holds_them(uneven: Simulated) -> None:
    uneven.workspace.policy["drainUnmanaged"] = "allow"
    plan = planned(uneven, "drain", "1")
    (other,) = [change for change in plan["changes"] if change["topic"] == "other"]
    assert other["gate"] == "held"
    assert plan["warnings"] == []


def test_drain_leaves_a_topic_alone_whose_file_asks_for_another_move(simulated: Simulated) -> None:
    simulated.workspace.topic("grown", partitions=1, replicationFactor=2)
    simulated.workspace.topic("plain", partitions=1, replicationFactor=1)
    for name in ("grown", "plain"):
        simulated.cluster.put_topic(name, (1,))
    plan = planned(simulated, "drain", "1")
    assert targets(plan).keys() == {"plain"}
    assert plan["warnings"][-1] == (
        "1 topic with 1 partition on broker 1 (grown) get other changes first: run `topicops plan`, apply that, then "
        "drain again"
    )


def test_drain_says_why_a_topic_stays(simulated: Simulated) -> None:
    simulated.workspace.topic("orders", partitions=1, replicationFactor=3)
    simulated.cluster.put_topic("orders", (1, 2, 3))
    plan = planned(simulated, "drain", "1")
    assert plan["changes"] == []
    (blocked,) = plan["blocked"]
    assert blocked["topic"] == "orders"
    assert "3" in blocked["reasons"][0]


def test_topics_that_the_environment_drains_too_wait_for_that(simulated: Simulated) -> None:
    simulated.workspace.cluster["draining"] = [2]
    simulated.workspace.topic("orders", partitions=2, replicationFactor=1)
    simulated.cluster.put_topic("orders", (1,), (2,))
    plan = planned(simulated, "drain", "1")
    assert plan["changes"] == []
    assert "1 topic with 1 partition on broker 1 (orders) get other changes first" in plan["warnings"][-1]


@pytest.mark.parametrize(
    ("draining", "broker", "problem"),
    [
        pytest.param([], "9", "the cluster has no broker 9; live are brokers 1, 2, 3", id="not of the cluster"),
        pytest.param([1], "1", "broker 1 is in cluster.draining (", id="drained by its file"),
    ],
)
def test_drain_refuses_a_broker_that_it_cannot_drain(
    uneven: Simulated, draining: list[int], broker: str, problem: str
) -> None:
    uneven.workspace.cluster["draining"] = draining
    ended = uneven.workspace.run("drain", broker)
    assert ended.status == 1
    assert problem in ended.err


@pytest.mark.parametrize("words", [("rebalance",), ("drain", "1")])
def test_apply_hands_the_approved_moves_of_the_plan_to_the_mover(
    uneven: Simulated, words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mover = FakeMover()
    monkeypatch.setattr(plugged, "MOVERS", (MovedBy(mover),))
    plan = planned(uneven, *words)
    ended = uneven.workspace.approve()
    assert mover.begun == [tuple(targets(plan))], ended


def test_drain_moves_replicas_off_a_broker_that_is_down(simulated: Simulated) -> None:
    configs = {"min.insync.replicas": "1"}
    simulated.workspace.topic("orders", partitions=1, replicationFactor=2, configs=configs)
    orders = simulated.cluster.put_topic("orders", (1, 2))
    states = {p: replace(state, leader=2, isr=(2,)) for p, state in (orders.states or {}).items()}
    simulated.cluster.put_as_is(replace(orders, states=states, overrides=configs))
    simulated.cluster.cluster.kill(1, session_s=0.0)
    simulated.cluster.cluster.world.pass_time(1.0)
    plan = planned(simulated, "drain", "1")
    assert targets(plan) == {"orders": {"0": [2, 3]}}
    assert [(change["gate"], change["reasons"]) for change in plan["changes"]] == [("run", [])]


def test_apply_refuses_a_move_of_a_command_once_the_file_asks_for_something_else(
    uneven: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    mover = FakeMover()
    monkeypatch.setattr(plugged, "MOVERS", (MovedBy(mover),))
    plan = planned(uneven, "drain", "1")
    uneven.workspace.topic("topic-0", partitions=1, replicationFactor=1, assignment={0: [1]})
    uneven.workspace.approve()
    assert mover.begun == [tuple(name for name in targets(plan) if name != "topic-0")]


@pytest.fixture
def led_by_others(simulated: Simulated) -> Simulated:
    """Of four partitions of ``orders``, two could be led by their preferred leader again, and one could not."""
    orders = simulated.cluster.put_topic("orders", (1, 2), (1, 2), (1, 2), (3, 2))
    isr = {0: (1, 2), 1: (2, 1), 2: (2,), 3: (3, 2)}
    states = {p: replace(state, leader=3 if p == 3 else 2, isr=isr[p]) for p, state in (orders.states or {}).items()}
    simulated.cluster.put_as_is(replace(orders, states=states))
    return simulated


def test_leaders_lists_partitions_that_another_broker_leads_than_the_preferred_one(led_by_others: Simulated) -> None:
    ended = led_by_others.workspace.run("leaders")
    assert (ended.status, ended.out) == (
        0,
        "3 of 4 partitions of local are not led by their preferred leaders:\n"
        "  orders-0: broker 2 leads, broker 1 is preferred (an election lets it lead)\n"
        "  orders-1: broker 2 leads, broker 1 is preferred (an election lets it lead)\n"
        "  orders-2: broker 2 leads, broker 1 is preferred (broker 1 is not in sync)\n",
    )


def test_leaders_says_that_all_lead(simulated: Simulated) -> None:
    simulated.cluster.put_topic("orders", (1, 2))
    assert simulated.workspace.run("leaders").out == "All 1 partition of local are led by their preferred leaders.\n"


def test_elect_lets_those_lead_that_can_and_writes_it_to_the_audit_log(
    led_by_others: Simulated, moving: FakeMoveCluster
) -> None:
    moving.refused = {TopicPartition("orders", 1): "ELECTION_NOT_NEEDED"}
    ended = led_by_others.workspace.run("leaders", "--elect", "--yes", "--format", "json")
    assert moving.elections == [[TopicPartition("orders", 0), TopicPartition("orders", 1)]]
    assert ended.status == 6
    found = {each["partition"]: (each["elected"], each["why_not"]) for each in json.loads(ended.out)["unled"]}
    assert found == {0: (True, ""), 1: (False, "ELECTION_NOT_NEEDED"), 2: (False, "broker 1 is not in sync")}
    lines = json.loads(led_by_others.workspace.run("audit", "topic", "orders", "--format", "json").out)["lines"]
    assert [(line["request"]["what"], line["request"]["partitions"]) for line in lines] == [
        ("elect", [0]),
        ("elect", [1]),
    ]


def test_an_election_of_which_the_brokers_say_nothing_is_no_success(
    led_by_others: Simulated, moving: FakeMoveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "elect", lambda _: {TopicPartition("orders", 0): ""})
    ended = led_by_others.workspace.run("leaders", "--elect", "--yes", "--format", "json")
    found = {each["partition"]: (each["elected"], each["why_not"]) for each in json.loads(ended.out)["unled"]}
    assert (ended.status, found[0], found[1]) == (
        6,
        (True, ""),
        (False, "no clear answer: the brokers did not name it"),
    )


def test_elect_asks_for_fifty_partitions_at_once(simulated: Simulated, moving: FakeMoveCluster) -> None:
    orders = simulated.cluster.put_topic("orders", *[(1, 2)] * 70)
    states = {p: replace(state, leader=2) for p, state in (orders.states or {}).items()}
    simulated.cluster.put_as_is(replace(orders, states=states))
    assert simulated.workspace.run("leaders", "--elect", "--yes").status == 0
    assert [len(part) for part in moving.elections] == [50, 20]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(("--elect",), "there is no terminal to ask at, so nothing was sent", id="nobody to ask"),
        pytest.param(("--yes",), "--yes answers the question of --elect: give both", id="no question"),
    ],
)
def test_leaders_sends_nothing_that_nobody_asked_for(
    led_by_others: Simulated, moving: FakeMoveCluster, words: Sequence[str], problem: str
) -> None:
    ended = led_by_others.workspace.run("leaders", *words)
    assert (ended.status, moving.elections) == (1, [])
    assert problem in ended.err


@pytest.mark.parametrize(("answer", "status", "elections"), [("y", 0, 1), ("no", 1, 0), ("", 1, 0)])
def test_elect_asks_on_a_terminal_before_it_sends_anything(
    led_by_others: Simulated,
    moving: FakeMoveCluster,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    status: int,
    elections: int,
) -> None:
    questions: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(
        "topicops.features.moves.planned.commands.asked", lambda question: questions.append(question) or answer
    )
    ended = led_by_others.workspace.run("leaders", "--elect")
    assert questions == ["Let 2 preferred leaders lead? [y/N] "]
    assert (ended.status, len(moving.elections)) == (status, elections)


def test_rebalance_takes_accepted_moves_for_granted(uneven: Simulated) -> None:
    identity = uneven.cluster.snapshot().topics["topic-0"].identity
    accepted = TopicMove(
        topic="topic-0",
        identity=identity,
        why=MoveReason.BALANCE,
        digest="digest",
        run="cli/r1",
        accepted_at=datetime(2026, 1, 31, tzinfo=UTC),
        partitions={0: PartitionMove(origin=(1,), target=(2,))},
    )
    MOVES.of(uneven.opened("0").home, "local").write(MovesRecord(cluster_id=CLUSTER_ID, topics=(accepted,)))

    found = targets(planned(uneven, "rebalance"))

    assert "topic-0" not in found
    assert Counter(row[0] for its in found.values() for row in its.values()) == {2: 1, 3: 2}


def test_the_bytes_of_a_partition_are_those_of_its_largest_log(uneven: Simulated, moving: FakeMoveCluster) -> None:
    sizes = {TopicPartition(f"topic-{number}", 0): 140 for number in range(6)}
    large = TopicPartition("topic-5", 0)
    lagging = LogSizes(bytes_of={large: 140})
    moving.sizes = {1: LogSizes(bytes_of={**sizes, large: 300}), 2: lagging}
    assert targets(planned(uneven, "rebalance", "--bytes", "150B")).keys() == {"topic-4"}
