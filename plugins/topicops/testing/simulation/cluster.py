"""The cluster: znodes, one controller at a time, and brokers that know only what they were told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from topicops.controller.assignments import ReplicaAssignment, TopicPartition
from topicops.controller.context import ControllerSettings
from topicops.controller.controller import Controller
from topicops.controller.events import (
    BrokersChanged,
    DeletionsMarked,
    Event,
    IsrAltered,
    PartitionsChanged,
    ReplicasDeleted,
    TopicsChanged,
)
from topicops.controller.requests import BrokerRequest, LeaderAndIsr, StopReplica, UpdateMetadata
from topicops.controller.znodes import TopicZnode, Znodes
from topicops.model.cluster.snapshot import Broker, LiveTopic, PartitionState
from topicops.testing.fake_cluster import topic_id_of
from topicops.testing.simulation.world import World

SESSION_S = 6.0
"""How long ZooKeeper waits for a broker that is dead."""
ELECTION_S = 0.2
REJOIN_S = 0.5
"""How long a follower needs to catch up."""


class ControllerDiedError(Exception):
    """The broker died in the middle of what its controller wrote."""


@dataclass(slots=True)
class MortalZnodes(Znodes):
    """Znodes whose writer may die before any of its writes."""

    writes_left: int | None = None
    """None: it lives."""

    def _before_write(self) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise ControllerDiedError
            self.writes_left -= 1

    def create_state(self, partition: TopicPartition, state: PartitionState) -> bool:
        self._before_write()
        return Znodes.create_state(self, partition, state)

    def set_state(self, partition: TopicPartition, state: PartitionState) -> None:
        self._before_write()
        Znodes.set_state(self, partition, state)

    def set_topic_id(self, topic: str, topic_id: str) -> None:
        self._before_write()
        Znodes.set_topic_id(self, topic, topic_id)

    def set_assignment(self, topic: str, assignment: Mapping[int, ReplicaAssignment]) -> None:
        self._before_write()
        Znodes.set_assignment(self, topic, assignment)

    def remove_topic(self, topic: str) -> None:
        self._before_write()
        Znodes.remove_topic(self, topic)

    def remove_config(self, topic: str) -> None:
        self._before_write()
        Znodes.remove_config(self, topic)

    def remove_marker(self, topic: str) -> None:
        self._before_write()
        Znodes.remove_marker(self, topic)


@dataclass(slots=True)
class SimulatedBroker:
    """One broker: whether it runs, and what it tells clients."""

    id: int
    rack: str
    is_up: bool = True
    metadata: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    heard_until: float = 0.0
    """Requests of the controller arrive in the order in which they were sent."""

    def knows(self, topic: str) -> bool:
        return any(tp.topic == topic for tp in self.metadata)


class SimulatedCluster:
    """Brokers of Kafka under ZooKeeper, in the time of ``world``."""

    def __init__(self, world: World, *, brokers: int = 3, settings: ControllerSettings | None = None) -> None:
        self.world = world
        self.settings = settings or ControllerSettings()
        self.znodes = MortalZnodes()
        self.brokers = {b: SimulatedBroker(b, f"r{b}") for b in range(1, brokers + 1)}
        self.controller: Controller | None = None
        self.zxid = 100
        self.created: dict[str, int] = {}
        """The czxid of each topic."""
        self.changed_at: defaultdict[str, int] = defaultdict(int)
        for broker in self.brokers.values():
            self._register(broker.id)
        self._elect()

    # --- what happens to brokers --------------------------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """It stops at once; ZooKeeper notices when its session ends."""
        if self.brokers[broker].is_up:
            self.world.tell(f"broker {broker} dies{' (the controller)' if self._is_controller(broker) else ''}")
            self._stop(broker)
            self.world.after(self.world.random.uniform(0.1, SESSION_S), lambda: self._end_session(broker))

    def start(self, broker: int) -> None:
        if not self.brokers[broker].is_up:
            self.world.tell(f"broker {broker} starts")
            self.brokers[broker].is_up = True
            self._end_session(broker)
            self._register(broker)
            self.notify(BrokersChanged())
            if self.controller is None:
                self.world.after(ELECTION_S, self._elect)

    def fail_over(self) -> None:
        """The controller's session ends, and its broker lives on."""
        if self.controller is not None:
            self.world.tell(f"the controller on broker {self.controller.broker} loses its session")
            self._resign()

    def die_while_writing(self, writes: int) -> None:
        """The controller's broker dies after so many more writes of its controller."""
        self.znodes.writes_left = writes

    def _stop(self, broker: int) -> None:
        self.brokers[broker].is_up = False
        self.brokers[broker].metadata.clear()
        if self._is_controller(broker):
            self.controller = None

    def _end_session(self, broker: int) -> None:
        if broker in self.znodes.brokers and not (self.brokers[broker].is_up and self._was_noticed(broker)):
            del self.znodes.brokers[broker]
            if self.znodes.controller == broker:
                self._resign()
            else:
                self.notify(BrokersChanged())

    def _was_noticed(self, broker: int) -> bool:
        """Whether the registration is that of the running process, and not of the dead one before."""
        return self.znodes.brokers[broker] >= self._epochs.get(broker, 0)

    @property
    def _epochs(self) -> Mapping[int, int]:
        return {broker: epoch for broker, epoch in self.znodes.brokers.items() if self.brokers[broker].is_up}

    def _register(self, broker: int) -> None:
        self.zxid += 1
        self.znodes.brokers[broker] = self.zxid

    def _resign(self) -> None:
        self.controller, self.znodes.controller = None, None
        self.znodes.writes_left = None
        self.world.after(self.world.random.uniform(0.02, ELECTION_S), self._elect)

    def _elect(self) -> None:
        """The first broker that notices; a controller that dies while it takes over is followed by the next."""
        able = [b for b in sorted(self.znodes.brokers) if self.brokers[b].is_up]
        if self.controller is not None or not able:
            return
        broker = self.world.random.choice(able)
        try:
            self.controller = Controller(
                self.znodes, broker=broker, settings=self.settings, new_topic_id=self._new_topic_id
            )
        except ControllerDiedError:
            self._die_in_the_middle(broker)
            return
        self._send(self.controller.take_requests())

    def _new_topic_id(self, topic: str) -> str:
        self.zxid += 1
        return topic_id_of(topic, self.zxid)

    def _is_controller(self, broker: int) -> bool:
        return self.controller is not None and self.controller.broker == broker

    # --- the controller and what it sends -----------------------------------------------------------------------

    def notify(self, event: Event) -> None:
        """A watch fires, or a request arrives: whoever is the controller by then handles it."""
        self.world.soon(lambda: self._handle(event))

    def _handle(self, event: Event) -> None:
        if self.controller is None:
            return
        controller = self.controller
        try:
            controller.handle(event)
        except ControllerDiedError:
            self._die_in_the_middle(controller.broker)
        # What was sent before it died is on its way.
        self._send(controller.take_requests())

    def _die_in_the_middle(self, broker: int) -> None:
        self.world.tell(f"broker {broker} (the controller) dies between two writes")
        self.znodes.writes_left = None
        self._stop(broker)
        self.world.after(self.world.random.uniform(0.1, SESSION_S), lambda: self._end_session(broker))

    def _send(self, requests: Sequence[BrokerRequest]) -> None:
        for request in requests:
            broker = self.brokers[request.broker]
            arrival = max(broker.heard_until, self.world.now + self.world.random.uniform(0.001, 0.02))
            broker.heard_until = arrival
            self.world.after(arrival - self.world.now, partial(self._receive, request))

    def _receive(self, request: BrokerRequest) -> None:
        broker = self.brokers[request.broker]
        if not broker.is_up:
            return
        match request:
            case UpdateMetadata():
                for tp, state in request.partitions.items():
                    if state is None:
                        broker.metadata.pop(tp, None)
                    else:
                        broker.metadata[tp] = state
            case StopReplica():
                if request.delete:
                    self.notify(ReplicasDeleted(request.broker, (request.partition,)))
            case LeaderAndIsr():
                self._follow(request)

    def _follow(self, request: LeaderAndIsr) -> None:
        if request.broker != request.state.leader and request.broker not in request.state.isr:
            delay = self.world.random.uniform(0.05, REJOIN_S)
            self.world.after(delay, lambda: self._catch_up(request.broker, request.partition))

    def _catch_up(self, broker: int, tp: TopicPartition) -> None:
        state = self.znodes.states.get(tp)
        znode = self.znodes.topics.get(tp.topic)
        if state is None or znode is None or state.leader not in self.brokers or not self.brokers[state.leader].is_up:
            return
        row = znode.assignment.get(tp.partition)
        if row and broker in row.replicas and broker not in state.isr and self.brokers[broker].is_up:
            self._handle(IsrAltered(tp, (*state.isr, broker)))

    # --- writes of brokers and of other hands -------------------------------------------------------------------

    def write_topic(self, topic: str, rows: Mapping[int, Sequence[int]]) -> None:
        self.zxid += 1
        self.created[topic] = self.zxid
        topic_id = topic_id_of(topic, self.zxid)
        rows_by_id = {p: ReplicaAssignment(tuple(row)) for p, row in rows.items()}
        self.znodes.topics[topic] = TopicZnode(rows_by_id, topic_id)
        self.notify(TopicsChanged())

    def write_config(self, topic: str, configs: Mapping[str, str]) -> None:
        self.zxid += 1
        self.changed_at[topic] = self.zxid
        self.znodes.configs[topic] = dict(configs)

    def write_partitions(self, topic: str, rows: Mapping[int, Sequence[int]]) -> None:
        self.zxid += 1
        added = {p: ReplicaAssignment(tuple(row)) for p, row in rows.items()}
        self.znodes.topics[topic].assignment |= added
        self.notify(PartitionsChanged(topic))

    def write_marker(self, topic: str) -> None:
        self.zxid += 1
        self.znodes.markers[topic] = None
        self.notify(DeletionsMarked())

    # --- what a reader sees -------------------------------------------------------------------------------------

    def live(self, topic: str) -> LiveTopic | None:
        if topic not in self.znodes.topics:
            return None
        found = self.znodes.topic(topic)
        return LiveTopic(
            name=topic,
            topic_id=found.topic_id,
            czxid=self.created.get(topic),
            mzxid=self.zxid,
            assignment=found.assignment,
            adding=found.adding,
            removing=found.removing,
            overrides=dict(found.overrides),
            states=found.states,
        )

    def registered(self) -> dict[int, Broker]:
        return {
            b: Broker(id=b, rack=self.brokers[b].rack, endpoints=(f"PLAINTEXT://127.0.0.1:{9090 + b}",), epoch=epoch)
            for b, epoch in sorted(self.znodes.brokers.items())
        }

    def is_led(self, topic: str) -> bool:
        """Whether the controller's broker tells clients of a leader of each partition."""
        if self.controller is None or topic not in self.znodes.topics:
            return False
        metadata = self.brokers[self.controller.broker].metadata
        return all(
            (state := metadata.get(TopicPartition(topic, p))) is not None and state.leader >= 0
            for p in self.znodes.topics[topic].assignment
        )

    def is_at_rest(self) -> bool:
        """All brokers run and are registered, nothing is being deleted, and every replica is in sync."""
        if self.controller is None or set(self.znodes.brokers) != set(self.brokers) or self.znodes.markers:
            return False
        return all(
            (state := self.znodes.states.get(TopicPartition(name, p))) is not None
            and state.leader in self.znodes.brokers
            and set(state.isr) == set(row.replicas)
            for name, znode in self.znodes.topics.items()
            for p, row in znode.assignment.items()
        )

    def heal(self) -> None:
        """Start what is dead, and wait until all is well."""
        self.znodes.writes_left = None
        for broker in self.brokers:
            self.start(broker)
        self.world.wait_until(self.is_at_rest, limit_s=120.0, step_s=0.5)
