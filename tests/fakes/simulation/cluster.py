"""The cluster: znodes, one controller at a time, and brokers that know only what they were told."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fakes.controller.context import ControllerSettings
from fakes.controller.controller import Controller
from fakes.controller.messages import (
    BrokerRequest,
    BrokersChanged,
    DeletionsMarked,
    ElectionsWritten,
    Event,
    IsrAltered,
    LeaderAndIsr,
    LogsFailed,
    MovesAsked,
    MovesWritten,
    PartitionsChanged,
    ReplicasDeleted,
    ShutdownAsked,
    StopReplica,
    TopicsChanged,
    UpdateMetadata,
)
from fakes.controller.znodes import TopicPartition
from fakes.simulation.broker import KnownPartition, Message, MetadataUpdate, SimulatedBroker
from fakes.simulation.world import World
from fakes.simulation.zookeeper import SimulatedZooKeeper, WriterDiedError
from topicops.model.cluster.snapshot import Broker, LiveTopic, PartitionState
from topicops.model.plans.plan import GroupUse
from topicops.model.ports import PartitionView
from topicops.model.release import REASSIGNMENTS_IN_TOPICS, TOPIC_IDS, Release

SESSION_S = 6.0
"""How long ZooKeeper waits for a broker that is dead."""
ELECTION_S = 0.2
REJOIN_S = 0.5
"""How long a follower needs to catch up."""
LAG_S = 10.0
"""How long a follower may be behind before its leader takes it out of the ISR: ``replica.lag.time.max.ms``."""
THREE_RACKS: Mapping[int, str | None] = {1: "r1", 2: "r2", 3: "r3"}


READ_TYPES = ("consumer", "share")
"""Of groups that are read in detail here; one of another type may use any topic."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A group that reads one topic."""

    type: str
    topic: str
    since: float
    """In the world's time."""

    def use_of(self, topic: str) -> GroupUse | None:
        """As a process sees it; None: it surely does not use the topic."""
        unread = "" if self.type in READ_TYPES else "its type is not known"
        return (
            GroupUse(state="Stable", lag=None, type=self.type, unread=unread) if unread or topic == self.topic else None
        )


class SimulatedCluster:
    """Brokers of Kafka under ZooKeeper, in the time of ``world``."""

    def __init__(
        self,
        world: World,
        *,
        racks: Mapping[int, str | None] = THREE_RACKS,
        settings: ControllerSettings | None = None,
        choose: Callable[[Sequence[int]], int] | None = None,
    ) -> None:
        """Start all brokers.

        Args:
            racks: Of each broker.
            choose: Which of the live brokers becomes the controller; None: any.
        """
        self.world = world
        self.settings = settings or ControllerSettings()
        self.znodes = SimulatedZooKeeper()
        self.brokers = {b: SimulatedBroker(b, rack) for b, rack in racks.items()}
        self.controller: Controller | None = None
        self.held_moves: set[str] = set()
        """Topics whose new replicas do not catch up."""
        self.end_offsets: dict[str, dict[int, int]] = {}
        """By topic and partition; a topic keeps them when it is deleted."""
        self.readers: dict[str, Reader] = {}
        """Groups with a member, by name."""
        self._held: list[Callable[[], None]] = []
        """What comes when the controller's broker goes on."""
        self._choose = choose or world.random.choice
        for broker in self.brokers:
            self.znodes.register(broker)
        self._elect()

    @property
    def release(self) -> Release:
        return self.settings.release

    # --- what happens to brokers --------------------------------------------------------------------------------

    def kill(self, broker: int, *, session_s: float | None = None) -> None:
        """It stops at once; ZooKeeper notices when its session ends, which is after some seconds if not given."""
        if self.brokers[broker].is_up:
            self.world.tell(f"broker {broker} dies{self._named_controller(broker)}")
            self._stop(broker)
            delay_s = self.world.random.uniform(0.1, SESSION_S) if session_s is None else session_s
            self.world.after(delay_s, lambda: self._end_session(broker))

    def shut_down(self, broker: int) -> None:
        """Stop it as a person does: it first has its partitions led by others, and ends its session itself."""
        if self.controller is not None and self.brokers[broker].is_up:
            self._handle(ShutdownAsked(broker))
        self.kill(broker, session_s=0.0)

    def start(self, broker: int) -> None:
        if not self.brokers[broker].is_up:
            self.world.tell(f"broker {broker} starts")
            self._end_session(broker)
            self.brokers[broker].is_up = True
            self.znodes.register(broker)
            self.notify(BrokersChanged())
            if self.controller is None:
                self.world.after(ELECTION_S, self._elect)

    def fail_disk(self, broker: int) -> None:
        """The log directory with all its logs of now fails: it neither serves nor deletes them any more."""
        found = self.brokers[broker]
        found.failed_at = self.world.now
        found.failed_logs |= found.logs
        found.logs.clear()
        self.world.soon(partial(self._tell_of_failed_logs, broker))
        for tp in found.failed_logs:
            self.world.after(LAG_S, partial(self._check_isr, tp))

    def replace_disk(self, broker: int) -> None:
        """With a restart; its followers copy everything anew."""
        found = self.brokers[broker]
        if found.failed_at is not None:
            self.kill(broker, session_s=0.0)
            found.failed_at = None
            found.failed_logs.clear()
            self.start(broker)

    def _tell_of_failed_logs(self, broker: int) -> None:
        """The controller asks the broker, and takes KAFKA_STORAGE_ERROR for news where it did not know it.

        Source: kafka.controller.KafkaController#processLeaderAndIsrResponseReceived (3.9).
        """
        if self.controller is None or self._is_held(partial(self._tell_of_failed_logs, broker)):
            return
        known = self.controller.context.failed_logs.get(broker, set())
        if news := self.brokers[broker].failed_logs - known:
            self._handle(LogsFailed(broker, tuple(sorted(news))))

    def stand_still(self, broker: int, *, session_s: float | None = SESSION_S) -> None:
        """As after SIGSTOP; leaders do not notice. Its session ends some time later, or with None does not."""
        self.brokers[broker].is_silent = True
        if session_s is not None:
            self.world.after(session_s, lambda: self._expire(broker))

    def go_on(self, broker: int) -> None:
        found = self.brokers[broker]
        found.is_silent = False
        if found.is_up and broker not in self.znodes.brokers:
            self.znodes.register(broker)
            self.notify(BrokersChanged())
        if self.controller is None:
            self.world.after(ELECTION_S, self._elect)
        waiting, found.unread = found.unread, []
        for message in waiting:
            self._receive(broker, message)
        held, self._held = self._held, []
        for action in held:
            action()
        # Its followers have asked it all the time.
        for follower in self.brokers:
            self._follow_again(follower)

    def slow_down(self, broker: int) -> None:
        """Its followers fall behind, and their leaders take them out of the ISR."""
        self.brokers[broker].is_slow = True
        for tp, state in list(self.znodes.states.items()):
            if broker in state.isr and state.leader != broker:
                self.world.after(LAG_S, partial(self._check_isr, tp))

    def speed_up(self, broker: int) -> None:
        self.brokers[broker].is_slow = False
        self._follow_again(broker)

    def fail_over(self) -> None:
        """The controller's session ends, and its broker lives on."""
        if self.controller is not None:
            self.world.tell(f"the controller on broker {self.controller.broker} loses its session")
            self._resign()

    def die_while_writing(self, writes: int) -> None:
        """The controller's broker dies after so many more writes of its controller."""
        self.znodes.writes_left = writes

    def die_between_two_writes(self) -> bool:
        """The controller's broker dies now, if that is due; it handles a request itself."""
        if self.znodes.writes_left != 0 or self.controller is None:
            return False
        self.znodes.writes_left = None
        self.kill(self.controller.broker)
        return True

    def _stop(self, broker: int) -> None:
        self.brokers[broker].stop()
        if self._is_controller(broker):
            self.controller = None

    def _end_session(self, broker: int) -> None:
        """Of the process that died; a process that was started since has its own."""
        if not self.brokers[broker].is_up:
            self._unregister(broker)

    def _expire(self, broker: int) -> None:
        """End the session of a process that stands still."""
        if self.brokers[broker].is_silent:
            self.world.tell(f"the session of broker {broker} ends{self._named_controller(broker)}")
            self._unregister(broker)

    def _unregister(self, broker: int) -> None:
        if broker not in self.znodes.brokers:
            return
        del self.znodes.brokers[broker]
        if self.znodes.controller == broker:
            self._resign()
        else:
            self.notify(BrokersChanged())

    def _resign(self) -> None:
        self.controller, self.znodes.controller = None, None
        self.znodes.writes_left = None
        self.world.after(self.world.random.uniform(0.02, ELECTION_S), self._elect)

    def _elect(self) -> None:
        """The first broker that notices; a controller that dies while it takes over is followed by the next."""
        able = [b for b in sorted(self.znodes.brokers) if self.brokers[b].answers]
        if self.controller is not None or not able:
            return
        broker = self._choose(able)
        try:
            self.controller = Controller(
                self.znodes, broker=broker, settings=self.settings, new_topic_id=self._new_topic_id
            )
        except WriterDiedError:
            self._die_in_the_middle(broker)
            return
        self._send(self.controller)

    def _new_topic_id(self, topic: str) -> str:
        return topic_id_of(topic, self.znodes.next_zxid())

    def _is_controller(self, broker: int) -> bool:
        return self.controller is not None and self.controller.broker == broker

    def _named_controller(self, broker: int) -> str:
        return " (the controller)" if self._is_controller(broker) else ""

    def _is_held(self, action: Callable[[], None]) -> bool:
        """Whether the controller's broker stands still: then the action comes when it goes on."""
        if self.controller is None or self.brokers[self.controller.broker].answers:
            return False
        self._held.append(action)
        return True

    # --- the controller and what it sends -----------------------------------------------------------------------

    def notify(self, event: Event) -> None:
        """A watch fires, or a request arrives: whoever is the controller by then handles it."""
        self.world.soon(lambda: self._handle(event))

    def _handle(self, event: Event) -> None:
        if self.controller is None or self._is_held(partial(self._handle, event)):
            return
        controller = self.controller
        try:
            controller.handle(event)
        except WriterDiedError:
            self._die_in_the_middle(controller.broker)
        # What was sent before it died is on its way.
        self._send(controller)

    def _die_in_the_middle(self, broker: int) -> None:
        self.world.tell(f"broker {broker} (the controller) dies between two writes")
        self.znodes.writes_left = None
        self._stop(broker)
        self.world.after(self.world.random.uniform(0.1, SESSION_S), lambda: self._end_session(broker))

    def _send(self, controller: Controller) -> None:
        for request in controller.take_requests():
            broker = self.brokers.get(request.broker)
            if broker is None:
                continue
            arrival = max(broker.heard_until, self.world.now + self.world.random.uniform(0.001, 0.02))
            broker.heard_until = arrival
            message = self._message(controller, request)
            self.world.after(arrival - self.world.now, partial(self._receive, request.broker, message))

    def _message(self, controller: Controller, request: BrokerRequest) -> Message:
        if not isinstance(request, UpdateMetadata):
            return request
        known = {
            tp: None if state is None else self._known(tp, state, controller.context.replicas(tp))
            for tp, state in request.partitions.items()
        }
        return MetadataUpdate(request.live, known)

    def _known(self, tp: TopicPartition, state: PartitionState, replicas: Sequence[int]) -> KnownPartition:
        znode = self.znodes.topics.get(tp.topic)
        view = PartitionView(leader=state.leader, replicas=tuple(replicas), isr=state.isr)
        return KnownPartition(view, znode.topic_id if znode else None)

    # --- what brokers do ----------------------------------------------------------------------------------------

    def _receive(self, broker: int, message: Message) -> None:
        found = self.brokers[broker]
        if not found.is_up:
            return
        if found.is_silent:
            found.unread.append(message)
            return
        match message:
            case MetadataUpdate():
                found.learn(message)
            case StopReplica(_, tp, delete):
                if delete and tp in found.failed_logs:
                    self.notify(ReplicasDeleted(broker, (), failed=(tp,)))
                elif delete:
                    found.logs.discard(tp)
                    self.notify(ReplicasDeleted(broker, (tp,)))
            case LeaderAndIsr(_, tp, state) if tp in found.failed_logs:
                self.world.soon(partial(self._tell_of_failed_logs, broker))
            case LeaderAndIsr(_, tp, state):
                found.logs.add(tp)
                if state.leader == broker:
                    self.world.after(LAG_S, partial(self._check_isr, tp))
                elif broker not in state.isr:
                    self._follow(broker, tp)

    def _follow(self, broker: int, tp: TopicPartition) -> None:
        self.world.after(self.world.random.uniform(0.05, REJOIN_S), partial(self._catch_up, broker, tp))

    def _follow_again(self, broker: int) -> None:
        for tp, state in list(self.znodes.states.items()):
            if broker not in state.isr and broker in self._replicas(tp):
                self._follow(broker, tp)

    def _catch_up(self, broker: int, tp: TopicPartition) -> None:
        if self._is_held(partial(self._catch_up, broker, tp)):
            return
        state, found = self.znodes.states.get(tp), self.brokers[broker]
        if state is None or broker in state.isr or not self._is_led(state) or tp.topic in self.held_moves:
            return
        if broker in self._replicas(tp) and found.answers and not found.is_slow and tp not in found.failed_logs:
            self._handle(IsrAltered(tp, (*state.isr, broker)))

    def _check_isr(self, tp: TopicPartition) -> None:
        """What a leader does twice in ``LAG_S``: followers that are dead or too slow leave the ISR."""
        if self._is_held(partial(self._check_isr, tp)):
            return
        state = self.znodes.states.get(tp)
        if state is None or not self._is_led(state):
            return
        isr = tuple(b for b in state.isr if b == state.leader or self._keeps_up(b, tp))
        if isr != state.isr:
            self._handle(IsrAltered(tp, isr))

    def _keeps_up(self, broker: int, tp: TopicPartition) -> bool:
        found = self.brokers.get(broker)
        return found is not None and found.is_up and not found.is_slow and tp not in found.failed_logs

    def _is_led(self, state: PartitionState) -> bool:
        return state.leader in self.brokers and self.brokers[state.leader].answers

    def _replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        znode = self.znodes.topics.get(tp.topic)
        row = znode.assignment.get(tp.partition) if znode else None
        return row.replicas if row else ()

    # --- writes of brokers and of other hands -------------------------------------------------------------------

    def write_topic(self, topic: str, rows: Mapping[int, Sequence[int]], *, by_broker: bool = True) -> None:
        """Brokers give it an id, since 2.8; a znode that somebody else writes has none, and the controller adds it."""
        has_id = by_broker and self.release >= TOPIC_IDS
        self.znodes.put_topic(topic, rows, topic_id_of(topic, self.znodes.zxid) if has_id else None)
        self.end_offsets[topic] = dict.fromkeys(rows, 0)
        self.notify(TopicsChanged())

    def write_config(self, topic: str, configs: Mapping[str, str]) -> None:
        self.znodes.put_config(topic, configs)

    def write_partitions(self, topic: str, rows: Mapping[int, Sequence[int]]) -> None:
        self.znodes.put_rows(topic, rows)
        self.end_offsets.setdefault(topic, {}).update(dict.fromkeys(rows, 0))
        self.notify(PartitionsChanged(topic))

    def write_marker(self, topic: str) -> None:
        self.znodes.put_marker(topic)
        self.notify(DeletionsMarked())

    def write_election(self, tp: TopicPartition) -> None:
        """Write ``/admin/preferred_replica_election``."""
        self.znodes.elections[tp] = None
        self.notify(ElectionsWritten())

    def write_moves(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Write ``/admin/reassign_partitions``."""
        self.znodes.moves.update(targets)
        self.notify(MovesWritten())

    def move(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """As the tools of this release do: by a request since 2.4, by the znode before."""
        if self.release >= REASSIGNMENTS_IN_TOPICS:
            self.notify(MovesAsked(targets))
        else:
            self.write_moves(targets)

    def let_moves_end(self, topic: str) -> None:
        """Let the new replicas of a topic in ``held_moves`` catch up."""
        self.held_moves.discard(topic)
        for broker in self.brokers:
            self._follow_again(broker)

    def wipe(self, topic: str) -> None:
        """Remove a topic with all traces, in ZooKeeper and on all brokers, as if it had been deleted before."""
        self.znodes.remove_topic_by_hand(topic)
        if self.controller is not None:
            self.controller.context.forget_states(topic)
        self.notify(TopicsChanged())
        for broker in self.brokers.values():
            broker.logs = {tp for tp in broker.logs if tp.topic != topic}
            broker.learn(MetadataUpdate(tuple(broker.known_brokers), dict.fromkeys(_of(topic, broker.metadata))))

    def put_as_is(self, live: LiveTopic) -> None:
        """Put a topic there as it is given, with logs and in metadata; the controller does not hear of it."""
        self.znodes.put_as_is(live)
        states = {TopicPartition(live.name, p): state for p, state in (live.states or {}).items()}
        known = {tp: self._known(tp, state, live.assignment[tp.partition]) for tp, state in states.items()}
        for broker in self.brokers.values():
            held = {TopicPartition(live.name, p) for p, row in live.assignment.items() if broker.id in row}
            broker.logs = {tp for tp in broker.logs if tp.topic != live.name} | held
            forgotten = dict.fromkeys(_of(live.name, broker.metadata))
            broker.learn(MetadataUpdate(tuple(broker.known_brokers), {**forgotten, **known}))

    # --- what a reader sees -------------------------------------------------------------------------------------

    def live(self, topic: str) -> LiveTopic | None:
        return self.znodes.live(topic)

    def registered(self) -> dict[int, Broker]:
        return {
            b: Broker(id=b, rack=self.brokers[b].rack, endpoints=(f"PLAINTEXT://127.0.0.1:{9090 + b}",), epoch=epoch)
            for b, epoch in sorted(self.znodes.brokers.items())
        }

    def is_led(self, topic: str) -> bool:
        """Return whether the controller's broker tells clients of a leader of each partition."""
        if self.controller is None or topic not in self.znodes.topics:
            return False
        metadata = self.brokers[self.controller.broker].metadata
        return all(
            (known := metadata.get(TopicPartition(topic, p))) is not None and known.view.leader >= 0
            for p in self.znodes.topics[topic].assignment
        )

    def is_at_rest(self) -> bool:
        """All brokers run, nothing is being deleted, every replica is in sync, and every broker knows that."""
        if self.controller is None or set(self.znodes.brokers) != set(self.brokers) or self.znodes.markers:
            return False
        return all(
            (state := self.znodes.states.get(TopicPartition(name, p))) is not None
            and state.leader in self.znodes.brokers
            and set(state.isr) == set(row.replicas)
            and all(self._knows(broker, TopicPartition(name, p), state) for broker in self.brokers.values())
            for name, znode in self.znodes.topics.items()
            for p, row in znode.assignment.items()
        )

    def _knows(self, broker: SimulatedBroker, tp: TopicPartition, state: PartitionState) -> bool:
        known = broker.metadata.get(tp)
        return known is not None and (known.view.leader, known.view.isr) == (state.leader, state.isr)

    def _forget_what_is_gone(self, broker: int) -> None:
        """Restart a broker that knows topics which were deleted while it had no session: nobody tells it of them.

        Source: kafka.server.metadata.ZkMetadataCache#updateMetadata (3.9), which adds to what it knows (KAFKA-15799).
        """
        if any(tp.topic not in self.znodes.topics for tp in self.brokers[broker].metadata):
            self.kill(broker, session_s=0.0)
            self.start(broker)

    def heal(self) -> None:
        """Start what is dead, and wait until all is well."""
        self.znodes.writes_left = None
        for broker in self.brokers:
            self.replace_disk(broker)
            self.start(broker)
            self.go_on(broker)
            self.brokers[broker].catch_up_with_metadata()
            self._forget_what_is_gone(broker)
        self.world.wait_until(self.is_at_rest, limit_s=120.0, step_s=0.5)


def _of(topic: str, metadata: Mapping[TopicPartition, KnownPartition]) -> list[TopicPartition]:
    return [tp for tp in metadata if tp.topic == topic]


def topic_id_of(topic: str, zxid: int) -> str:
    digest = hashlib.sha256(f"{topic}:{zxid}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
