"""The shortcut for one partition ends as the whole model does."""

from __future__ import annotations

import random

import pytest

from topicops.features.rehearse.controller.context import ControllerSettings
from topicops.features.rehearse.controller.played_cluster import PlayedCluster
from topicops.features.rehearse.controller.znodes import TopicPartition, Znodes
from topicops.model.cluster.health import after_loss

BROKERS = range(1, 7)


@pytest.mark.parametrize("seed", range(200))
def test_a_loss_ends_as_the_played_cluster_does(seed: int) -> None:
    chance = random.Random(seed)
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
    assert {tp: (s.leader, s.isr) for tp, s in ours.items()} == {tp: (s.leader, s.isr) for tp, s in theirs.items()}
    if 1 in left:
        # A new controller shrinks ISRs before it elects, so that its leader epochs are others.
        assert {tp: s.leader_epoch for tp, s in ours.items()} == {tp: s.leader_epoch for tp, s in theirs.items()}
    # A partition that had no live replica when it was made has no state, and a loss gives it none.
    assert {TopicPartition("orders", p) for p in rows} - before.keys() == {
        TopicPartition("orders", p) for p in rows
    } - theirs.keys()
