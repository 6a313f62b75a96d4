"""Which replica leads a partition once its leader is lost, and what the loss of brokers makes of its state.

Source: kafka.controller.PartitionLeaderElectionAlgorithms (1.0 to 3.9, which agree).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from topicops.model.cluster.snapshot import PartitionState

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class Elected(NamedTuple):
    """A new leader, and the ISR that it begins with."""

    leader: int
    isr: tuple[int, ...]


def elects_unclean(value: str | None, *, default: bool = False) -> bool:
    """Read a value of ``UNCLEAN_ELECTION`` as brokers do; None means the default."""
    return default if value is None else value.strip().lower() == "true"


def offline_election(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean: bool
) -> Elected | None:
    """Elect the first replica that is live and in the ISR; with ``unclean``, else the first live one.

    Gives None if there is neither: the partition stays without a leader.
    """
    for broker in assignment:
        if broker in live and broker in isr:
            return Elected(broker, tuple(member for member in isr if member in live))
    if unclean:
        for broker in assignment:
            if broker in live:
                return Elected(broker, (broker,))
    return None


def first_state(live_replicas: Sequence[int], controller_epoch: int = 0) -> PartitionState:
    """Give the state of a partition that never had one: the first live replica leads, all of them are in the ISR.

    Source: kafka.controller.ZkPartitionStateMachine#initializeLeaderAndIsrForPartitions (3.9; as in 1.0).
    """
    return PartitionState(
        leader=live_replicas[0],
        isr=tuple(live_replicas),
        leader_epoch=0,
        controller_epoch=controller_epoch,
        version=0,
    )


def with_leader(state: PartitionState, leader: int, isr: tuple[int, ...], controller_epoch: int) -> PartitionState:
    """Write a leader and an ISR. Each write of the controller begins a new leader epoch."""
    return PartitionState(
        leader=leader,
        isr=isr,
        leader_epoch=(state.leader_epoch or 0) + 1,
        controller_epoch=controller_epoch,
        version=(state.version or 0) + 1,
    )


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
    leader = -1 if broker == state.leader else state.leader
    isr = state.isr if keeps_last and len(state.isr) == 1 else tuple(member for member in state.isr if member != broker)
    return with_leader(state, leader, isr, controller_epoch)


def after_loss(
    state: PartitionState,
    replicas: Sequence[int],
    *,
    live: Collection[int],
    lost: Collection[int],
    unclean: bool,
) -> PartitionState:
    """Give the state of a partition once some brokers are lost, and only the others are live.

    Where the leader is lost, another is elected; then the lost replicas leave the ISR.

    Args:
        lost: Brokers that were live before; a replica that was dead already has left the ISR.

    Source: kafka.controller.KafkaController#onReplicasBecomeOffline (3.9; as in 1.0).
    """
    if state.leader not in live:
        there = [broker for broker in replicas if broker in live]
        elected = offline_election(replicas, state.isr, there, unclean=unclean)
        if elected is not None:
            state = with_leader(state, elected.leader, elected.isr, 0)
    for broker in sorted(replicas):
        if broker in lost:
            state = without_replica(state, broker, 0)
    return state
