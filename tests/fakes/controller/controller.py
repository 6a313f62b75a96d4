"""The model itself: one controller, from its election to its death; each call handles one event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from fakes.controller.context import ControllerContext, ControllerSettings, PartitionStatus, ReplicaStatus
from fakes.controller.deletion import OFFLINE_REPLICAS, REASSIGNMENT, TopicDeletion
from fakes.controller.elections import Election, altered_by_leader
from fakes.controller.messages import (
    BrokerRequest,
    BrokersChanged,
    DeletionsMarked,
    ElectionsAsked,
    ElectionsWritten,
    Event,
    IsrAltered,
    LogsFailed,
    MovesAsked,
    MovesWritten,
    PartitionsChanged,
    ReplicasDeleted,
    ShutdownAsked,
    TopicsChanged,
    UncleanElectionAllowed,
)
from fakes.controller.reassignment import Reassignments
from fakes.controller.releases import (
    ALTERS_ISRS,
    KNOWS_BOUNCED_BROKERS,
    LEAVES_LEADERS,
    REPEATS_ELECTIONS,
    RESTORES_ROWS,
)
from fakes.controller.state_machines import PartitionStateMachine, ReplicaStateMachine
from fakes.controller.znodes import Replica, TopicPartition, Znodes
from topicops.model.release import REASSIGNMENTS_IN_TOPICS, TOPIC_IDS


class Controller:
    """Elected when it is made. It changes ``znodes`` in place, and gives the requests that it sends.

    Source: kafka.controller.KafkaController (3.9, with what earlier releases do otherwise).
    """

    def __init__(
        self,
        znodes: Znodes,
        *,
        broker: int,
        settings: ControllerSettings | None = None,
        new_topic_id: Callable[[str], str] | None = None,
    ) -> None:
        """Elect a controller.

        Args:
            broker: That becomes the controller.
            new_topic_id: Makes the id of a topic whose znode has none; None: topics get no ids.
        """
        self.broker = broker
        self.context = ControllerContext(znodes=znodes, settings=settings or ControllerSettings())
        self._new_topic_id = new_topic_id
        self.partitions = PartitionStateMachine(self.context)
        self.replicas = ReplicaStateMachine(self.context)
        self.deletion = TopicDeletion(self.context, self.partitions, self.replicas)
        self._moves = Reassignments(self.context, self.partitions, self.replicas, self.deletion)
        self.context.epoch = znodes.elect_controller(broker)
        self._give_ids(list(znodes.topics))
        take_over(self.context, self.partitions, self.replicas, self._moves, self.deletion)

    def take_requests(self) -> tuple[BrokerRequest, ...]:
        """Return what it sent since the last call."""
        return self.context.outbox.take()

    def handle(self, event: Event) -> None:  # noqa: C901 - a table of events
        """Do what Kafka's controller does after this event."""
        match event:
            case BrokersChanged():
                self._brokers_changed()
            case TopicsChanged():
                self._topics_changed()
            case PartitionsChanged(topic):
                self._partitions_changed(topic)
            case DeletionsMarked():
                self._deletions_marked()
            case MovesWritten():
                self._moves.resume_all()
            case MovesAsked(targets):
                self.context.znodes.remove_moves([tp for tp in targets if tp in self.context.znodes.moves])
                self._moves.begin(targets)
            case ElectionsWritten():
                self._hold_elections(list(self.context.znodes.elections), Election.PREFERRED)
                self.context.znodes.remove_elections()
            case ElectionsAsked(partitions, election):
                self._hold_elections(partitions, election)
            case ShutdownAsked(broker):
                self._shut_down(broker)
            case IsrAltered(partition, isr):
                self._isr_altered(partition, isr)
            case ReplicasDeleted():
                self._replicas_deleted(event)
            case LogsFailed(broker, partitions):
                self.context.failed_logs.setdefault(broker, set()).update(partitions)
                self._go_offline([Replica(*tp, broker) for tp in partitions])
            case UncleanElectionAllowed(topic):
                self.partitions.elect_where_offline([topic])
            case _:
                assert_never(event)

    # --- brokers ------------------------------------------------------------------------------------------------

    def _brokers_changed(self) -> None:
        """Brokers that came, that were restarted between two looks (known since 2.2), and that are gone."""
        context = self.context
        registered = dict(context.znodes.brokers)
        came = sorted(registered.keys() - context.live.keys())
        gone = sorted(context.live.keys() - registered.keys())
        bounced = [
            broker
            for broker in sorted(registered.keys() & context.live.keys())
            if context.release >= KNOWS_BOUNCED_BROKERS and registered[broker] > context.live[broker]
        ]
        if came:
            context.live |= {broker: registered[broker] for broker in came}
            self._brokers_came(came)
        if bounced:
            self._brokers_left(bounced)
            context.live |= {broker: registered[broker] for broker in bounced}
            self._brokers_came(bounced)
        if gone:
            self._brokers_left(gone)

    def _brokers_came(self, brokers: list[int]) -> None:
        context = self.context
        for broker in brokers:
            context.failed_logs.pop(broker, None)
        context.send_metadata([], to=[broker for broker in context.live if broker not in brokers])
        context.send_metadata(context.states, to=brokers)
        replicas = context.replicas_on(brokers)
        self.replicas.move(replicas, ReplicaStatus.ONLINE)
        self.partitions.elect_where_offline()
        self._moves.resume([tp for tp in context.moving if set(brokers) & set(self._moves.target(tp))])
        self.deletion.resume({replica.topic for replica in replicas})

    def _brokers_left(self, brokers: list[int]) -> None:
        context = self.context
        for broker in brokers:
            context.live.pop(broker, None)
            context.failed_logs.pop(broker, None)
            context.shutting_down.discard(broker)
        self._go_offline(context.replicas_on(brokers))

    def _go_offline(self, replicas: list[Replica]) -> None:
        """Elect other leaders, take the replicas out of ISRs, and let deletions wait.

        Source: kafka.controller.KafkaController#onReplicasBecomeOffline (3.9).
        """
        context = self.context
        leaderless = [
            tp
            for tp, state in context.states.items()
            if tp.topic not in context.deleting and not context.is_online(state.leader, tp)
        ]
        self.partitions.move(leaderless, PartitionStatus.OFFLINE)
        self.partitions.elect_where_offline()
        self.replicas.move([r for r in replicas if r.topic not in context.deleting], ReplicaStatus.OFFLINE)
        self.deletion.fail([r for r in replicas if r.topic in context.deleting])
        context.send_metadata([])

    def _shut_down(self, broker: int) -> None:
        """Partitions of one replica alone stay until the broker is gone.

        Source: kafka.controller.KafkaController#doControlledShutdown (3.9; as in 1.0).
        """
        context = self.context
        context.shutting_down.add(broker)
        held = [
            replica
            for replica in context.replicas_on([broker])
            if len(context.replicas(replica.of)) > 1
            and replica.of in context.states
            and replica.topic not in context.deleting
        ]
        led = [replica.of for replica in held if context.states[replica.of].leader == broker]
        self.partitions.bring_online(led, Election.CONTROLLED_SHUTDOWN)
        followed = [replica for replica in held if replica.of not in led]
        self.replicas.move(followed, ReplicaStatus.OFFLINE)

    # --- topics -------------------------------------------------------------------------------------------------

    def _topics_changed(self) -> None:
        context = self.context
        new = [topic for topic in context.znodes.topics if topic not in context.assignments]
        for topic in [topic for topic in context.assignments if topic not in context.znodes.topics]:
            context.forget_topic(topic)
        self._give_ids(new)
        for topic in new:
            context.assignments[topic] = dict(context.znodes.topics[topic].assignment)
        self._made(list(context.partitions(new)))

    def _partitions_changed(self, topic: str) -> None:
        """Only partitions that it does not know count.

        A topic that is being deleted gets its old rows back; before 2.0 its znode stays as it was written.
        Source: kafka.controller.KafkaController#processPartitionModifications (3.9; in 1.0 $PartitionModifications).
        """
        context = self.context
        if topic not in context.znodes.topics or topic not in context.assignments:
            return
        written = context.znodes.topics[topic].assignment
        known = context.assignments[topic]
        added = {p: row for p, row in written.items() if p not in known or not known[p].replicas}
        if not added:
            return
        if topic in context.deleting and context.release < RESTORES_ROWS:
            return
        if topic in context.deleting:
            kept = {p: known[p] for p in written if p in known and TopicPartition(topic, p) in context.znodes.states}
            context.znodes.set_assignment(topic, kept)
            return
        known |= added
        self._made([TopicPartition(topic, p) for p in added])

    def _made(self, partitions: list[TopicPartition]) -> None:
        """Source: kafka.controller.KafkaController#onNewPartitionCreation (3.9)."""
        replicas = [Replica(*tp, broker) for tp in partitions for broker in self.context.replicas(tp)]
        self.partitions.move(partitions, PartitionStatus.NEW)
        self.replicas.move(replicas, ReplicaStatus.NEW)
        self.partitions.bring_online(partitions, Election.OFFLINE)
        self.replicas.move(replicas, ReplicaStatus.ONLINE)

    def _give_ids(self, topics: list[str]) -> None:
        """Topics get ids since protocol 2.8; the controller adds one that a znode lacks."""
        if self.context.release < TOPIC_IDS or self._new_topic_id is None:
            return
        for topic in topics:
            if self.context.znodes.topics[topic].topic_id is None:
                self.context.znodes.set_topic_id(topic, self._new_topic_id(topic))

    def _deletions_marked(self) -> None:
        context = self.context
        marked = list(context.znodes.markers)
        for topic in [topic for topic in marked if topic not in context.assignments]:
            context.znodes.remove_marker(topic)
        known = [topic for topic in marked if topic in context.assignments]
        if not context.settings.delete_topic_enable:
            for topic in known:
                context.znodes.remove_marker(topic)
            return
        # They are not queued yet, so this has no effect for them: a move that runs does not hold a deletion up.
        self.deletion.halt({tp.topic for tp in context.moving}.intersection(known), REASSIGNMENT)
        self.deletion.enqueue(known)

    def _replicas_deleted(self, event: ReplicasDeleted) -> None:
        failed = [Replica(*tp, event.broker) for tp in event.failed]
        self.deletion.fail(failed)
        self.deletion.complete([Replica(*tp, event.broker) for tp in event.partitions])

    # --- leaders ------------------------------------------------------------------------------------------------

    def _hold_elections(self, partitions: Sequence[TopicPartition], election: Election) -> None:
        """Elect where it is needed, and not in topics that are being deleted.

        Source: kafka.controller.KafkaController#processReplicaLeaderElection (3.9), and in 2.1 what handles
        PreferredReplicaLeaderElection.
        """
        context = self.context
        able = [tp for tp in partitions if context.replicas(tp) and tp.topic not in context.deleting]
        if not REPEATS_ELECTIONS <= context.release < LEAVES_LEADERS:
            able = [tp for tp in able if self.partitions.needs(election, tp)]
        self.partitions.bring_online(able, election)

    def _isr_altered(self, tp: TopicPartition, isr: tuple[int, ...]) -> None:
        context = self.context
        state = context.znodes.states.get(tp)
        if state is None or tp.topic in context.deleting or not context.replicas(tp):
            return
        epoch = context.epoch if context.release >= ALTERS_ISRS else state.controller_epoch
        context.write_state(tp, altered_by_leader(state, isr, controller_epoch=epoch))
        context.send_metadata([tp])
        self._moves.end_if_complete(tp)


def take_over(
    context: ControllerContext,
    partitions: PartitionStateMachine,
    replicas: ReplicaStateMachine,
    moves: Reassignments,
    deletion: TopicDeletion,
) -> None:
    """Read all znodes, give every partition and replica a state, and resume elections, moves and deletions.

    A new controller repairs nothing of the znodes that it finds, and goes on with what was begun.
    Source: kafka.controller.KafkaController#onControllerFailover (1.0 to 3.9).
    """
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
