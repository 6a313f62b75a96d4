"""One observation of one topic: what the topic must be, what the source and the brokers show, what a rule finds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import Assignment, LiveTopic, PartitionState, TopicTraces
from topicops.model.codes import Code
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.ports import BrokerLogs, BrokerView, LogQuestions
from topicops.model.release import Releases
from topicops.model.runs.moves import TopicMoves
from topicops.model.runs.results import Verdict
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.before_deletes import failed_by_broker, named, replicas_on_failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a topic must be; without any field set it only has to be healthy."""

    topic: str
    absent: bool = False
    is_new: bool = False
    """The run created it."""
    identity: str | None = None
    """Identity that a topic to delete had."""
    partitions: int | None = None
    """Number of partitions that a topic to delete had."""
    assignment: Assignment = field(default_factory=dict)
    """Rows that the run wrote; empty where the brokers placed them."""
    replication_factor: int | None = None
    """Number of replicas of each partition; None means that another number is not the run's."""
    earlier_partitions: int = 0
    earlier_digest: str | None = None
    """Digest of the rows before the expansion."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    """Canonical values; None means no override."""
    configs_are_all: bool = False
    """The topic must have no other override."""
    moving: TopicMoves | None = None
    """Moves of its replicas, which are no problem; None means that none is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that was read about one topic at one time.

    The source is ZooKeeper or the Admin API (``source``); the brokers are asked beside it.
    """

    expected: Expectation
    traces: TopicTraces
    brokers: Collection[int]
    """Registered right now."""
    controller_epoch: int | None
    has_controller: bool = True
    cluster_id: str | None = None
    """Cluster id in the source; None means not known."""
    broker_defaults: BrokerDefaults | None = None
    """Effective default of each topic config; None means not known."""
    releases: Releases | None = None
    """Releases of the brokers; None means not known."""
    source: Source = "zookeeper"
    states_before: Mapping[int, PartitionState] = field(default_factory=dict)
    """The same topic's states in the observation before; empty in the first one."""
    views: Mapping[int, BrokerView | str] = field(default_factory=dict)
    """Views of the brokers that were asked; empty while the topic is not healthy in the source."""
    logs: Mapping[int, BrokerLogs | str] = field(default_factory=dict)
    """Logs of the brokers whose disks were asked about; empty until all else is healthy."""
    directories: Mapping[int, BrokerLogs | str] = field(default_factory=dict)
    """Log directories of the brokers with replicas, asked after a topic was long unhealthy: a disk may be why."""
    broker_overrides: Mapping[str, str] | str | None = None
    """Overrides at the brokers; a sentence if they did not answer; None means not asked."""

    @property
    def live(self) -> LiveTopic | None:
        return self.traces.live

    @property
    def present(self) -> LiveTopic:
        """The topic, for rules that need one. Raises ``ValueError`` when it is absent."""
        if self.live is None:
            raise ValueError(f"{self.expected.topic}: rules for present topics need one")
        return self.live

    @property
    def holders(self) -> set[int]:
        """Brokers that hold a replica of the topic; empty for a topic that is gone."""
        return {broker for row in self.live.assignment.values() for broker in row} if self.live else set()

    @property
    def states(self) -> Mapping[int, PartitionState]:
        return (self.live.states or {}) if self.live else {}

    def failed_disks(self, partitions: Collection[int] | None = None) -> str:
        """``; the log directory /data/2 of broker 2 has failed`` where replicas of these partitions are on such disks.

        Args:
            partitions: None means of all.
        """
        failed, found = failed_by_broker(self._directories), self.brokers_with_failed_disks(partitions)
        return "".join(f"; the log directory {named(failed[b])} of broker {b} has failed" for b in found)

    def brokers_with_failed_disks(self, partitions: Collection[int] | None = None) -> tuple[int, ...]:
        """Return brokers whose failed disks have replicas of these partitions; None means of all."""
        rows = self.live.assignment if self.live else {}
        wanted = {p: row for p, row in rows.items() if partitions is None or p in partitions}
        return tuple(replicas_on_failed(self.expected.topic, wanted, self._directories))

    @property
    def _directories(self) -> Mapping[int, BrokerLogs | str]:
        return self.directories or self.logs

    @property
    def parts_read(self) -> frozenset[str]:
        """Which parts could be read, in the words of ``checks.RULES``."""
        parts = {
            "source": True,
            "views": self.views,
            "logs": self.logs,
            "offsets": self.logs,
            "broker configs": self.broker_overrides is not None,
        }
        return frozenset(part for part, found in parts.items() if found)

    def health(self, partition: int, *, min_isr: int = 1) -> PartitionHealth:
        return health_of(self.present, partition, self.brokers, min_isr=min_isr)

    def led_partitions(self) -> Iterator[tuple[int, PartitionState]]:
        """Yield partitions of the topic that have a state, in order."""
        yield from sorted((p, found) for p, found in self.states.items() if p in self.present.assignment)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found in one observation; with the verdict healthy it is only a remark."""

    check: Code
    verdict: Verdict
    message: str
    code: Code | None = None
    subjects: frozenset[str] = frozenset()
    """What it is about, in words that stay the same between observations.

    ``verify`` recognises a pre-existing finding by them. Empty: it counts even if it existed before the run.
    """
    is_final: bool = False
    """Waiting cannot fix it."""
    brokers: tuple[int, ...] = ()
    """Brokers that are at fault, in order."""


Rule = Callable[[Observation], Iterator[Finding]]
FindingKey = tuple[str, str, str]
"""Topic, check and subject of a finding."""


def expectation_of(topic: str, changes: Iterable[Change]) -> Expectation:
    """Return what the topic must be once all these changes of it are in place."""
    found = Expectation(topic=topic)
    for change in changes:
        found = _with_change(found, change)
    return found


def broker_names(brokers: Iterable[int]) -> str:
    return ", ".join(f"broker {broker}" for broker in brokers)


def partition_names(partitions: Iterable[int], *, most: int = 5) -> str:
    """Return ``partition 0`` or ``partitions 0, 3, 4``, the first few of many."""
    ids = sorted(partitions)
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return f"partition{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids[:most]))}{more}"


def _with_change(found: Expectation, change: Change) -> Expectation:
    match change:
        case CreateTopic():
            return Expectation(
                topic=change.topic,
                is_new=True,
                partitions=change.partitions,
                assignment=change.assignment,
                replication_factor=change.replication_factor,
                configs=canonical_overrides(change.configs),
                configs_are_all=True,
            )
        case ExpandTopic():
            return replace(
                found,
                identity=change.precondition.identity,
                partitions=change.partitions,
                assignment=change.assignment,
                replication_factor=None if change.assignment else change.replication_factor,
                earlier_partitions=change.partitions_before,
                earlier_digest=change.precondition.assignment_digest,
            )
        case ConfigureTopic():
            return replace(found, identity=change.precondition.identity, configs=change.configs)
        case ReassignTopic():
            rows = {**found.assignment, **change.assignment}
            return replace(found, identity=change.precondition.identity, assignment=rows)
        case DeleteTopic():
            identity = change.precondition.identity or change.topic_id
            return Expectation(topic=change.topic, absent=True, identity=identity, partitions=change.partitions)


MOST_BROKERS_ASKED = 32


def chosen_brokers(brokers: Iterable[int], *, most: int = MOST_BROKERS_ASKED) -> tuple[int, ...]:
    """Return at most ``most`` of the brokers, evenly spread over their ids."""
    ids = sorted(brokers)
    if len(ids) <= most:
        return tuple(ids)
    return tuple(ids[index * len(ids) // most] for index in range(most))


def log_questions(observation: Observation) -> Mapping[int, LogQuestions]:
    """Return what each live broker is asked about its logs of this topic; by broker."""
    expected = observation.expected
    if not expected.absent:
        asked = replica_questions(observation)
        return {broker: replace(about, led=_led_by(broker, observation)) for broker, about in asked.items()}
    if not expected.partitions:
        return {}
    question = LogQuestions(held={expected.topic: range(expected.partitions)})
    return dict.fromkeys(observation.brokers, question)


def replica_questions(observation: Observation) -> Mapping[int, LogQuestions]:
    """Return what each live broker is asked about the replicas that it should have; by broker."""
    rows, topic = observation.present.assignment, observation.expected.topic
    holders = observation.holders & set(observation.brokers)
    return {b: LogQuestions(held={topic: [p for p, row in rows.items() if b in row]}) for b in sorted(holders)}


def merged(questions: Iterable[Mapping[int, LogQuestions]]) -> Mapping[int, LogQuestions]:
    """Merge the questions for each broker, about all topics."""
    found: dict[int, LogQuestions] = {}
    for asked in questions:
        for broker, more in asked.items():
            known = found.get(broker, LogQuestions(held={}))
            found[broker] = LogQuestions(held={**known.held, **more.held}, led={**known.led, **more.led})
    return found


def _led_by(broker: int, observation: Observation) -> dict[str, dict[int, int | None]]:
    """Return partitions whose end offset is asked for, with their leader epochs: those that the run made, else all."""
    wanted = observation.expected.assignment.keys() or observation.present.assignment.keys()
    led = {p: found.leader_epoch for p, found in observation.led_partitions() if found.leader == broker and p in wanted}
    return {observation.expected.topic: led} if led else {}
