"""What a new controller makes of the znodes that it finds. It repairs nothing, and goes on with what was begun.

Source: kafka.controller.KafkaController#onControllerFailover (1.0 to 3.9).
"""

from __future__ import annotations

from topicops.controller.context import ControllerContext
from topicops.controller.deletion import OFFLINE_REPLICAS, REASSIGNMENT, TopicDeletion
from topicops.controller.elections import Election
from topicops.controller.partition_state_machine import PartitionStateMachine
from topicops.controller.reassignment import Reassignments
from topicops.controller.replica_state_machine import ReplicaStateMachine
from topicops.model.release import REASSIGNMENTS_IN_TOPICS


def take_over(
    context: ControllerContext,
    partitions: PartitionStateMachine,
    replicas: ReplicaStateMachine,
    moves: Reassignments,
    deletion: TopicDeletion,
) -> None:
    """Read all znodes, give every partition and replica a state, and resume elections, moves and deletions."""
    read_znodes(context)
    deletion.start_up(list(context.znodes.markers), ineligible_topics(context))
    context.send_metadata([])
    replicas.start_up()
    partitions.start_up()
    moves.resume_all()
    if context.settings.delete_topic_enable:
        deletion.go_on()
    wanted = [tp for tp in context.znodes.elections if context.replicas(tp) and tp.topic not in context.deleting]
    partitions.bring_online([tp for tp in wanted if partitions.needs(Election.PREFERRED, tp)], Election.PREFERRED)
    if context.znodes.elections:
        context.znodes.remove_elections()


def read_znodes(context: ControllerContext) -> None:
    znodes = context.znodes
    context.live = dict(znodes.brokers)
    for topic, found in znodes.topics.items():
        context.assignments[topic] = dict(found.assignment)
    context.states = {tp: state for tp in context.partitions() if (state := znodes.states.get(tp)) is not None}
    if context.release >= REASSIGNMENTS_IN_TOPICS:
        context.moving = {tp for tp in context.partitions() if context.assignment(tp).is_being_reassigned}


def ineligible_topics(context: ControllerContext) -> dict[str, str]:
    """Topics that could not be deleted now, with the reason: a replica is offline, or a partition is being moved.

    Since 2.4 ``/admin/reassign_partitions`` does not count: it is read later, and then refused for these topics.
    Source: kafka.controller.KafkaController#fetchTopicDeletionsInProgress (3.9, and 2.3 for brokers before 2.4).
    """
    moving = context.moving if context.release >= REASSIGNMENTS_IN_TOPICS else context.znodes.moves
    found = {tp.topic: REASSIGNMENT for tp in moving}
    for topic in context.assignments:
        if any(not context.is_online(replica.broker, replica.of) for replica in context.replicas_of(topic)):
            found[topic] = OFFLINE_REPLICAS
    return found
