"""Events that no script plays on real brokers, and every pair of states as each release answers it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from fakes.controller.context import (
    ControllerSettings,
    PartitionStatus,
    ReplicaStatus,
    partition_may_become,
    replica_may_become,
)
from fakes.controller.controller import Controller
from fakes.controller.elections import Election
from fakes.controller.messages import (
    BrokersChanged,
    DeletionsMarked,
    ElectionsAsked,
    ElectionsWritten,
    IsrAltered,
    LogsFailed,
    MovesAsked,
    ReplicasDeleted,
    ShutdownAsked,
    StopReplica,
    UncleanElectionAllowed,
)
from fakes.controller.played_cluster import PlayedCluster
from fakes.controller.znodes import ReplicaAssignment, TopicPartition, TopicZnode, Znodes
from topicops.model.cluster.health import UNCLEAN_ELECTION
from topicops.model.cluster.snapshot import PartitionState
from topicops.model.release import NO_ZOOKEEPER, OLDEST, Release

TP = TopicPartition("t", 0)
NEW = Release(3, 9)
EPOCH = 7
"""Of the controller that wrote the states that a test begins with; the next one has the epoch after it."""


def znodes(*, leader: int = 1, isr: tuple[int, ...] = (1, 2), live: tuple[int, ...] = (1, 2, 3)) -> Znodes:
    """Return the topic ``t`` of one partition on brokers 1 and 2."""
    state = PartitionState(leader=leader, isr=isr, leader_epoch=0, controller_epoch=EPOCH, version=0)
    return Znodes(
        brokers=dict.fromkeys(live, 1),
        topics={"t": TopicZnode({0: ReplicaAssignment((1, 2))})},
        states={TP: state},
        controller_epoch=EPOCH,
    )


def controller_of(found: Znodes, release: Release = NEW) -> Controller:
    return Controller(found, broker=3, settings=ControllerSettings(release=release))


def told_to_delete(controller: Controller) -> list[int]:
    """Return brokers that it has told to delete their logs since it was asked last."""
    return [r.broker for r in controller.take_requests() if isinstance(r, StopReplica) and r.delete]


def delete(controller: Controller) -> None:
    controller.context.znodes.markers["t"] = None
    controller.handle(DeletionsMarked())


# --- elections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("election", "leader", "isr", "live", "elected"),
    [
        pytest.param(Election.PREFERRED, 2, (1, 2), (1, 2, 3), 1, id="preferred, another one leads"),
        pytest.param(Election.PREFERRED, 1, (1, 2), (1, 2, 3), None, id="preferred, it leads"),
        pytest.param(Election.UNCLEAN, -1, (1,), (2, 3), 2, id="unclean, nobody leads"),
        pytest.param(Election.UNCLEAN, 2, (1, 2), (1, 2, 3), None, id="unclean, another one than the first leads"),
    ],
)
def test_an_election_that_is_asked_for_leaves_alone_what_is_led_as_it_wants(
    election: Election, leader: int, isr: tuple[int, ...], live: tuple[int, ...], elected: int | None
) -> None:
    cluster = PlayedCluster(znodes(leader=leader, isr=isr, live=live))
    before = cluster.znodes.states[TP]

    cluster.elect(TP, election=election)

    after = cluster.znodes.states[TP]
    assert (after == before) if elected is None else (after.leader == elected)


@pytest.mark.parametrize("release", [Release(1, 0), Release(2, 2), NEW], ids=str)
def test_a_topic_whose_deletion_waits_and_a_partition_that_never_had_a_leader_elect_none(release: Release) -> None:
    never_led = TopicPartition("t", 1)
    found = znodes(leader=2)
    found.topics["t"].assignment[1] = ReplicaAssignment((4,))
    found.markers["t"] = None
    controller = controller_of(found, release)
    before = dict(found.states)

    controller.handle(ElectionsAsked((TP, never_led)))

    assert found.states == before


def test_a_broker_that_wants_to_stop_gives_up_what_others_can_lead_while_it_is_registered() -> None:
    led, followed, alone, late = (TopicPartition("t", p) for p in range(4))
    found = znodes()
    found.topics["t"].assignment |= {
        1: ReplicaAssignment((2, 1)),
        2: ReplicaAssignment((1,)),
        3: ReplicaAssignment((1, 2)),
    }
    found.states |= {
        followed: replace(found.states[led], leader=2),
        alone: replace(found.states[led], isr=(1,)),
        late: replace(found.states[led], isr=(1,)),
    }
    controller = controller_of(found)
    controller.take_requests()

    controller.handle(ShutdownAsked(1))

    ends = {tp.partition: (state.leader, state.isr, state.leader_epoch) for tp, state in found.states.items()}
    assert ends == {0: (2, (2,), 1), 1: (2, (2,), 1), 2: (1, (1,), 0), 3: (1, (1,), 0)}
    assert StopReplica(1, followed, delete=False) in controller.take_requests()

    controller.handle(ElectionsAsked((led,), Election.PREFERRED))
    assert found.states[led].leader == 2
    controller.handle(ElectionsAsked((late,), Election.UNCLEAN))
    assert (found.states[late].leader, found.states[late].isr) == (2, (2,))


def test_only_the_znodes_own_elections_empty_it() -> None:
    controller = controller_of(found := znodes(leader=2))
    found.elections[TopicPartition("unknown", 0)] = None

    controller.handle(ElectionsAsked((TP,)))
    assert (found.states[TP].leader, len(found.elections)) == (1, 1)

    controller.handle(ElectionsWritten())
    assert found.elections == {}


def test_an_unclean_election_that_a_topic_allows_from_now_on_is_held_at_once() -> None:
    found = znodes(leader=-1, isr=(1,), live=(2, 3))
    other = TopicPartition("other", 0)
    found.topics["other"], found.states[other] = TopicZnode({0: ReplicaAssignment((1, 2))}), found.states[TP]
    controller = controller_of(found)
    found.configs = {"t": {UNCLEAN_ELECTION: "true"}, "other": {UNCLEAN_ELECTION: "true"}}

    controller.handle(UncleanElectionAllowed("t"))

    assert (found.states[TP].leader, found.states[TP].isr) == (2, (2,))
    assert found.states[other].leader == -1


def test_a_topic_that_is_being_deleted_elects_nobody_uncleanly() -> None:
    found = znodes(leader=-1, isr=(1,), live=(2, 3))
    controller = controller_of(found)
    delete(controller)
    found.configs = {"t": {UNCLEAN_ELECTION: "true"}}

    controller.handle(UncleanElectionAllowed("t"))

    assert found.states[TP].leader == -1


# --- ISRs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "epoch"),
    [pytest.param(Release(2, 6), EPOCH, id="leaders write"), pytest.param(Release(2, 7), EPOCH + 1, id="it writes")],
)
def test_who_writes_an_isr_change_writes_its_own_controller_epoch(release: Release, epoch: int) -> None:
    controller = controller_of(found := znodes(isr=(1,)), release)

    controller.handle(IsrAltered(TP, (1, 2)))

    assert found.states[TP] == PartitionState(leader=1, isr=(1, 2), leader_epoch=0, controller_epoch=epoch, version=1)


# --- deletions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "waits"),
    [pytest.param(Release(2, 3), True, id="before 2.4"), pytest.param(Release(2, 4), False, id="since 2.4")],
)
def test_a_new_controller_lets_a_deletion_wait_for_a_move_of_the_admin_znode(release: Release, waits: bool) -> None:
    found = znodes()
    found.markers["t"], found.moves[TP] = None, (2, 3)

    controller = controller_of(found, release)

    assert told_to_delete(controller) == ([] if waits else [1, 2])
    assert found.moves == {}


def test_a_deletion_begins_when_a_broker_comes_back_that_its_move_waited_for() -> None:
    """The move is resumed first, and given up for the deletion, which then waits for nothing."""
    found = znodes()
    controller = controller_of(found)
    controller.handle(MovesAsked({TP: (2, 3)}))
    del found.brokers[3]
    controller.handle(BrokersChanged())
    delete(controller)
    found.brokers[3] = 2
    controller.handle(BrokersChanged())

    assert controller.context.ineligible == {}
    for broker in (1, 2, 3):
        controller.handle(ReplicasDeleted(broker, (TP,)))
    assert found.topics == {}


def test_a_replica_that_its_broker_could_not_delete_is_tried_again_when_a_broker_of_the_topic_is_back() -> None:
    controller = controller_of(found := znodes())
    delete(controller)
    assert told_to_delete(controller) == [1, 2]

    controller.handle(ReplicasDeleted(1, (TP,)))
    controller.handle(ReplicasDeleted(2, (), failed=(TP,)))
    assert (told_to_delete(controller), [*found.markers]) == ([], ["t"])

    found.brokers[1] = 2
    controller.handle(BrokersChanged())
    assert told_to_delete(controller) == [2]
    controller.handle(ReplicasDeleted(2, (TP,)))
    assert (found.topics, found.markers) == ({}, {})


def test_a_failed_disk_takes_the_replica_out_of_the_isr_and_lets_a_deletion_wait_until_the_broker_is_back() -> None:
    controller = controller_of(found := znodes())

    controller.handle(LogsFailed(1, (TP,)))
    assert (found.states[TP].leader, found.states[TP].isr) == (2, (2,))

    controller.take_requests()
    delete(controller)
    assert told_to_delete(controller) == [2]
    controller.handle(ReplicasDeleted(2, (TP,)))
    assert [*found.markers] == ["t"]

    found.brokers[1] = 2
    controller.handle(BrokersChanged())
    assert told_to_delete(controller) == [1]
    controller.handle(ReplicasDeleted(1, (TP,)))
    assert (found.topics, found.markers) == ({}, {})


# ---- What the played cluster does beside what the scenarios and Kafka's own tests hold it to ----


@pytest.mark.parametrize(
    ("release", "leader"),
    [
        pytest.param(Release(2, 0), -1, id="2.0 waits for the next election"),
        pytest.param(Release(2, 1), 3, id="2.1 elects at once"),
    ],
)
def test_a_topic_that_allows_unclean_elections_is_led_by_a_replica_outside_of_its_isr(
    release: Release, leader: int
) -> None:
    cluster = PlayedCluster(
        Znodes(brokers=dict.fromkeys((1, 2, 3), 1), controller=1), settings=ControllerSettings(release=release)
    )
    cluster.create("orders", {0: (2, 3)}, {})
    cluster.stop([3])
    cluster.slow.add(3)
    cluster.start(3, epoch=2)
    cluster.stop([2])

    cluster.configure("orders", {UNCLEAN_ELECTION: "true"})

    assert cluster.znodes.states[TopicPartition("orders", 0)].leader == leader


# ---- Every pair of states, as the classes of every release with ZooKeeper answer it ----


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
