"""What a change of a replica's state does: the ISR shrinks, and brokers are told to follow, to stop or to delete.

Source: kafka.controller.ReplicaStateMachine (1.0 to 3.9, each release's own).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from topicops.features.rehearse.controller.context import ControllerContext
from topicops.features.rehearse.controller.states import ReplicaStatus, replica_may_become
from topicops.features.rehearse.controller.znodes import Replica
from topicops.model.cluster.health import without_replica
from topicops.model.release import DELETES_NEVER_LED, KEEPS_LAST_IN_ISR, SHRINKS_AT_FAILOVER


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
