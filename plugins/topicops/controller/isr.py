"""How the state of a partition (leader, ISR, epochs) changes. The state is the data of its ``state`` znode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicops.controller.elections import Elected
from topicops.model.cluster.snapshot import PartitionState

NO_LEADER = -1


def first_state(live_replicas: Sequence[int], controller_epoch: int) -> PartitionState:
    """Of a partition that never had one: the first live replica leads, and all live replicas are in the ISR.

    Source: kafka.controller.ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (3.9; as in 1.0).
    """
    return PartitionState(
        leader=live_replicas[0],
        isr=tuple(live_replicas),
        leader_epoch=0,
        controller_epoch=controller_epoch,
        version=0,
    )


def with_leader(state: PartitionState, elected: Elected, controller_epoch: int) -> PartitionState:
    """After an election. Each write of the controller begins a new leader epoch."""
    return _written(state, elected.leader, elected.isr, controller_epoch)


def with_new_epoch(state: PartitionState, controller_epoch: int) -> PartitionState:
    """The same leader and ISR in a new leader epoch, as when a reassignment begins."""
    return _written(state, state.leader, state.isr, controller_epoch)


def without_replica(
    state: PartitionState, broker: int, controller_epoch: int, *, keeps_last: bool = True
) -> PartitionState:
    """Take a replica that is offline out of the ISR; a leader that goes leaves the partition without one.

    With ``keeps_last`` the last member stays in the ISR, since only that replica has all records.
    Source: kafka.controller.ZkReplicaStateMachine#doRemoveReplicasFromIsr (3.9; as in 1.1), and for 1.0
    kafka.controller.KafkaController#removeReplicaFromIsr.
    """
    if broker not in state.isr:
        return state
    leader = NO_LEADER if broker == state.leader else state.leader
    isr = state.isr if keeps_last and len(state.isr) == 1 else tuple(member for member in state.isr if member != broker)
    return _written(state, leader, isr, controller_epoch)


def altered_by_leader(state: PartitionState, isr: Sequence[int], *, controller_epoch: int | None) -> PartitionState:
    """The leader adds followers that have caught up, or removes those that have not: no new leader epoch.

    Args:
        controller_epoch: Of the controller since 2.7, which writes the znode; before, leaders write the one they know.

    Source: kafka.cluster.Partition#maybeExpandIsr and #maybeShrinkIsr (3.9).
    """
    return replace(state, isr=tuple(isr), controller_epoch=controller_epoch, version=(state.version or 0) + 1)


def _written(state: PartitionState, leader: int, isr: tuple[int, ...], controller_epoch: int) -> PartitionState:
    return PartitionState(
        leader=leader,
        isr=isr,
        leader_epoch=(state.leader_epoch or 0) + 1,
        controller_epoch=controller_epoch,
        version=(state.version or 0) + 1,
    )
