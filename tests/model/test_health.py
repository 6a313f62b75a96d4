"""What Kafka's metrics call well, and the cases at the edge of each."""

from __future__ import annotations

import pytest

from fakes.builders import live_topic, partition_state
from topicops.model.cluster.health import PartitionHealth, health_of

THREE = (1, 2, 3)
WELL = PartitionHealth(THREE, 1, THREE, THREE, min_isr=2)
QUESTIONS = (
    "is_offline", "is_under_replicated", "is_under_min_isr", "is_at_min_isr", "refuses_all_acks",
    "is_led_from_outside_isr", "is_led_by_another",
)  # fmt: skip


@pytest.mark.parametrize(
    ("health", "answers"),
    [
        pytest.param(WELL, set(), id="well"),
        pytest.param(
            PartitionHealth(THREE, -1, (1,), (2, 3), 1),
            {"is_offline", "is_under_replicated", "is_at_min_isr", "refuses_all_acks"},
            id="no leader: the last in sync is away",
        ),
        pytest.param(
            PartitionHealth(THREE, 1, THREE, (2, 3), 2),
            {"is_offline", "refuses_all_acks"},
            id="the state still names a dead leader",
        ),
        pytest.param(
            PartitionHealth(THREE, 1, (1, 2), (1, 2), 2),
            {"is_under_replicated", "is_at_min_isr"},
            id="one is behind: at the minimum",
        ),
        pytest.param(
            PartitionHealth(THREE, 1, (1,), THREE, 2),
            {"is_under_replicated", "is_under_min_isr", "refuses_all_acks"},
            id="two are behind: under the minimum",
        ),
        pytest.param(PartitionHealth(THREE, 1, THREE, (1,), 3), {"is_at_min_isr"}, id="dead ones still in the ISR"),
        pytest.param(PartitionHealth(THREE, 2, THREE, THREE, 2), {"is_led_by_another"}, id="another leader"),
        pytest.param(
            PartitionHealth(THREE, 1, (2, 3), THREE, 1),
            {"is_under_replicated", "is_led_from_outside_isr"},
            id="a leader outside the ISR",
        ),
        pytest.param(
            PartitionHealth((), -1, (), THREE, 1),
            {"is_offline", "is_under_min_isr", "refuses_all_acks"},
            id="neither replicas nor state",
        ),
    ],
)
def test_each_question_is_answered_by_kafkas_own_definition(health: PartitionHealth, answers: set[str]) -> None:
    assert {name for name in QUESTIONS if getattr(health, name)} == answers


def test_replicas_that_a_reassignment_adds_are_not_missed_and_those_that_it_removes_are() -> None:
    topic = live_topic(
        "t", assignment={0: (3, 4, 1, 2)}, adding={0: (3, 4)}, removing={0: (1, 2)}, states={0: partition_state([1])}
    )

    health = health_of(topic, 0, (1, 3, 4))

    assert (health.replicas, health.missing, health.dead_replicas) == ((1, 2), (2,), (2,))
    assert health.is_under_replicated


def test_a_partition_without_a_state_has_neither_leader_nor_isr() -> None:
    health = health_of(live_topic("t", assignment={0: THREE}, states={}), 0, THREE)

    assert (health.leader, health.isr, health.missing) == (-1, (), THREE)
