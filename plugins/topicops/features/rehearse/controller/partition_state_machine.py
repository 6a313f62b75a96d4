"""What a change of a partition's state does: first states and elections.

Source: kafka.controller.ZkPartitionStateMachine (3.9; as in 1.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicops.features.rehearse.controller.context import ControllerContext
from topicops.features.rehearse.controller.elections import (
    Election,
    controlled_shutdown_election,
    preferred_election,
    reassignment_election,
)
from topicops.features.rehearse.controller.states import PartitionStatus, partition_may_become
from topicops.features.rehearse.controller.znodes import TopicPartition
from topicops.model.cluster.health import Elected, first_state, offline_election, with_leader


class PartitionStateMachine:
    """The state machine over all partitions of a controller."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def start_up(self) -> None:
        """Give each partition the state that its znodes tell, and elect leaders where there are none."""
        context = self._context
        for tp in context.partitions():
            state = context.states.get(tp)
            if state is None:
                context.partition_status[tp] = PartitionStatus.NEW
            elif context.is_online(state.leader, tp):
                context.partition_status[tp] = PartitionStatus.ONLINE
            else:
                context.partition_status[tp] = PartitionStatus.OFFLINE
        self.elect_where_offline()

    def elect_where_offline(self, topics: Collection[str] | None = None) -> None:
        """Elect a leader for each new and offline partition; topics that are being deleted are left alone.

        Args:
            topics: Leave out all other topics.
        """
        context = self._context
        waiting = [
            tp
            for tp, status in context.partition_status.items()
            if status in (PartitionStatus.OFFLINE, PartitionStatus.NEW)
            and tp.topic not in context.deleting
            and (topics is None or tp.topic in topics)
        ]
        self.bring_online(waiting, Election.OFFLINE)

    def needs(self, election: Election, tp: TopicPartition) -> bool:
        """Whether an election that somebody asks for would change the leader; else Kafka answers ELECTION_NOT_NEEDED.

        Source: kafka.controller.KafkaController#processReplicaLeaderElection (3.9).
        """
        context = self._context
        if tp not in context.states:
            return False
        leader = context.states[tp].leader
        if election is Election.PREFERRED:
            return leader != context.replicas(tp)[0]
        return leader not in context.live or leader in context.shutting_down

    def move(self, partitions: Iterable[TopicPartition], to: PartitionStatus) -> None:
        """Any change but to Online; a partition that may not come there stays as it is."""
        for tp in partitions:
            if self._may_become(tp, to):
                self._context.partition_status[tp] = to

    def bring_online(self, partitions: Iterable[TopicPartition], election: Election) -> dict[TopicPartition, bool]:
        """Give each of them its first state or a new leader; whether it has one now, by partition."""
        found: dict[TopicPartition, bool] = {}
        for tp in partitions:
            if not self._may_become(tp, PartitionStatus.ONLINE):
                found[tp] = False
                continue
            is_new = self._context.partition_status[tp] is PartitionStatus.NEW
            found[tp] = self._initialise(tp) if is_new else self._elect(tp, election)
            if found[tp]:
                self._context.partition_status[tp] = PartitionStatus.ONLINE
        return found

    def _may_become(self, tp: TopicPartition, to: PartitionStatus) -> bool:
        now = self._context.partition_status.setdefault(tp, PartitionStatus.NON_EXISTENT)
        return partition_may_become(now, to)

    def _initialise(self, tp: TopicPartition) -> bool:
        """Write the first state. Without a live replica the partition stays new, and has no state znode."""
        context = self._context
        live = [broker for broker in context.replicas(tp) if context.is_online(broker, tp)]
        if not live:
            return False
        state = first_state(live, context.epoch)
        if not context.znodes.create_state(tp, state):
            return False
        context.states[tp] = state
        context.send_leader_and_isr(state.isr, tp)
        return True

    def _elect(self, tp: TopicPartition, election: Election) -> bool:
        context = self._context
        state = context.read_state(tp)
        if state is None:
            return False
        elected = self._elected(tp, election)
        if elected is None:
            return False
        context.write_state(tp, with_leader(state, elected.leader, elected.isr, context.epoch))
        context.send_leader_and_isr(self._receivers(tp, election), tp)
        return True

    def _elected(self, tp: TopicPartition, election: Election) -> Elected | None:
        context = self._context
        row, isr = context.assignment(tp), context.states[tp].isr
        live = {broker for broker in row.replicas if context.is_online(broker, tp)}
        match election:
            case Election.OFFLINE:
                return offline_election(row.replicas, isr, live, unclean=context.elects_unclean(tp.topic))
            case Election.UNCLEAN:
                return offline_election(row.replicas, isr, live, unclean=True)
            case Election.REASSIGNMENT:
                return reassignment_election(context.targets.get(tp, row.target), isr, live)
            case Election.PREFERRED:
                return preferred_election(row.replicas, isr, live)
            case Election.CONTROLLED_SHUTDOWN:
                live = {broker for broker in row.replicas if context.is_online(broker, tp, or_shutting_down=True)}
                return controlled_shutdown_election(row.replicas, isr, live, context.shutting_down)

    def _receivers(self, tp: TopicPartition, election: Election) -> tuple[int, ...]:
        context = self._context
        replicas = context.replicas(tp)
        if election in (Election.OFFLINE, Election.UNCLEAN):
            return tuple(broker for broker in replicas if context.is_online(broker, tp))
        return replicas
