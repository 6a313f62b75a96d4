"""What the loss of brokers makes of one partition, without the other parts of a controller.

The same end as playing ``BrokersChanged``: elect where the leader is lost, then take lost replicas out of the ISR.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from topicops.controller.elections import offline_election
from topicops.controller.isr import with_leader, without_replica
from topicops.model.cluster.snapshot import PartitionState


def after_loss(
    state: PartitionState,
    replicas: Sequence[int],
    *,
    live: Collection[int],
    lost: Collection[int],
    unclean: bool,
    controller_epoch: int = 0,
) -> PartitionState:
    """The state of a partition once some brokers are lost, and only the others are live.

    Args:
        lost: Brokers that were live before; a replica that was dead already has left the ISR.

    Source: kafka.controller.KafkaController#onReplicasBecomeOffline (3.9; as in 1.0).
    """
    if state.leader not in live:
        there = [broker for broker in replicas if broker in live]
        elected = offline_election(replicas, state.isr, there, unclean=unclean)
        if elected is not None:
            state = with_leader(state, elected, controller_epoch)
    for broker in sorted(replicas):
        if broker in lost:
            state = without_replica(state, broker, controller_epoch)
    return state
