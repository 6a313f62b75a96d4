"""A plan played on a snapshot, with and without brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import healthy_states, live_topic, partition_state, snapshot
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from topicops.features.rehearse.losses import PartitionName, without_each_rack
from topicops.features.rehearse.played import Effect, Rehearsal, after_plan, rehearse
from topicops.features.rehearse.text import racks_text, rehearsal_text
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.errors import UsageError
from topicops.model.plans.changes import Change
from topicops.model.release import Release, Releases

RACKS = {1: "r1", 2: "r2", 3: "r3"}


def topic(name: str, *rows: tuple[int, ...], **overrides: str) -> LiveTopic:
    """Return a healthy topic; ``_`` stands for ``.`` in the names of configs."""
    assignment = dict(enumerate(rows))
    configs = {key.replace("_", "."): value for key, value in overrides.items()}
    return live_topic(name, assignment=assignment, states=healthy_states(assignment), overrides=configs)


ORDERS = topic("orders", (1, 2), (2, 3))
OLD = topic("old", (2, 3))
SINGLE = topic("single", (2,))
STRICT = topic("strict", (1, 2), min_insync_replicas="2")
LIVE = snapshot(ORDERS, OLD, SINGLE, STRICT, racks=RACKS)


def effects(found: Rehearsal) -> dict[str, str]:
    return {change.topic: change.effect.value for change in found.changes}


def leaders(found: Rehearsal, name: str) -> list[int | None]:
    [one] = [one for one in found.topics if one.topic == name]
    return [partition.leader for partition in one.partitions]


def test_without_a_loss_every_change_is_done_and_topics_lead_as_planned() -> None:
    changes = [create_topic("new", (3, 1)), expand_topic(ORDERS, (3, 1)), delete_topic(OLD)]

    found = rehearse(LIVE, changes, environment="local")

    assert effects(found) == {"new": "done", "orders": "done", "old": "done"}
    assert leaders(found, "new") == [3]
    assert leaders(found, "orders") == [1, 2, 3]
    assert leaders(found, "old") == []
    assert (found.offline, found.below_min_isr, found.partitions) == ((), (), 6)


def test_a_plan_whose_replicas_the_brokers_place_cannot_be_rehearsed() -> None:
    with pytest.raises(UsageError, match="the brokers choose where the replicas of new go"):
        rehearse(LIVE, [replace(create_topic("new", (3, 1)), assignment={})], environment="local")


def test_brokers_that_are_lost_first_hold_up_deletes_and_refuse_expansions() -> None:
    changes = [create_topic("new", (2, 1)), expand_topic(ORDERS, (2, 1)), delete_topic(OLD)]

    found = rehearse(LIVE, changes, environment="local", lost=[2], step=0)

    assert effects(found) == {"new": "refused", "orders": "refused", "old": "hangs"}
    assert [change.reason for change in found.changes] == [
        "it has new replicas on broker 2; apply refuses it (TOP427)",
        "it has new replicas on broker 2; apply refuses it (TOP427)",
        "it waits for broker 2; apply does not begin it (TOP421)",
    ]


def test_what_apply_does_not_begin_leaves_its_topic_as_it_is() -> None:
    changes = [create_topic("new", (2, 1)), expand_topic(ORDERS, (2, 1)), delete_topic(OLD)]

    found = rehearse(LIVE, changes, environment="local", lost=[2], step=0)

    assert {topic.topic: leaders(found, topic.topic) for topic in found.topics} == {
        "new": [],
        "old": [3],
        "orders": [1, 3],
    }
    unplanned = rehearse(LIVE, [], environment="local", lost=[2])
    assert (found.load, found.partitions) == (unplanned.load, unplanned.partitions)


@pytest.mark.parametrize(
    ("change", "effect", "reason"),
    [
        pytest.param(
            create_topic("old", (1, 2)),
            "refused",
            "the topic changed since the plan (TOP501): topic: planned absent, live present; "
            "replicas of partition 0: planned [1, 2], live [2, 3]; plan again",
            id="another topic of the name",
        ),
        pytest.param(create_topic("old", (2, 3)), "done", "already so", id="created"),
        pytest.param(expand_topic(topic("old"), (2, 3)), "done", "already so", id="expanded"),
        pytest.param(
            expand_topic(topic("absent", (1,)), (2,)),
            "refused",
            "the topic changed since the plan (TOP501): topic: planned present, live absent; plan again",
            id="nothing to expand",
        ),
        pytest.param(
            configure_topic(topic("absent"), {"retention.ms": "1"}),
            "refused",
            "the topic changed since the plan (TOP501): topic: planned present, live absent; plan again",
            id="nothing to configure",
        ),
        pytest.param(delete_topic(topic("absent")), "done", "already so", id="deleted"),
    ],
)
def test_a_change_whose_topic_is_not_as_planned_any_more_is_not_played(
    change: Change, effect: str, reason: str
) -> None:
    found = rehearse(LIVE, [change], environment="local")

    assert [(one.effect.value, one.reason) for one in found.changes] == [(effect, reason)]
    after = after_plan(LIVE, [change])
    assert {name: (one.assignment, one.overrides) for name, one in after.topics.items()} == {
        name: (one.assignment, one.overrides) for name, one in LIVE.topics.items()
    }


def test_a_topic_without_an_id_is_known_by_its_czxid() -> None:
    plain = replace(OLD, topic_id=None, czxid=7)
    found = rehearse(snapshot(plain, racks=RACKS), [expand_topic(plain, (3, 1))], environment="local")
    assert effects(found) == {"old": "done"}


def test_a_partition_that_lost_its_followers_goes_offline_with_its_leader_although_its_topic_is_expanded() -> None:
    late = live_topic("late", assignment={0: (2, 3, 1)}, states={0: partition_state((2,))})
    found = rehearse(snapshot(late, racks=RACKS), [expand_topic(late, (3, 1, 2))], environment="local", lost=[2])
    assert (leaders(found, "late"), found.offline) == ([None, 3], (PartitionName("late", 0),))


def test_followers_stay_out_of_the_isr_when_another_controller_is_elected() -> None:
    late = live_topic(
        "late", assignment={0: (3, 1)}, states={0: partition_state((3,))}, overrides={"min.insync.replicas": "2"}
    )
    live = snapshot(late, racks=RACKS, controller_id=2)
    found = rehearse(live, [configure_topic(late, {"retention.ms": "1"})], environment="local", lost=[2])
    assert found.below_min_isr == (PartitionName("late", 0),)
    assert found.topics[0].partitions[0].isr == (3,)


@pytest.mark.parametrize(
    "release", [pytest.param(Release(2, 0), id="the next one"), pytest.param(Release(2, 1), id="at once")]
)
def test_the_isr_is_that_of_after_an_unclean_election(release: Release) -> None:
    thin = live_topic("thin", assignment={0: (2, 3)}, states={0: partition_state((2,))})
    change = configure_topic(thin, {"unclean.leader.election.enable": "true"})
    live = snapshot(thin, racks=RACKS, releases=Releases(release, release))
    found = rehearse(live, [change], environment="local", lost=[2], step=0)
    [partition] = found.topics[0].partitions
    assert (partition.leader, partition.isr) == (3, (3,))


def test_an_expansion_is_skewed_by_its_own_partitions_alone() -> None:
    changes = [expand_topic(ORDERS, (2, 1), (3, 1)), expand_topic(STRICT, (1, 3))]
    found = rehearse(LIVE, changes, environment="local", lost=[2])
    assert [(change.topic, change.effect.value, change.reason) for change in found.changes] == [
        ("orders", "skewed", "the first replica does not lead 1 new partition"),
        ("strict", "done", ""),
    ]


def test_brokers_that_are_lost_after_a_delete_do_not_hold_it_up() -> None:
    found = rehearse(LIVE, [delete_topic(OLD)], environment="local", lost=[2])
    assert effects(found) == {"old": "done"}
    assert found.topics[0].is_deleting is False


def test_a_loss_names_what_is_offline_and_what_is_below_its_minimum_in_the_whole_cluster() -> None:
    found = rehearse(LIVE, [], environment="local", lost=[2])
    assert found.offline == (PartitionName("single", 0),)
    assert found.below_min_isr == (PartitionName("strict", 0),)
    assert {row.broker: (row.leaders_before, row.leaders) for row in found.load} == {1: (2, 2), 2: (3, 0), 3: (0, 2)}


def test_a_config_of_the_plan_counts_for_what_follows() -> None:
    found = rehearse(LIVE, [configure_topic(ORDERS, {"min.insync.replicas": "2"})], environment="local", lost=[1])
    assert found.below_min_isr == (PartitionName("orders", 0), PartitionName("strict", 0))


@pytest.mark.parametrize(
    ("allowed", "leader"), [pytest.param("true", 3, id="unclean"), pytest.param("false", None, id="clean")]
)
def test_a_partition_is_led_by_a_replica_outside_of_its_isr_only_where_that_is_allowed(
    allowed: str, leader: int | None
) -> None:
    thin = live_topic(
        "thin",
        assignment={0: (2, 3)},
        states={0: partition_state((2,))},
        overrides={"unclean.leader.election.enable": allowed},
    )
    found = rehearse(snapshot(thin, racks=RACKS), [], environment="local", lost=[2])
    assert [row.broker for row in found.load if row.leaders] == ([leader] if leader else [])
    assert found.offline == (() if leader else (PartitionName("thin", 0),))


def test_a_minimum_above_the_number_of_replicas_counts_as_that_number_since_3_7() -> None:
    single = topic("single", (1,), min_insync_replicas="2")

    def below(release: Release) -> int:
        live = snapshot(single, racks=RACKS, releases=Releases(release, release))
        return len(rehearse(live, [], environment="local", lost=[3]).below_min_isr)

    assert (below(Release(3, 6)), below(Release(3, 7))) == (1, 0)


def test_under_kraft_a_delete_does_not_hang_and_apply_refuses_it_all_the_same() -> None:
    before, after = (
        rehearse(LIVE, [delete_topic(OLD)], environment="local", lost=[2], step=step, is_kraft=True) for step in (0, 1)
    )
    assert effects(before) == {"old": "refused"}
    assert before.changes[0].reason == "it has replicas on broker 2; apply refuses it (TOP421)"
    assert effects(after) == {"old": "done"}


def test_a_topic_that_is_being_deleted_counts_nowhere() -> None:
    live = snapshot(ORDERS, SINGLE, racks=RACKS, deleting={"single": 1})
    assert rehearse(live, [], environment="local", lost=[2]).offline == ()


@pytest.mark.parametrize(
    ("lost", "step", "message"),
    [
        pytest.param([7], None, "broker 7 is not live; live brokers: 1, 2, 3", id="unknown"),
        pytest.param([1, 2, 3], None, "this leaves no broker", id="all"),
        pytest.param([1], 2, "1 change of the plan may run", id="step"),
    ],
)
def test_a_loss_that_cannot_be_rehearsed_is_refused(lost: list[int], step: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rehearse(LIVE, [delete_topic(OLD)], environment="local", lost=lost, step=step)


def test_each_rack_is_lost_alone() -> None:
    found = without_each_rack(LIVE, environment="local")
    counts = [(loss.rack, loss.offline, loss.below_min_isr) for loss in found.racks]
    assert counts == [("r1", 0, 1), ("r2", 1, 1), ("r3", 0, 0)]
    assert found.racks[1].offline_examples == (PartitionName("single", 0),)
    assert [(loss.moved_leaders, loss.most_leaders) for loss in found.racks] == [(2, 5), (2, 2), (0, 3)]


def test_what_is_offline_already_is_no_loss_of_a_rack() -> None:
    dead = live_topic("dead", assignment={0: (9,)}, states={0: partition_state((9,), leader=-1)})
    found = without_each_rack(snapshot(dead, ORDERS, racks=RACKS), environment="local")
    assert found.offline_now == 1
    assert [loss.offline for loss in found.racks] == [0, 0, 0]


def test_racks_count_as_after_the_plan_where_there_is_one() -> None:
    planned = after_plan(LIVE, [create_topic("lonely", (3,)), delete_topic(SINGLE)])
    found = without_each_rack(planned, environment="local", after_plan=True)
    assert [loss.offline for loss in found.racks] == [0, 0, 1]


def test_a_marker_without_a_topic_does_not_count_as_a_topic() -> None:
    live = snapshot(ORDERS, SINGLE, racks=RACKS, deleting={"single": 1, "gone": 1})
    assert without_each_rack(live, environment="local").topics == 1


def test_a_marked_topic_that_the_brokers_delete_has_no_marker_after_the_plan() -> None:
    live = snapshot(ORDERS, SINGLE, OLD, racks=RACKS, deleting={"single": 7, "old": 7})
    planned = after_plan(live, [delete_topic(SINGLE)])
    assert (sorted(planned.topics), planned.deleting) == (["old", "orders"], {"old": 7})


def test_the_text_of_the_racks_tells_where_when_and_what_is_left_out() -> None:
    dead = live_topic("dead", assignment={0: (9,)}, states={0: partition_state((9,), leader=-1)})
    live = snapshot(dead, ORDERS, racks={1: "r1", 2: "r2", 3: None})
    found = without_each_rack(live, environment="local", after_plan=True)
    assert racks_text(found) == (
        "local, after the plan: 2 topics, 3 partitions; now 1 offline, 0 below min.insync.replicas, "
        "at most 1 leaders on a broker.\n"
        "\n"
        "without r1 (brokers 1): 0 offline, 0 below min.insync.replicas, 1 leaders move, at most 2 on a broker\n"
        "without r2 (brokers 2): 0 offline, 0 below min.insync.replicas, 1 leaders move, at most 1 on a broker\n"
        "Brokers without a rack stay in each line: 3"
    )


def test_one_rack_alone_is_refused() -> None:
    with pytest.raises(UsageError, match="fewer than two racks"):
        without_each_rack(snapshot(ORDERS, racks={1: "a", 2: "a", 3: "a"}), environment="local")


def test_the_text_tells_the_story_the_changes_and_what_is_lost() -> None:
    found = rehearse(LIVE, [create_topic("new", (2, 1)), delete_topic(OLD)], environment="local", lost=[2], step=1)
    assert rehearsal_text(found) == (
        "Rehearsal in local: 2 changes; broker 2 (r2) is lost after change 1.\n"
        "\n"
        "Changes:\n"
        "  create new: skewed: the first replica does not lead 1 new partition\n"
        "  delete old: hangs: it waits for broker 2; apply does not begin it (TOP421)\n"
        "\n"
        "Topics afterwards:\n"
        "  new\n"
        "    partition 0: leader 1, replicas 2,1, ISR 1\n"
        "  old\n"
        "    partition 0: leader 3 (was 2), replicas 2,3, ISR 3\n"
        "\n"
        "Load afterwards:\n"
        "  broker 1 (r1): leaders 2 -> 3, replicas 2 -> 3\n"
        "  broker 2 (r2): lost, with 3 leaders before\n"
        "  broker 3 (r3): leaders 0 -> 2, replicas 2\n"
        "\n"
        "Afterwards, of 6 partitions:\n"
        "  1 offline (0 before) (single-0)\n"
        "  1 below min.insync.replicas (0 before) (strict-0)\n"
        "  1 delete that would hang: old"
    )


def test_the_snapshot_is_left_as_it_was() -> None:
    before = repr(LIVE)
    rehearse(LIVE, [expand_topic(ORDERS, (3, 1)), delete_topic(OLD)], environment="local", lost=[2], step=1)
    assert repr(LIVE) == before
    assert isinstance(LIVE, ClusterSnapshot)
    assert Effect.DONE.value == "done"
