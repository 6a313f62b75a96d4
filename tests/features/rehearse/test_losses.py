"""The rules of a loss, of a rehearsal and of a plan end as the played controller does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from fakes.builders import healthy_states, live_topic, partition_state, snapshot
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from fakes.controller.context import ControllerSettings
from fakes.controller.played_cluster import PlayedCluster
from fakes.controller.znodes import TopicPartition, Znodes
from fixtures.planning import plan_of
from fixtures.random_worlds import World
from topicops.features.rehearse.losses import RackLosses, without_each_rack
from topicops.features.rehearse.played import RehearsedChange, after_plan, rehearse
from topicops.model.cluster.health import NO_STATE, UNCLEAN_ELECTION, after_loss
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import Loss
from topicops.steps.rack_losses import planned_losses

BROKERS = range(1, 7)


Sides = tuple[object, object]
"""What our rules say, and what the played controller does."""


def test_a_loss_ends_as_the_played_cluster_does() -> None:
    sides = ((seed, side) for seed in range(200) for side in sides_of_a_loss(Random(seed)))
    assert {seed: (ours, theirs) for seed, (ours, theirs) in sides if ours != theirs} == {}


def sides_of_a_loss(chance: Random) -> Iterator[Sides]:
    unclean = chance.random() < 0.3
    settings = ControllerSettings(unclean_leader_election_enable=unclean)
    cluster = PlayedCluster(Znodes(brokers=dict.fromkeys(BROKERS, 1), controller=1), settings=settings)
    rows = {p: tuple(chance.sample(BROKERS, chance.randint(1, 4))) for p in range(20)}
    cluster.create("orders", rows, {})
    cluster.stop(chance.sample(BROKERS[1:], chance.randint(0, 2)))
    lost = chance.sample(sorted(cluster.znodes.brokers), chance.randint(1, len(cluster.znodes.brokers) - 1))
    left = cluster.znodes.brokers.keys() - set(lost)
    before = dict(cluster.znodes.states)

    cluster.stop(lost)

    ours = {
        tp: after_loss(state, rows[tp.partition], live=left, lost=lost, unclean=unclean) for tp, state in before.items()
    }
    theirs = {tp: cluster.znodes.states[tp] for tp in before}
    yield {tp: (s.leader, s.isr) for tp, s in ours.items()}, {tp: (s.leader, s.isr) for tp, s in theirs.items()}
    if 1 in left:
        # A new controller shrinks ISRs before it elects, so that its leader epochs are others.
        yield {tp: s.leader_epoch for tp, s in ours.items()}, {tp: s.leader_epoch for tp, s in theirs.items()}
    # A partition that had no live replica when it was made has no state, and a loss gives it none.
    yield before.keys(), cluster.znodes.states.keys() & {TopicPartition("orders", p) for p in rows}


def test_the_topics_of_a_plan_end_as_the_played_cluster_shows_them() -> None:
    sides = ((seed, side) for seed in range(200) for side in sides_of_a_plan(Random(seed)))
    assert {seed: (ours, theirs) for seed, (ours, theirs) in sides if ours != theirs} == {}


def sides_of_a_plan(chance: Random) -> Iterator[Sides]:
    topics = [_some_topic(chance, f"t{number}") for number in range(8)]
    live = snapshot(*topics, racks=dict.fromkeys(BROKERS[:-1], "r1"), deleting={"t7": 1})
    live = replace(live, broker_defaults={1: {UNCLEAN_ELECTION: chance.choice(["true", "false"])}})
    changes = _some_changes(chance, topics)
    lost = chance.sample(sorted(live.brokers), chance.randint(0, len(live.brokers) - 1))
    step, is_kraft = chance.randint(0, len(changes)), chance.random() < 0.3

    found = rehearse(live, changes, environment="e", lost=lost, step=step, is_kraft=is_kraft)

    cluster = _played(live, changes, found.changes, lost=lost, step=step, is_kraft=is_kraft)
    znodes = cluster.znodes
    theirs = {
        topic.name: {
            p: (state.leader, set(state.isr) & znodes.brokers.keys())
            for p in topic.assignment
            for state in [(topic.states or {}).get(p, NO_STATE)]
        }
        for topic in map(znodes.topic, znodes.topics.keys() - znodes.markers.keys())
    }
    ours = {
        topic.topic: {p.partition: (-1 if p.leader is None else p.leader, set(p.isr)) for p in topic.partitions}
        for topic in found.topics
        if topic.partitions
    }
    yield ours, theirs
    yield {topic.topic for topic in found.topics if topic.is_deleting}, {*znodes.markers}


def _some_topic(chance: Random, name: str) -> LiveTopic:
    """A topic of which some followers lag, some leaders are dead, and some partitions are too new to have one."""
    rows = {p: tuple(chance.sample(BROKERS, chance.randint(1, 3))) for p in range(3)}
    isrs = {p: chance.sample(row, chance.randint(1, len(row))) for p, row in rows.items()}
    overrides = {UNCLEAN_ELECTION: chance.choice(["true", "false"])} if chance.random() < 0.5 else {}
    states = {p: partition_state(isr, leader=chance.choice(isr)) for p, isr in isrs.items() if chance.random() < 0.9}
    return live_topic(name, assignment=rows, states=states, overrides=overrides)


def _some_changes(chance: Random, topics: Sequence[LiveTopic]) -> list[Change]:
    row = [tuple(chance.sample(BROKERS[:-1], 2)) for _ in range(4)]
    unclean = {UNCLEAN_ELECTION: chance.choice(["true", "false"])}
    return [
        create_topic("new0", row[0]),
        create_topic("new1", row[1], configs={UNCLEAN_ELECTION: "true"}),
        *(expand_topic(topic, row[number]) for number, topic in enumerate(topics[:4])),
        *(configure_topic(topic, unclean) for topic in topics[3:5]),
        *(delete_topic(topic) for topic in topics[5:]),
    ]


def _played(
    live: ClusterSnapshot,
    changes: Sequence[Change],
    told: Sequence[RehearsedChange],
    *,
    lost: Sequence[int],
    step: int,
    is_kraft: bool,
) -> PlayedCluster:
    """Play those changes that a rehearsal says are sent, and the loss."""
    there = {change.topic: live.topics[change.topic] for change in changes if change.topic in live.topics}
    unclean = (live.broker_defaults or {})[1][UNCLEAN_ELECTION] == "true"
    cluster = PlayedCluster(Znodes.of(live, there), settings=ControllerSettings(unclean_leader_election_enable=unclean))
    cluster.slow |= live.brokers.keys()  # followers that are not in sync stay so
    for number, (change, found) in enumerate(zip(changes, told, strict=True)):
        if number == step:
            cluster.stop(sorted(lost))
        if found.effect == "skewed" or (found.effect == "done" and found.reason != "already so"):
            _send(cluster, change, is_kraft=is_kraft)
    if step == len(changes):
        cluster.stop(sorted(lost))
    return cluster


def _send(cluster: PlayedCluster, change: Change, *, is_kraft: bool) -> None:
    match change:
        case CreateTopic():
            cluster.create(change.topic, change.assignment, change.configs)
        case ExpandTopic():
            cluster.expand(change.topic, change.assignment)
        case ConfigureTopic():
            cluster.configure(change.topic, change.configs)
        case DeleteTopic() if is_kraft:
            cluster.remove(change.topic)
        case DeleteTopic():
            cluster.delete(change.topic)


# ---- The losses that a plan shows are those that the model of the controller finds ----


def counts(found: RackLosses) -> list[tuple[str, Loss]]:
    return [
        (row.rack, Loss(offline=row.offline, below_min_isr=row.below_min_isr, moved_leaders=row.moved_leaders))
        for row in found.racks
    ]


def test_before_and_after_are_what_rehearse_says_of_each_rack() -> None:
    assert [seed for seed in range(60) if not has_the_losses_of_rehearse(World(seed))] == []


def has_the_losses_of_rehearse(world: World) -> bool:
    racks = {broker: replace(found, rack=f"r{broker % 3}") for broker, found in world.live.brokers.items()}
    topics = {
        name: topic if topic.states else replace(topic, states=healthy_states(topic.assignment))
        for name, topic in world.live.topics.items()
    }
    live = replace(world.live, brokers=racks, topics=topics)
    changes = plan_of(world.desired, live, world.environment).changes

    found = planned_losses(live, changes)

    if len({broker.rack for broker in racks.values()}) < 2:
        return found.racks == ()
    before, after = (counts(without_each_rack(there, environment="e")) for there in (live, after_plan(live, changes)))
    return ([(row.rack, row.before) for row in found.racks], [(row.rack, row.after) for row in found.racks]) == (
        before,
        after,
    )
