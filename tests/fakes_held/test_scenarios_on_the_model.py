"""What the model shows in the scripts that ``tests/versions`` holds to real brokers, without any broker."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isfunction, signature

import pytest

from fixtures import controller_scenarios as scripts
from fixtures.controller_scenarios import (
    SCRIPTS,
    UNKNOWN,
    WITHOUT_DELETION,
    EndState,
    PartitionEnd,
    Script,
    differences,
)
from fixtures.scenario_clusters import ModelCluster, SimulatorCluster
from topicops.model.release import Release

OLD, MIDDLE, NEW = Release(1, 0), Release(2, 3), Release(3, 9)
RELEASES = [Release(1, 0), Release(1, 1), *(Release(2, minor) for minor in range(9)), Release(3, 0), Release(3, 9)]
GONE = EndState()


def played(script: Script, release: Release, *, controller: int = 1) -> ModelCluster:
    cluster = ModelCluster(release, controller=controller)
    script(cluster)
    return cluster


def state_after(step: str, script: Script, release: Release) -> Mapping[str, EndState]:
    """Return the topics after the first step of that name."""
    return next(moment.topics for moment in played(script, release).moments if moment.step == step)


def partition(*replicas: int, leader: int, isr: tuple[int, ...], epoch: int) -> PartitionEnd:
    return PartitionEnd(replicas=replicas, leader=leader, isr=frozenset(isr), leader_epoch=epoch)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_every_script_ends_with_each_topic_led_and_in_sync_or_marked_for_deletion_or_gone(script: Script) -> None:
    ends = {
        (release, topic): end
        for release in RELEASES
        for topic, end in played(script, release).moments[-1].topics.items()
    }
    assert [
        where for where, end in ends.items() if not (end.is_marked or all(map(is_well, end.partitions.values())))
    ] == []


def is_well(partition: PartitionEnd) -> bool:
    return partition.leader is not None and partition.leader > 0 and partition.isr == {*partition.replicas}


@pytest.mark.parametrize("script", [*SCRIPTS, *WITHOUT_DELETION], ids=lambda script: script.__name__)
def test_the_simulated_cluster_shows_what_the_model_shows(script: Script) -> None:
    """However long each message is on its way."""
    found = {}
    for release in RELEASES:
        model = ModelCluster(release, deletes_topics=script in SCRIPTS)
        script(model)
        for seed in range(5):
            simulated = SimulatorCluster(release, deletes_topics=script in SCRIPTS, seed=seed)
            script(simulated)
            found[release, seed] = differences(model.moments, simulated.moments)
    assert {where: differing for where, differing in found.items() if differing} == {}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_takes_the_same_steps_whichever_broker_is_the_controller(script: Script) -> None:
    first, second = (played(script, NEW, controller=controller).moments for controller in (1, 3))
    assert [(m.step.split()[0], m.is_refused) for m in first] == [(m.step.split()[0], m.is_refused) for m in second]


def test_a_topic_made_while_a_broker_is_down_is_led_by_the_others_and_has_no_state_where_there_are_none() -> None:
    while_down = state_after("create made.while.down.thin", scripts.a_topic_is_made_while_a_broker_is_down, NEW)

    assert while_down["made.while.down"].partitions == {
        0: partition(3, 2, leader=2, isr=(2,), epoch=0),
        1: partition(1, 3, leader=1, isr=(1,), epoch=0),
    }
    assert while_down["made.while.down.thin"].partitions == {
        0: PartitionEnd(replicas=(3,)),
        1: partition(2, leader=2, isr=(2,), epoch=0),
    }


def test_the_only_replica_stays_in_the_isr_while_it_is_dead() -> None:
    states = state_after("stop 3", scripts.the_only_replica_dies_and_comes_back, NEW)
    assert states["only.dies"].partitions == {0: partition(3, leader=-1, isr=(3,), epoch=1)}


@pytest.mark.parametrize(
    ("release", "isr"),
    [pytest.param(OLD, (), id="1.0: nobody is left"), pytest.param(NEW, (3,), id="since 1.1: the last one stays")],
)
def test_the_isr_after_all_replicas_died_where_unclean_elections_are_allowed(
    release: Release, isr: tuple[int, ...]
) -> None:
    states = state_after("stop 3", scripts.all_replicas_die_and_the_first_to_die_comes_back_first, release)

    assert states["clean"].partitions == {0: partition(2, 3, leader=-1, isr=(3,), epoch=2)}
    assert states["unclean"].partitions == {0: partition(2, 3, leader=-1, isr=isr, epoch=2)}


def test_the_replica_that_died_last_leads_again_and_with_unclean_elections_the_one_that_came_back_first() -> None:
    end = state_after("start 2", scripts.all_replicas_die_and_the_first_to_die_comes_back_first, NEW)

    assert end["clean"].partitions == {0: partition(2, 3, leader=-1, isr=(3,), epoch=2)}
    assert end["unclean"].partitions == {0: partition(2, 3, leader=2, isr=(2,), epoch=3)}


@pytest.mark.parametrize(
    ("release", "epoch"),
    [pytest.param(Release(2, 2), 0, id="leaders before 2.3"), pytest.param(MIDDLE, 1, id="the controller since 2.3")],
)
def test_the_dead_broker_leaves_isrs_also_where_no_controller_saw_it_die(release: Release, epoch: int) -> None:
    """The leader does that without a new leader epoch."""
    states = state_after("stop 1", scripts.the_controllers_broker_dies_and_comes_back, release)
    assert states["controller.dies"].partitions[1] == partition(3, 1, leader=3, isr=(3,), epoch=epoch)


@pytest.mark.parametrize("release", [OLD, NEW], ids=str)
def test_a_broker_that_is_shut_down_gives_up_what_it_leads_but_for_what_it_has_alone(release: Release) -> None:
    states = state_after("shut down 3", scripts.a_broker_is_shut_down_and_comes_back, release)

    assert states["shut.down"].partitions == {
        0: partition(3, 2, 1, leader=2, isr=(1, 2), epoch=1),
        1: partition(2, 3, 1, leader=2, isr=(1, 2), epoch=1),
    }
    assert states["shut.down.thin"].partitions == {0: partition(3, leader=-1, isr=(3,), epoch=1)}


@pytest.mark.parametrize(
    ("release", "epoch"),
    [
        pytest.param(OLD, 0, id="left alone in 1.0"),
        pytest.param(Release(1, 1), 1, id="elected again since 1.1"),
        pytest.param(Release(2, 1), 1, id="elected again up to 2.1"),
        pytest.param(Release(2, 2), 0, id="left alone since 2.2"),
    ],
)
def test_a_preferred_election_where_the_preferred_replica_leads(release: Release, epoch: int) -> None:
    script = scripts.a_leader_is_elected_where_the_preferred_one_leads
    states = state_after("elect elected.again", script, release)
    assert states["elected.again"].partitions == {0: partition(1, 2, leader=1, isr=(1, 2), epoch=epoch)}


@pytest.mark.parametrize("release", [OLD, NEW], ids=str)
def test_a_topic_that_is_removed_by_hand_and_made_again_waits_for_another_controller(release: Release) -> None:
    moments = played(scripts.a_topic_is_removed_by_hand_and_made_again, release).moments

    assert moments[2].topics["removed"].partitions == {0: PartitionEnd(replicas=(2, 3))}
    assert moments[3].topics["removed"].partitions == {0: partition(2, 3, leader=2, isr=(2, 3), epoch=0)}


@pytest.mark.parametrize("release", [OLD, NEW], ids=str)
def test_a_deletion_waits_for_the_broker_that_is_down_over_a_failover(release: Release) -> None:
    script = scripts.the_controller_fails_over_while_a_deletion_waits
    waiting = state_after("fail over", script, release)["failed.over.deletion"]

    assert waiting.is_marked
    assert {p.leader for p in waiting.partitions.values()} == {-1}
    assert state_after("start 3", script, release) == {"failed.over.deletion": GONE}


def test_a_topic_that_is_made_again_is_another_one() -> None:
    moments = played(scripts.a_topic_is_deleted_and_made_again, OLD).moments
    assert [moment.topics["made.again"].life for moment in moments] == [1, 0, 2]


@pytest.mark.parametrize(
    ("release", "partitions"),
    [pytest.param(Release(1, 1), {0, 1}, id="before 2.0"), pytest.param(Release(2, 0), {0}, id="since 2.0")],
)
def test_rows_that_are_added_while_a_deletion_waits_are_removed_again(release: Release, partitions: set[int]) -> None:
    script = scripts.a_topic_is_expanded_by_hand_while_its_deletion_waits
    states = state_after("write deleted.and.expanded", script, release)
    assert states["deleted.and.expanded"].partitions.keys() == partitions


@pytest.mark.parametrize(
    ("release", "epochs"),
    [pytest.param(MIDDLE, [0, 1], id="refused before 2.4"), pytest.param(Release(2, 4), [1, 1], id="done since 2.4")],
)
def test_a_move_to_where_a_partition_is(release: Release, epochs: list[int]) -> None:
    end = played(scripts.a_topic_is_moved_to_where_it_is, release).moments[-1].topics["moved.nowhere"]

    assert [p.leader_epoch for p in end.partitions.values()] == epochs
    assert end.moves == {}


@pytest.mark.parametrize("release", [OLD, MIDDLE, NEW], ids=str)
def test_a_move_raises_the_leader_epoch_when_it_begins_and_when_it_ends_but_not_while_it_waits(
    release: Release,
) -> None:
    moments = played(scripts.a_move_waits_for_its_slowest_broker, release).moments
    states = {moment.step: moment.topics["moved.slowly"].partitions[0] for moment in moments}

    assert states["move moved.slowly"].isr == {1, 2}
    assert states["move moved.slowly"].leader_epoch == 1
    assert states["let go 3"] == partition(3, 2, leader=3, isr=(2, 3), epoch=3)


@pytest.mark.parametrize("release", [OLD, MIDDLE, NEW], ids=str)
@pytest.mark.parametrize(
    ("script", "topic"),
    [
        pytest.param(scripts.a_topic_is_deleted_while_it_moves_to_a_broker_that_is_down, "moves.to.down", id="down"),
        pytest.param(scripts.a_topic_is_deleted_while_it_moves_to_a_slow_broker, "moves.to.slow", id="slow"),
    ],
)
def test_a_topic_that_is_deleted_while_it_moves_goes_and_leaves_its_move_behind(
    script: Script, topic: str, release: Release
) -> None:
    assert played(script, release).moments[-1].topics == {topic: EndState(moves={0: (2, 3)})}


def test_a_topic_that_waits_for_its_deletion_does_not_move() -> None:
    script = scripts.a_topic_does_not_move_while_its_deletion_waits
    asked = state_after("move deleted.and.moved", script, NEW)["deleted.and.moved"]
    assert (asked.moves, asked.partitions[0].replicas) == ({}, (1, 3))


@pytest.mark.parametrize("release", [OLD, NEW], ids=str)
def test_brokers_that_do_not_exist_keep_a_deletion_waiting(release: Release) -> None:
    some = played(scripts.a_topic_znode_names_some_brokers_that_do_not_exist, release).moments
    none = played(scripts.a_topic_znode_names_only_brokers_that_do_not_exist, release).moments[-1]

    assert some[0].topics["some.unknown"].partitions == {
        0: partition(UNKNOWN, 1, 2, leader=1, isr=(1, 2), epoch=0),
        1: partition(2, UNKNOWN, leader=2, isr=(2,), epoch=0),
    }
    assert some[1].topics["some.unknown"].is_marked
    assert none.topics["all.unknown"].is_marked
    assert {p.leader for p in none.topics["all.unknown"].partitions.values()} == {None}


@pytest.mark.parametrize(
    ("release", "is_marked"),
    [pytest.param(Release(1, 1), True, id="before 2.0: for good"), pytest.param(Release(2, 0), False, id="since 2.0")],
)
def test_a_topic_that_never_had_a_leader_waits_for_its_deletion(release: Release, is_marked: bool) -> None:
    end = played(scripts.a_topic_that_never_had_a_leader_is_deleted, release).moments[-1].topics["never.led"]
    assert (end.is_marked, bool(end.life)) == (is_marked, is_marked)


def test_a_cluster_that_deletes_nothing_removes_the_marker() -> None:
    cluster = ModelCluster(NEW, deletes_topics=False)
    scripts.a_deletion_is_asked_for_that_the_brokers_do_not_allow(cluster)

    before, after = (moment.topics["not.deleted"] for moment in cluster.moments)
    assert (after, after.is_marked, after.life) == (before, False, 1)


def test_every_script_is_in_a_list() -> None:
    functions = [value for value in vars(scripts).values() if isfunction(value)]
    written = {function for function in functions if [*signature(function).parameters] == ["cluster"]}
    assert written == {*SCRIPTS, *scripts.WITHOUT_DELETION}
