"""How the controller moves replicas under ZooKeeper: begin, wait until the whole target is in sync, and end.

A move that replaces another keeps the origin. KRaft forgets it, and in some releases waits for the added replicas
alone: that is not modelled here, but in ``fixtures.moves.cluster``.

Source: kafka.controller.KafkaController#onPartitionReassignment (3.9, and 2.3 for brokers before 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakes.controller.context import ControllerContext, ReplicaStatus
from fakes.controller.deletion import REASSIGNMENT, TopicDeletion
from fakes.controller.elections import Election
from fakes.controller.state_machines import PartitionStateMachine, ReplicaStateMachine
from fakes.controller.znodes import Replica, ReplicaAssignment, TopicPartition
from topicops.model.cluster.health import with_leader
from topicops.model.release import REASSIGNMENTS_IN_TOPICS


class Reassignments:
    """All moves of replicas that run."""

    def __init__(
        self,
        context: ControllerContext,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    def begin(self, wanted: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, bool]:
        """Begin these moves; whether each was taken, by partition."""
        taken = {}
        for tp, target in wanted.items():
            taken[tp] = self._may_move(tp, tuple(target))
            if taken[tp]:
                self._move(tp, tuple(target))
        return taken

    def _may_move(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        """A topic that is being deleted does not move; before 2.4 neither does a partition that is there already.

        Source: kafka.controller.KafkaController#maybeTriggerPartitionReassignment (2.3; in 1.0
        #initiateReassignReplicasForTopicPartition).
        """
        now = self._context.replicas(tp)
        if not now or tp.topic in self._context.deleting:
            return False
        return self._context.release >= REASSIGNMENTS_IN_TOPICS or now != target

    def resume_all(self) -> None:
        """Begin what ``/admin/reassign_partitions`` asks for, and go on with all other moves."""
        wanted = dict(self._context.znodes.moves)
        taken = self.begin(wanted)
        refused = [tp for tp, was_taken in taken.items() if not was_taken]
        if refused:
            self._context.znodes.remove_moves(refused)
        self.resume([tp for tp in self._context.moving if tp not in wanted])

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Go on with these moves, which may have become complete; partitions that do not move are left alone."""
        for tp in sorted(self._context.moving.intersection(partitions)):
            self._move(tp, self.target(tp))

    def end_if_complete(self, tp: TopicPartition) -> None:
        """After a change of the ISR. A move that waits for more replicas stays as it is.

        Source: kafka.controller.KafkaController#processPartitionReassignmentIsrChange (3.9; as in 1.0).
        """
        if tp in self._context.moving and self._is_complete(tp, self.target(tp)):
            self._move(tp, self.target(tp))

    def target(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return where a partition will be when its move has ended."""
        context = self._context
        return context.targets[tp] if tp in context.targets else context.assignment(tp).target

    def _move(self, tp: TopicPartition, target: tuple[int, ...]) -> None:
        context = self._context
        self._deletion.halt([tp.topic], REASSIGNMENT)
        before = context.replicas(tp)
        moved = self._write_both_sides(tp, target)
        context.moving.add(tp)
        if not self._is_complete(tp, target):
            self._begin_epoch(tp)
            adding = moved.adding or tuple(broker for broker in target if broker not in before)
            self._replicas.move([Replica(*tp, broker) for broker in adding], ReplicaStatus.NEW)
            return
        removed = [broker for broker in moved.replicas if broker not in target]
        self._replicas.move([Replica(*tp, broker) for broker in target], ReplicaStatus.ONLINE)
        context.assignments[tp.topic][tp.partition] = ReplicaAssignment(target)
        self._lead_from(tp, target)
        self._remove(tp, removed)
        context.znodes.set_assignment(tp.topic, context.assignments[tp.topic])
        self._end(tp)

    def _write_both_sides(self, tp: TopicPartition, target: tuple[int, ...]) -> ReplicaAssignment:
        """Write target and origin together. Since 2.4 the znode also names what is added and removed."""
        context = self._context
        now = context.assignment(tp)
        if context.release < REASSIGNMENTS_IN_TOPICS:
            context.targets[tp] = target
            moved = ReplicaAssignment(tuple(dict.fromkeys([*target, *now.replicas])))
            changed = set(moved.replicas) != set(now.replicas)
        else:
            # A move that runs already, and whose target did not change, is the same move.
            moved = now if now.is_being_reassigned and now.target == target else now.reassign_to(target)
            changed = moved != now
        if not changed:
            return now
        context.assignments[tp.topic][tp.partition] = moved
        context.znodes.set_assignment(tp.topic, context.assignments[tp.topic])
        self._remove(tp, [broker for broker in now.replicas if broker not in moved.replicas])
        return moved

    def _is_complete(self, tp: TopicPartition, target: tuple[int, ...]) -> bool:
        row = self._context.assignment(tp)
        if self._context.release >= REASSIGNMENTS_IN_TOPICS and not row.is_being_reassigned:
            return True
        state = self._context.znodes.states.get(tp)
        return state is not None and set(target) <= set(state.isr)

    def _begin_epoch(self, tp: TopicPartition) -> None:
        context = self._context
        state = context.read_state(tp)
        if state is not None:
            context.write_state(tp, with_leader(state, state.leader, state.isr, context.epoch))
            context.send_leader_and_isr(context.replicas(tp), tp)

    def _lead_from(self, tp: TopicPartition, target: tuple[int, ...]) -> None:
        """Elect a leader among the target where the present one goes or is dead."""
        context = self._context
        leader = context.states[tp].leader if tp in context.states else -1
        if leader in target and context.is_online(leader, tp):
            self._begin_epoch(tp)
        else:
            self._partitions.bring_online([tp], Election.REASSIGNMENT)

    def _remove(self, tp: TopicPartition, brokers: Sequence[int]) -> None:
        """Delete these replicas; nobody waits for the brokers' answers."""
        replicas = [Replica(*tp, broker) for broker in brokers]
        for status in (
            ReplicaStatus.OFFLINE,
            ReplicaStatus.DELETION_STARTED,
            ReplicaStatus.DELETION_SUCCESSFUL,
            ReplicaStatus.NON_EXISTENT,
        ):
            self._replicas.move(replicas, status)

    def _end(self, tp: TopicPartition) -> None:
        context = self._context
        context.znodes.remove_moves([tp])
        context.moving.discard(tp)
        context.targets.pop(tp, None)
        context.send_metadata([tp])
        self._deletion.resume([tp.topic])
