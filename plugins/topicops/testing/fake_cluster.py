"""A small cluster in memory that fills every port; tests choose its faults.

It answers as Kafka 3.9 under ZooKeeper does, as far as the scenarios of ``testing.scenarios`` compare both; with an
older ``release`` it moves replicas as brokers of that release do.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from topicops.model.cluster.snapshot import (
    Assignment,
    Broker,
    ClusterSnapshot,
    LiveTopic,
    PartitionState,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.changes import Action, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import NO_RECORD, TopicActivity
from topicops.model.ports import (
    Answer,
    AnswerKind,
    BrokerLogs,
    BrokerView,
    Lease,
    LogQuestions,
    PartitionView,
    TopicSink,
    supported,
)
from topicops.model.release import REASSIGNMENTS_IN_TOPICS, USUAL, Releases
from topicops.testing.request_checks import IS_MOVING, RequestChecks

ACCEPTED = Answer(AnswerKind.ACCEPTED)


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
CONTROLLER_DIED = Fault(AnswerKind.CONTROLLER_MOVED, "NOT_CONTROLLER (41): no longer the controller (TOP508)")
CONTROLLER_DIED_AFTER = Fault(CONTROLLER_DIED.kind, CONTROLLER_DIED.error, takes_effect=True)
MUST_WAIT = Fault(AnswerKind.RETRY, "THROTTLING_QUOTA_EXCEEDED (89): The throttling quota has been exceeded.")
REFUSED_BY_POLICY = Fault(AnswerKind.FAILED, "POLICY_VIOLATION (44): not by this name")
CONNECTION_LOST = Fault(AnswerKind.UNCLEAR, "connection to broker 1 lost", takes_effect=True, raises=True)


@dataclass(frozen=True, slots=True)
class Request:
    """A mutation as the brokers saw it."""

    action: Action
    topics: tuple[str, ...]


class FakeCluster:
    """Fills ``LiveReader``, ``TopicAdmin``, ``BrokerMetadata`` and ``ClusterQuestions``."""

    def __init__(
        self, *, racks: Mapping[int, str | None] | None = None, cluster_id: str = "fake-cluster", chroot: str = "/kafka"
    ) -> None:
        self.requests: list[Request] = []
        self.unreachable = False
        """ZooKeeper does not answer."""
        self.controller_keeps_changing = False
        """Every read finds another controller epoch."""
        self.has_controller = True
        self.questions_answered = True
        self.release = USUAL
        """Of all brokers."""
        self.deletes_topics = True
        """False: as with ``delete.topic.enable=false``."""
        self.cluster_id_of_brokers = cluster_id
        """The cluster id that the brokers answer."""
        self.missing_logs: set[tuple[int, str, int]] = set()
        """Broker, topic and partition without a log directory."""
        self.idle_logs: set[tuple[int, str, int]] = set()
        """Logs that their broker does not serve."""
        self.unread_logs: dict[tuple[int, str, int], str] = {}
        """Logs that their leader cannot read, with its error."""
        self.silent_disks: set[int] = set()
        """Brokers that do not describe their log directories."""
        self.leftover_logs: dict[str, frozenset[int]] = {}
        """Partitions of a deleted topic whose logs every broker still has."""
        self.asked: list[str] = []
        """Each question to brokers, by its name."""
        self.reported_overrides: dict[str, Mapping[str, str] | str] = {}
        """What brokers answer about a topic's overrides, where that is not what it has."""
        self.defaults: dict[str, str] = {"min.insync.replicas": "1"}
        self.end_offsets: dict[str, dict[int, int]] = {}
        self.last_records: dict[str, int] = {}
        """Time of the newest record, in ms since 1970; a topic without an entry holds none."""
        self.groups: dict[str, tuple[str, ...]] = {}
        self.reassigning: set[str] = set()
        """Topics that ``/admin/reassign_partitions`` names."""
        self._targets: dict[str, dict[int, tuple[int, ...]]] = {}
        """Where a running reassignment moves partitions."""
        self._id = cluster_id
        self._chroot = chroot
        self._zxid = 100
        self._controller_epoch = 1
        self._racks = dict(racks or {1: "r1", 2: "r2", 3: "r3"})
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, LiveTopic] = {}
        self._configs: dict[str, dict[str, str]] = {}
        self._deleting: set[str] = set()
        self._paused: set[int] = set()
        self._slow: set[int] = set()
        self._frozen: dict[int, BrokerView] = {}
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._rejected: dict[str, str] = {}
        self._before_ready: deque[Callable[[], None]] = deque()
        self._before_requests: deque[Callable[[], None]] = deque()
        for broker in self._racks:
            self.start_broker(broker)

    # --- what a test does to the cluster ------------------------------------------------------------------------

    def start_broker(self, broker: int) -> None:
        endpoint = f"PLAINTEXT://127.0.0.1:{9090 + broker}"
        self._brokers[broker] = Broker(
            id=broker, rack=self._racks.get(broker), endpoints=(endpoint,), epoch=self._next_zxid()
        )
        self._control()

    def stop_broker(self, broker: int) -> None:
        del self._brokers[broker]
        self._control()

    def pause_broker(self, broker: int) -> None:
        """Stop its answers; it stays registered, leads, and is in the ISR."""
        self._paused.add(broker)

    def resume_broker(self, broker: int) -> None:
        self._paused.discard(broker)
        self._control()

    def hold_back(self, broker: int) -> None:
        """Let the broker fall behind as a follower: it keeps what it leads, and joins no ISR."""
        self._slow.add(broker)
        self._control()

    def catch_up(self, broker: int) -> None:
        self._slow.discard(broker)
        self._control()

    def freeze_metadata(self, broker: int) -> None:
        """Keep the broker's metadata as it is now."""
        self._frozen[broker] = self._view()

    def thaw_metadata(self, broker: int) -> None:
        self._frozen.pop(broker, None)

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

    def put_topic(self, topic: str, *replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> LiveTopic:
        """Put a topic into the cluster."""
        self._make(topic, {index: tuple(row) for index, row in enumerate(replicas)}, configs or {})
        return self._topics[topic]

    def put_as_is(self, live: LiveTopic) -> None:
        """Put a topic into the cluster exactly as given; the controller does nothing about it."""
        self._topics[live.name] = live
        self._configs[live.name] = dict(live.overrides)

    def set_configs(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set, or with None remove, overrides, as another program would."""
        self._alter(topic, configs)

    def add_rows(self, topic: str, *replicas: Sequence[int]) -> None:
        """Expand, as another program would."""
        first = self._topics[topic].partitions
        self._grow(topic, {first + index: tuple(row) for index, row in enumerate(replicas)})

    def remove_topic(self, topic: str) -> None:
        """Delete with all traces, as another program would."""
        self._topics.pop(topic)
        self._configs.pop(topic, None)
        self._deleting.discard(topic)

    def start_reassignment(self, topic: str, partition: int, *, adding: Sequence[int], removing: Sequence[int]) -> None:
        """Begin to move a partition; the move runs until ``end_reassignment``."""
        live = self._topics[topic]
        both_sides = (*live.assignment[partition], *adding)
        self._targets.setdefault(topic, {})[partition] = tuple(b for b in both_sides if b not in removing)
        moved = replace(live, assignment={**live.assignment, partition: both_sides})
        if self.release < REASSIGNMENTS_IN_TOPICS:
            self.reassigning.add(topic)
            self._topics[topic] = moved
        else:
            self._topics[topic] = replace(
                moved, adding={partition: tuple(adding)}, removing={partition: tuple(removing)}
            )

    def end_reassignment(self, topic: str) -> None:
        """Let the replicas arrive; old brokers keep the name of a topic that was deleted meanwhile, for good."""
        targets = self._targets.pop(topic, {})
        if live := self._topics.get(topic):
            self._topics[topic] = replace(live, assignment={**live.assignment, **targets}, adding={}, removing={})
            self.reassigning.discard(topic)
            self._control()

    def live(self, topic: str) -> LiveTopic:
        return self._topics[topic]

    # --- LiveReader ---------------------------------------------------------------------------------------------

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        self._answer_or_fail()
        sink = into or TopicsInMemory()
        sink.begin()
        sink.take([self._read(name, states=states) for name in sorted(self._topics)])
        return ClusterSnapshot(
            cluster_id=self._id,
            chroot=self._chroot,
            source="zookeeper",
            controller_id=self.controller_id(),
            controller_epoch=self._controller_epoch,
            brokers=dict(self._brokers),
            topics=sink.finish(),
            deleting=dict.fromkeys(sorted(self._deleting), 1000),
            reassigning=frozenset(self.reassigning),
            orphan_configs=frozenset(self._configs.keys() - self._topics.keys()),
            broker_defaults=None,
        )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        self._answer_or_fail()
        return {
            topic: TopicTraces(
                live=self._read(topic, states=states) if topic in self._topics else None,
                has_config_znode=topic in self._configs,
                is_deleting=topic in self._deleting,
                is_in_reassignment=topic in self.reassigning,
            )
            for topic in topics
        }

    def brokers(self) -> Mapping[int, Broker]:
        self._answer_or_fail()
        return dict(self._brokers)

    def controller_epoch(self) -> int:
        self._answer_or_fail()
        self._controller_epoch += self.controller_keeps_changing
        return self._controller_epoch

    def controller_id(self) -> int | None:
        self._answer_or_fail()
        return min(self._brokers, default=None) if self.has_controller else None

    def require_describable(self, topics: Sequence[str]) -> None:
        """Do nothing: this reader sees every topic."""

    def catch_up_with(self, lease: Lease) -> None:
        """Do nothing: one server cannot be behind another."""

    # --- TopicAdmin ---------------------------------------------------------------------------------------------

    @property
    def chroot(self) -> str:
        return self._chroot

    def cluster_id(self) -> str:
        return self._id

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        return [self._dry_run(change) for change in changes]

    def get_ready(self, change: Change) -> None:  # noqa: ARG002 - any change waits for the same
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

    # --- BrokerMetadata -----------------------------------------------------------------------------------------

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        self.asked.append("views")
        return {broker: self._view_of(broker, topics) for broker in brokers}

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        self.asked.append("logs")
        return {broker: self._logs_of(broker, asked) for broker, asked in questions.items()}

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        self.asked.append("overrides")
        return {topic: self.reported_overrides.get(topic, self._configs.get(topic, {})) for topic in topics}

    # --- ClusterQuestions ---------------------------------------------------------------------------------------

    def broker_defaults(self) -> Mapping[str, str] | None:
        return dict(self.defaults) if self.questions_answered else None

    def releases(self) -> Releases | None:
        return supported(Releases(self.release, self.release)) if self.questions_answered else None

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        if not self.questions_answered:
            return {topic: TopicActivity(end_offsets=None, groups=None) for topic in topics}
        return {topic: self._activity_of(topic) for topic in topics}

    # --- requests -----------------------------------------------------------------------------------------------

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
        if error := self._error_of(change):
            return Answer(AnswerKind.RETRY if error == IS_MOVING else AnswerKind.FAILED, error)
        match change:
            case CreateTopic():
                self._make(change.topic, change.assignment, change.configs)
            case ExpandTopic():
                self._grow(change.topic, change.assignment)
            case ConfigureTopic():
                self._alter(change.topic, self._set_by(change))
            case DeleteTopic():
                self._deleting.add(change.topic)
                self._control()
        return ACCEPTED

    def _dry_run(self, change: Change) -> Answer:
        if isinstance(change, DeleteTopic):
            return ACCEPTED
        error = self._rejected.get(change.topic) or self._error_of(change)
        return Answer(AnswerKind.FAILED, error) if error else ACCEPTED

    def _error_of(self, change: Change) -> str | None:
        return self._requests.error_of(
            change, self._topics.get(change.topic), is_deleting=change.topic in self._deleting, brokers=self._brokers
        )

    @property
    def _requests(self) -> RequestChecks:
        return RequestChecks(
            release=self.release,
            deletes_topics=self.deletes_topics,
            is_anything_moving=bool(self.reassigning),
        )

    # --- what the cluster does by itself ------------------------------------------------------------------------

    def _make(self, topic: str, assignment: Assignment, configs: Mapping[str, str]) -> None:
        zxid = self._next_zxid()
        self._configs[topic] = dict(configs)
        self._topics[topic] = LiveTopic(
            name=topic,
            topic_id=topic_id_of(topic, zxid),
            czxid=zxid,
            mzxid=zxid,
            assignment=dict(assignment),
            overrides=dict(configs),
            states={},
        )
        self.end_offsets[topic] = dict.fromkeys(assignment, 0)
        self._control()

    def _grow(self, topic: str, new_rows: Assignment) -> None:
        live = self._topics[topic]
        self._topics[topic] = replace(live, assignment={**live.assignment, **new_rows}, mzxid=self._next_zxid())
        self.end_offsets[topic].update(dict.fromkeys(new_rows, 0))
        self._control()

    def _alter(self, topic: str, configs: Mapping[str, str | None]) -> None:
        merged: dict[str, str | None] = {**self._configs.get(topic, {}), **configs}
        kept = {name: value for name, value in merged.items() if value is not None}
        self._configs[topic] = kept
        self._topics[topic] = replace(self._topics[topic], overrides=kept)

    def _set_by(self, change: ConfigureTopic) -> Mapping[str, str | None]:
        """What a request changes: as AlterConfigs, it removes each override that it does not name."""
        if not change.precondition.all_overrides:
            return change.configs
        return {**dict.fromkeys(self._configs.get(change.topic, {})), **change.all_configs}

    def _control(self) -> None:
        """Do what the controller does: elect, shrink and grow ISRs, finish deletions whose brokers all answer."""
        for topic in list(self._topics):
            live = self._topics[topic]
            holders = {broker for row in live.assignment.values() for broker in row}
            if topic in self._deleting and holders <= self._responsive():
                self.remove_topic(topic)
                continue
            states = {p: state for p in live.assignment if (state := self._next_state(live, p)) is not None}
            self._topics[topic] = replace(live, states=states)

    def _next_state(self, live: LiveTopic, partition: int) -> PartitionState | None:
        replicas = live.assignment[partition]
        old = (live.states or {}).get(partition)
        if live.name in self._deleting:
            return replace(old, leader=-1) if old is not None else None
        if old is None:
            return self._first_state(replicas)
        isr = tuple(broker for broker in replicas if self._is_in_sync(broker, old))
        leader = old.leader if old.leader in isr else next(iter(isr), -1)
        if (leader, isr or old.isr) == (old.leader, old.isr):
            return old
        return PartitionState(
            leader=leader,
            # The last replica stays in the ISR while there is no leader.
            isr=isr or old.isr,
            leader_epoch=(old.leader_epoch or 0) + (leader != old.leader),
            controller_epoch=self._controller_epoch,
            version=(old.version or 0) + 1,
        )

    def _first_state(self, replicas: tuple[int, ...]) -> PartitionState | None:
        alive = tuple(broker for broker in replicas if broker in self._brokers)
        if not alive:
            return None
        isr = tuple(broker for broker in alive if broker == alive[0] or broker not in self._slow)
        return PartitionState(
            leader=alive[0], isr=isr, leader_epoch=0, controller_epoch=self._controller_epoch, version=0
        )

    def _is_in_sync(self, broker: int, old: PartitionState) -> bool:
        if broker not in self._brokers:
            return False
        if old.leader not in self._brokers:
            return broker in old.isr
        return broker == old.leader or broker not in self._slow

    def _responsive(self) -> set[int]:
        return set(self._brokers) - self._paused

    def _read(self, topic: str, *, states: bool) -> LiveTopic:
        live = self._topics[topic]
        return live if states else replace(live, states=None)

    def _view_of(self, broker: int, topics: Sequence[str] | None) -> BrokerView | str:
        if broker not in self._responsive():
            return f"broker {broker} gave no answer within 2 s"
        view = self._frozen.get(broker) or self._view()
        wanted = view.topics.keys() if topics is None else view.topics.keys() & set(topics)
        return replace(view, topics={name: view.topics[name] for name in sorted(wanted)})

    def _view(self) -> BrokerView:
        known = {name: live for name, live in self._topics.items() if name not in self._deleting}
        return BrokerView(
            topics={
                name: {
                    p: PartitionView(leader=state.leader, replicas=live.assignment[p], isr=state.isr)
                    for p, state in (live.states or {}).items()
                }
                for name, live in known.items()
            },
            brokers=frozenset(self._brokers),
            cluster_id=self.cluster_id_of_brokers,
            topic_ids={name: live.topic_id for name, live in known.items() if live.topic_id is not None},
        )

    def _logs_of(self, broker: int, asked: LogQuestions) -> BrokerLogs | str:
        if broker not in self._responsive():
            return f"broker {broker} gave no answer within 2 s"
        if broker in self.silent_disks:
            return f"broker {broker} does not describe its log directories: refused"
        idle = {
            name: frozenset(p for p in ids if (broker, name, p) in self.idle_logs) for name, ids in asked.held.items()
        }
        return BrokerLogs(
            held={name: self._held(broker, name, ids) - idle[name] for name, ids in asked.held.items()},
            idle=idle,
            unread={
                name: {p: self.unread_logs[broker, name, p] for p in led if (broker, name, p) in self.unread_logs}
                for name, led in asked.led.items()
            },
        )

    def _held(self, broker: int, topic: str, asked: Collection[int]) -> frozenset[int]:
        live = self._topics.get(topic)
        if live is None:
            return self.leftover_logs.get(topic, frozenset()) & frozenset(asked)
        held = frozenset(p for p, row in live.assignment.items() if broker in row)
        return frozenset(p for p in held & frozenset(asked) if (broker, topic, p) not in self.missing_logs)

    def _activity_of(self, topic: str) -> TopicActivity:
        offsets = self.end_offsets.get(topic) if topic in self._topics else None
        return TopicActivity(
            end_offsets=dict(offsets) if offsets is not None else None,
            groups=self.groups.get(topic, ()),
            last_record_ms=self.last_records.get(topic, NO_RECORD),
        )

    def _answer_or_fail(self) -> None:
        if self.unreachable:
            raise ClusterUnreachableError("127.0.0.1:2181: ZooKeeper does not answer; is it running?")

    def _next_zxid(self) -> int:
        self._zxid += 1
        return self._zxid


def topic_id_of(topic: str, zxid: int) -> str:
    digest = hashlib.sha256(f"{topic}:{zxid}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
