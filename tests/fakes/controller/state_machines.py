"""What a change of a partition's or a replica's state does.

A partition gets its first state, and leaders. For a replica the ISR shrinks, and brokers are told to follow, to stop or
to delete. Source: kafka.controller.ZkPartitionStateMachine (3.9; as in 1.0) and ReplicaStateMachine (1.0 to 3.9, each
release's own).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from fakes.controller.context import (
    ControllerContext,
    PartitionStatus,
    ReplicaStatus,
    partition_may_become,
    replica_may_become,
)
from fakes.controller.elections import Election, controlled_shutdown_election, preferred_election, reassignment_election
from fakes.controller.releases import KEEPS_LAST_IN_ISR, SHRINKS_AT_FAILOVER
from fakes.controller.znodes import Replica, TopicPartition
from topicops.model.cluster.health import Elected, first_state, offline_election, with_leader, without_replica
from topicops.model.release import DELETES_NEVER_LED


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


class ReplicaStateMachine:
    """The state machine over all replicas of a controller."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def start_up(self) -> None:
        """Give each replica a state: online, or ineligible for deletion where its broker is dead.

        Replicas on dead brokers leave the ISR then; before 2.3 they stay in it until its leader removes them.
        """
        context = self._context
        online, offline = list[Replica](), list[Replica]()
        for replica in context.all_replicas():
            is_online = context.is_online(replica.broker, replica.of)
            (online if is_online else offline).append(replica)
            status = ReplicaStatus.ONLINE if is_online else ReplicaStatus.DELETION_INELIGIBLE
            context.replica_status[replica] = status
        self.move(online, ReplicaStatus.ONLINE)
        if context.release >= SHRINKS_AT_FAILOVER:
            self.move(offline, ReplicaStatus.OFFLINE)

    def move(self, replicas: Iterable[Replica], to: ReplicaStatus) -> None:
        """Change the state of each, by broker; a replica that may not come there stays as it is.

        Here brokers come in the order of their ids. In Kafka the order is that of a hash map, which differs with the
        Scala that it was built with; it decides who stays in the ISR when several replicas stop at once.
        """
        by_broker: defaultdict[int, list[Replica]] = defaultdict(list)
        for replica in replicas:
            now = self._context.replica_status.setdefault(replica, ReplicaStatus.NON_EXISTENT)
            if replica_may_become(now, to, self._context.release):
                by_broker[replica.broker].append(replica)
        for broker in sorted(by_broker):
            for replica in by_broker[broker]:
                self._enter(replica, to)

    def _enter(self, replica: Replica, to: ReplicaStatus) -> None:
        context = self._context
        match to:
            case ReplicaStatus.NEW | ReplicaStatus.ONLINE:
                # A new replica that comes online was told of its leader when it was made.
                if context.replica_status[replica] is not ReplicaStatus.NEW and replica.of in context.states:
                    context.send_leader_and_isr([replica.broker], replica.of)
            case ReplicaStatus.OFFLINE:
                if not self._stop(replica):
                    return
            case ReplicaStatus.DELETION_STARTED:
                context.outbox.stop_replica(replica.broker, replica.of, delete=True)
            case ReplicaStatus.NON_EXISTENT:
                context.forget_replica(replica)
                return
            case _:
                pass
        context.replica_status[replica] = to

    def _stop(self, replica: Replica) -> bool:
        """Take it out of the ISR. False: it keeps its state.

        Before 2.0 a replica of a partition that never had a leader cannot go offline, and so is never deleted.
        """
        context, tp = self._context, replica.of
        context.outbox.stop_replica(replica.broker, tp, delete=False)
        if tp not in context.states:
            return context.release >= DELETES_NEVER_LED
        state = context.read_state(tp)
        if state is None:
            return False
        keeps_last = context.release >= KEEPS_LAST_IN_ISR or not context.elects_unclean(tp.topic)
        shrunk = without_replica(state, replica.broker, context.epoch, keeps_last=keeps_last)
        if shrunk is not state:
            context.write_state(tp, shrunk)
        if tp.topic not in context.deleting:
            others = [broker for broker in context.replicas(tp) if broker != replica.broker]
            context.send_leader_and_isr(others, tp)
        return True
