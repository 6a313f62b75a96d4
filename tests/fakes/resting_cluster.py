"""A simulated cluster for tests of one step: it rests after each act, and answers what the test wants it to answer.

It behaves as the scenarios of ``testing.scenarios`` say, which real brokers pass too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fakes.controller.context import ControllerSettings
from fakes.controller.znodes import TopicPartition
from fakes.request_checks import IS_MOVING
from fakes.simulation.admin import ACCEPTED, SimulatedBrokersApi
from fakes.simulation.cluster import THREE_RACKS, SimulatedCluster
from fakes.simulation.ports import CLUSTER_ID, SimulatedPorts
from fakes.simulation.world import World
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import ClusterSnapshot, DirectoriesByBroker, LiveTopic, LogDirectories
from topicops.model.codes import Code
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.changes import Action, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import TopicActivity
from topicops.model.ports import Answer, AnswerKind, BrokerLogs, BrokerView, LogQuestions, TopicSink
from topicops.model.release import USUAL, MissingRequests, Release, Releases


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one mutating request instead of its usual effect."""

    kind: AnswerKind
    error: str
    takes_effect: bool = False
    raises: bool = False
    """The client raises an error instead of an answer."""
    wait_s: float = 0.0
    """How long a quota delays the next request."""
    left: bool = True
    """False: the client did not send it."""


UNCLEAR_BUT_DONE = Fault(AnswerKind.UNCLEAR, "REQUEST_TIMED_OUT (7): timed out", takes_effect=True)
UNCLEAR_AND_NOT_DONE = Fault(AnswerKind.UNCLEAR, "REQUEST_TIMED_OUT (7): timed out")
CONTROLLER_DIED = Fault(
    AnswerKind.CONTROLLER_MOVED, f"NOT_CONTROLLER (41): no longer the controller ({Code.CONTROLLER_MOVED})"
)
CONTROLLER_DIED_AFTER = Fault(CONTROLLER_DIED.kind, CONTROLLER_DIED.error, takes_effect=True)
MUST_WAIT = Fault(AnswerKind.RETRY, "THROTTLING_QUOTA_EXCEEDED (89): The throttling quota has been exceeded.")
REFUSED_BY_POLICY = Fault(AnswerKind.FAILED, "POLICY_VIOLATION (44): not by this name")
CONNECTION_LOST = Fault(AnswerKind.UNCLEAR, "connection to broker 1 lost", takes_effect=True, raises=True)


@dataclass(frozen=True, slots=True)
class Request:
    """A mutation as the brokers saw it."""

    action: Action
    topics: tuple[str, ...]


class RestingCluster(SimulatedPorts):
    """Fills every port of a cluster. The live broker with the lowest id is the controller."""

    def __init__(
        self,
        *,
        racks: Mapping[int, str | None] = THREE_RACKS,
        cluster_id: str = CLUSTER_ID,
        release: Release = USUAL,
        deletes_topics: bool = True,
    ) -> None:
        """Start all brokers.

        Args:
            deletes_topics: False: as with ``delete.topic.enable=false``.
        """
        settings = ControllerSettings(release=release, delete_topic_enable=deletes_topics)
        super().__init__(SimulatedCluster(World(0), racks=racks, settings=settings, choose=min), cluster_id=cluster_id)
        self.requests: list[Request] = []
        self.asked: list[str] = []
        """Each question about metadata to brokers, by its name."""
        self.unreachable = False
        """ZooKeeper does not answer."""
        self.controller_keeps_changing = False
        """Every read finds another controller epoch."""
        self.has_controller = True
        self.questions_answered = True
        self.cluster_id_of_brokers = cluster_id
        """The cluster id that the brokers answer."""
        self.missing_logs: set[tuple[int, str, int]] = set()
        """Broker, topic and partition without a log directory."""
        self.idle_logs: set[tuple[int, str, int]] = set()
        """Logs that their broker does not serve."""
        self.unread_logs: dict[tuple[int, str, int], str] = {}
        """Logs that their leader cannot read, with its error."""
        self.known_whole: set[int] = set()
        """Brokers of which no log directory has failed, as they say even while they are paused."""
        self.silent_disks: set[int] = set()
        self.hidden_disks: set[int] = set()
        """Brokers that offer no request about their disks."""
        """Brokers that do not describe their log directories."""
        self.reported_overrides: dict[str, Mapping[str, str] | str] = {}
        """What brokers answer about a topic's overrides, where that is not what it has."""
        self._api = SimulatedBrokersApi(self.cluster)
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._rejected: dict[str, str] = {}
        self._before_ready: deque[Callable[[], None]] = deque()
        self._before_requests: deque[Callable[[], None]] = deque()
        self._rest()

    # --- what a test does to brokers ----------------------------------------------------------------------------

    def start_broker(self, broker: int) -> None:
        self.cluster.start(broker)
        self._rest()

    def stop_broker(self, broker: int) -> None:
        self.cluster.kill(broker)
        self._rest()

    def pause_broker(self, broker: int) -> None:
        """Stop its answers; it stays registered, leads, and is in the ISR."""
        self.cluster.stand_still(broker, session_s=None)

    def fail_disk(self, broker: int) -> None:
        """The log directory that holds all its logs of now."""
        self.cluster.fail_disk(broker)
        self._rest()

    def resume_broker(self, broker: int) -> None:
        self.cluster.go_on(broker)
        self._rest()

    def hold_back(self, broker: int) -> None:
        """Let the broker fall behind as a follower: it keeps what it leads, and is in no other ISR."""
        self.cluster.slow_down(broker)
        self._rest()

    def catch_up(self, broker: int) -> None:
        self.cluster.speed_up(broker)
        self._rest()

    def freeze_metadata(self, broker: int) -> None:
        """Keep the broker's metadata as it is now."""
        self.cluster.brokers[broker].is_behind = True

    def thaw_metadata(self, broker: int) -> None:
        self.cluster.brokers[broker].catch_up_with_metadata()

    def leave_log(self, topic: str, partition: int) -> None:
        """Leave a log of a topic that is gone on every broker."""
        for broker in self.cluster.brokers.values():
            broker.logs.add(TopicPartition(topic, partition))

    # --- what a test does to topics, as another program would ---------------------------------------------------

    def put_topic(self, topic: str, *replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> LiveTopic:
        self.cluster.write_config(topic, configs or {})
        self.cluster.write_topic(topic, {index: tuple(row) for index, row in enumerate(replicas)})
        self._rest()
        return self.live(topic)

    def put_as_is(self, live: LiveTopic) -> None:
        """Put a topic into the cluster exactly as given; the controller does nothing about it."""
        self.cluster.put_as_is(live)

    def set_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set, or with None remove, overrides."""
        merged: dict[str, str | None] = {**self.cluster.znodes.configs.get(topic, {}), **configs}
        self.cluster.write_config(topic, {name: value for name, value in merged.items() if value is not None})

    def add_rows(self, topic: str, *replicas: Sequence[int]) -> None:
        first = self.live(topic).partitions
        self.cluster.write_partitions(topic, {first + index: tuple(row) for index, row in enumerate(replicas)})
        self._rest()

    def remove_topic(self, topic: str) -> None:
        """Delete with all traces."""
        self.cluster.wipe(topic)
        self._rest()

    def start_reassignment(self, topic: str, partition: int, *, adding: Sequence[int], removing: Sequence[int]) -> None:
        """Begin to move a partition; the move runs until ``end_reassignment``."""
        row = self.live(topic).assignment[partition]
        target = tuple(broker for broker in (*row, *adding) if broker not in removing)
        self.cluster.held_moves.add(topic)
        self.cluster.move({TopicPartition(topic, partition): target})
        self._rest()

    def end_reassignment(self, topic: str) -> None:
        """Let the replicas arrive; old brokers keep the name of a topic that was deleted meanwhile, for good."""
        self.cluster.let_moves_end(topic)
        self._rest()

    def name_in_reassignment(self, topic: str) -> None:
        """Let ``/admin/reassign_partitions`` name a topic that does not move."""
        self.cluster.znodes.moves[TopicPartition(topic, 0)] = ()

    def live(self, topic: str) -> LiveTopic:
        live = self.cluster.live(topic)
        if live is None:
            raise KeyError(topic)
        return live

    @property
    def end_offsets(self) -> dict[str, dict[int, int]]:
        """By topic and partition."""
        return self.cluster.end_offsets

    # --- what a test does to requests ---------------------------------------------------------------------------

    def script(self, topic: str, *faults: Fault) -> None:
        """Give each of the next requests for ``topic`` one of the faults."""
        self._faults[topic].extend(faults)

    def repair(self, topic: str) -> None:
        """From now on requests about the topic have their usual effect."""
        self._faults.pop(topic, None)

    def reject_dry_run(self, topic: str, error: str = REFUSED_BY_POLICY.error) -> None:
        self._rejected[topic] = error

    def while_waiting_for_controller(self, action: Callable[[], None]) -> None:
        """Call ``action`` when a request waits for a controller."""
        self._before_ready.append(action)

    def before_next_request(self, action: Callable[[], None]) -> None:
        """Call ``action`` after all reads and right before a request arrives."""
        self._before_requests.append(action)

    # --- the ports, with what the test wants --------------------------------------------------------------------

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        if self.unreachable:
            raise ClusterUnreachableError("127.0.0.1:2181: ZooKeeper does not answer; is it running?")
        yield

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        found = super().snapshot(states=states, into=into)
        return found if self.has_controller else replace(found, controller_id=None)

    def controller_epoch(self) -> int | None:
        self.cluster.znodes.controller_epoch += self.controller_keeps_changing
        return super().controller_epoch()

    def controller_id(self) -> int | None:
        found = super().controller_id()
        return found if self.has_controller else None

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        self.asked.append("views")
        return super().views(brokers, topics)

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        self.asked.append("logs")
        return super().logs(questions)

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        self.asked.append("overrides")
        known = super().overrides(topics)
        return {topic: self.reported_overrides.get(topic, known[topic]) for topic in topics}

    def broker_defaults(self) -> BrokerDefaults:
        return super().broker_defaults() if self.questions_answered else {}

    def releases(self) -> Releases | None:
        return super().releases() if self.questions_answered else None

    def missing_requests(self) -> MissingRequests:
        return super().missing_requests() if self.questions_answered else {}

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        if not self.questions_answered:
            return {topic: TopicActivity(end_offsets=None, groups=None) for topic in topics}
        return super().activity(topics)

    def log_directories(self, topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        if not self.questions_answered:
            return {}
        return {**super().log_directories(topics), **{b: LogDirectories(held={}) for b in self.known_whole}}

    def _view_of(self, broker: int, topics: Sequence[str] | None) -> BrokerView | str:
        found = super()._view_of(broker, topics)
        return found if isinstance(found, str) else replace(found, cluster_id=self.cluster_id_of_brokers)

    def _logs_of(self, broker: int, asked: LogQuestions) -> BrokerLogs | str:
        found = super()._logs_of(broker, asked)
        if isinstance(found, str):
            return found
        if broker in self.silent_disks:
            return f"broker {broker} does not describe its log directories: refused"
        if broker in self.hidden_disks:
            return BrokerLogs(held={}, unoffered=f"broker {broker} offers no DescribeLogDirs")
        idle = {
            name: frozenset(p for p in ids if (broker, name, p) in self.idle_logs) for name, ids in asked.held.items()
        }
        return BrokerLogs(
            failed=found.failed,
            held={name: held - idle[name] for name, held in found.held.items()},
            idle=idle,
            unread={
                name: {p: self.unread_logs[broker, name, p] for p in led if (broker, name, p) in self.unread_logs}
                for name, led in asked.led.items()
            },
        )

    def _held(self, broker: int, topic: str, asked: Collection[int]) -> frozenset[int]:
        held = super()._held(broker, topic, asked)
        return frozenset(p for p in held if (broker, topic, p) not in self.missing_logs)

    # --- TopicAdmin ---------------------------------------------------------------------------------------------

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        return [self._dry_run(change) for change in changes]

    def get_ready(self, change: Change) -> None:
        while self._before_ready:
            self._before_ready.popleft()()

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]:
        return self._request("create", changes)

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]:
        return self._request("expand", changes)

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]:
        return self._request("configure", changes)

    def delete(self, change: DeleteTopic) -> Answer:
        return self._request("delete", [change])[0]

    def _request(self, action: Action, changes: Sequence[Change]) -> list[Answer]:
        while self._before_requests:
            self._before_requests.popleft()()
        self.requests.append(Request(action, tuple(change.topic for change in changes)))
        return [self._answer(change) for change in changes]

    def _answer(self, change: Change) -> Answer:
        faults = self._faults[change.topic]
        if not faults:
            return self._perform(change)
        fault = faults.popleft()
        if fault.takes_effect:
            self._perform(change)
        if fault.raises:
            raise ClusterUnreachableError(fault.error)
        return Answer(fault.kind, fault.error, fault.wait_s, fault.left)

    def _perform(self, change: Change) -> Answer:
        error = self._api.perform(change, "test")
        self._rest()
        if error:
            return Answer(AnswerKind.RETRY if error == IS_MOVING else AnswerKind.FAILED, error)
        return ACCEPTED

    def _dry_run(self, change: Change) -> Answer:
        if isinstance(change, DeleteTopic):
            return ACCEPTED
        error = self._rejected.get(change.topic) or self._api.refusal(change)
        return Answer(AnswerKind.FAILED, error) if error else ACCEPTED

    def _rest(self) -> None:
        self.cluster.world.settle()
