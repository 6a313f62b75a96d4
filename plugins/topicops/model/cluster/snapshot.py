"""The live cluster as it was read: brokers, topics, and running deletions and reassignments. ``live`` in every step.

A field that is None was not known to the source; brokers know less than ZooKeeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import OF_CONTROLLERS, ON_CONTROLLERS, BrokerDefaults, Default, default_of
from topicops.model.memory import WithNewer
from topicops.model.release import MissingRequests, Releases

Assignment = Mapping[int, tuple[int, ...]]
"""Partition id to broker ids, preferred leader first."""

STUCK_AFTER_MS = 5 * 60 * 1000
"""Age from which a deletion marker is stuck: the controller removes it within seconds when all replicas answer."""


MOVES = "reassignments"
"""Key of ``ClusterSnapshot.unread``: it is not known which replicas move."""


def identity_of(topic_id: str | None, czxid: int | None) -> str:
    """Return what no two topics of one name share: the topic id, else the czxid."""
    return topic_id or f"czxid:{czxid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker that is registered right now."""

    id: int
    rack: str | None
    endpoints: tuple[str, ...]
    """``LISTENER://host:port``, as registered; ``host:port`` of the one listener that brokers report."""
    protocols: tuple[str, ...] = ()
    """Security protocol of each endpoint, in their order; none where brokers report them."""
    epoch: int | None = None
    """The registration's czxid; a restart raises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectories:
    """What one broker says about its log directories."""

    held: Mapping[str, frozenset[int]]
    """Partitions asked for that have a log in use, by topic; without logs on a failed disk and unfinished copies."""
    unused: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Partitions asked for that have a log which the broker does not serve, by topic: it was left by an earlier one."""
    failed: tuple[str, ...] = ()
    """Paths of the log directories that failed: the broker is live, and uses them no more until it is restarted."""
    log_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the logs of these partitions, by topic, on the directories that work."""
    free_bytes: int | None = None
    """Free bytes of the directory with the most; None where the broker does not tell (before 3.3, KIP-827)."""
    cordoned: bool = False
    """Whether all directories that work are cordoned, so that the broker refuses new replicas (KIP-1066)."""


DirectoriesByBroker = Mapping[int, LogDirectories | str | None]
"""Directories by broker; a sentence if it gave no answer, None if it lacks the request. Missing means not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """What the controller last wrote about one partition."""

    leader: int
    """Broker id; -1 while there is none."""
    isr: tuple[int, ...]
    leader_epoch: int | None
    controller_epoch: int | None
    version: int | None
    """Data version of the znode, Kafka's partition epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTopic:
    """One topic as the cluster has it."""

    name: str
    topic_id: str | None
    """URL-safe base64 without padding, 22 characters; None below inter-broker protocol 2.8."""
    czxid: int | None = None
    mzxid: int | None = None
    assignment: Assignment
    """Current replicas; while a reassignment runs it holds target and origin together."""
    adding: Assignment = field(default_factory=dict)
    removing: Assignment = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Topic configs set on the topic itself, raw text as stored."""
    unstable: bool = False
    """Whether it kept changing while it was read, so that no change may be planned for it."""
    states: Mapping[int, PartitionState] | None = None
    """States of the partitions; None means not read. A partition without a state znode has no entry."""

    @property
    def identity(self) -> str:
        """Distinguishes this topic from a later one of the same name."""
        return identity_of(self.topic_id, self.czxid)

    def identity_after(self, earlier: str | None) -> str:
        """Return the topic's identity, or the earlier one if it was this topic's too.

        A topic without an id gets one when the brokers' protocol is raised far enough; its czxid stays.
        """
        return earlier if earlier == identity_of(None, self.czxid) else self.identity

    @property
    def partitions(self) -> int:
        return len(self.assignment)

    @property
    def target_assignment(self) -> Assignment:
        """Where the replicas will be when a running reassignment has ended: replicas minus removing."""
        if not self.removing:
            return self.assignment
        return {
            p: tuple(broker for broker in replicas if broker not in self.removing.get(p, ()))
            for p, replicas in self.assignment.items()
        }

    @property
    def replication_factors(self) -> frozenset[int]:
        return frozenset(map(len, self.target_assignment.values()))

    @property
    def is_reassigning(self) -> bool:
        return any(self.adding.values()) or any(self.removing.values())

    @property
    def moving(self) -> set[int]:
        """Partitions to which a reassignment adds replicas, or from which it takes some."""
        return {p for rows in (self.adding, self.removing) for p, row in rows.items() if row}

    def moved(self, targets: Assignment) -> LiveTopic:
        """Return the topic as if reassignments to these rows ran, each of a partition that it has."""
        origins = {p: self.assignment[p] for p in targets if p in self.assignment}
        added = {p: tuple(b for b in targets[p] if b not in origins[p]) for p in origins}
        removed = {p: tuple(b for b in row if b not in targets[p]) for p, row in origins.items()}
        return replace(
            self,
            assignment={**self.assignment, **{p: (*targets[p], *removed[p]) for p in origins}},
            adding={**self.adding, **{p: row for p, row in added.items() if row}},
            removing={**self.removing, **{p: row for p, row in removed.items() if row}},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTraces:
    """All that ZooKeeper has about one topic name, read at one time."""

    live: LiveTopic | None
    """Live topic; None means that there is no topic znode."""
    has_config_znode: bool
    is_deleting: bool
    """A deletion marker is in ``/admin/delete_topics``."""
    is_in_reassignment: bool = False
    """Whether ``/admin/reassign_partitions`` names it: below ``REASSIGNMENTS_IN_TOPICS`` the only sign of its move."""
    unread_moves: str = ""
    """A sentence where it is not known which replicas move, because a managed cluster does not tell."""

    @property
    def is_reassigning(self) -> bool:
        return self.is_in_reassignment or (self.live is not None and self.live.is_reassigning)

    @property
    def lasting_identity(self) -> str | None:
        """The identity of a topic without a deletion marker; else None."""
        return None if self.live is None or self.is_deleting else self.live.identity

    @property
    def is_gone(self) -> bool:
        return self.live is None and not (self.has_config_znode or self.is_deleting or self.is_in_reassignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What was counted over all partitions while they were read, so that no step has to look at each of them again."""

    partitions: int
    replicas: Mapping[int, int]
    """Replicas by broker, as they will be after running reassignments."""
    first_replicas: Mapping[int, int]
    """First replicas (the preferred leaders) by broker, as they will be after running reassignments."""
    leaders: Mapping[int, int] | None
    """Leaders by broker, as the partitions' states name them; None means that a topic was read without states."""
    moving: int = 0
    """Partitions that a reassignment moves, as the topics themselves name them."""


class Tally:
    """Counts topics as they come."""

    def __init__(self) -> None:
        self._partitions, self._moving = 0, 0
        self._replicas, self._first, self._leaders = Counter[int](), Counter[int](), Counter[int]()
        self._knows_leaders = True

    def count(self, topics: Sequence[LiveTopic]) -> None:
        # One update for many rows: it costs as much for one.
        rows = [row for topic in topics for row in topic.target_assignment.values()]
        self._partitions += sum(topic.partitions for topic in topics)
        self._moving += sum(len(topic.moving) for topic in topics)
        self._replicas.update(chain.from_iterable(rows))
        self._first.update(row[0] for row in rows if row)
        for topic in topics:
            if topic.states is None:
                self._knows_leaders = False
            else:
                self._leaders.update(state.leader for p, state in topic.states.items() if p in topic.assignment)

    @property
    def totals(self) -> Totals:
        return Totals(
            partitions=self._partitions,
            replicas=dict(self._replicas),
            first_replicas=dict(self._first),
            leaders=dict(self._leaders) if self._knows_leaders else None,
            moving=self._moving,
        )


class TopicsInMemory:
    """Fills ``model.ports.TopicSink`` with a mapping, by name."""

    def __init__(self) -> None:
        self._taken: list[LiveTopic] = []

    def begin(self) -> None:
        self._taken = []

    def take(self, topics: Sequence[LiveTopic]) -> None:
        self._taken.extend(topics)

    def finish(self) -> Mapping[str, LiveTopic]:
        return {topic.name: topic for topic in sorted(self._taken, key=lambda topic: topic.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    """A topic in the last snapshot that had it."""

    identity: str
    """Identity, as ``LiveTopic.identity``."""
    at: str
    """Time of that snapshot, RFC 3339 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDelete:
    """The newest delete of a topic's name in the audit log."""

    run: str
    at: str
    """RFC 3339 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """The whole cluster, read completely and consistently."""

    cluster_id: str
    chroot: str
    """``/kafka``, or empty for the root."""
    source: Source
    controller_id: int | None
    """Id of the controller; under KRaft of the leader of the quorum."""
    controller_epoch: int | None
    """Epoch of the controller; under KRaft of the leader."""
    brokers: Mapping[int, Broker]
    """Live brokers by id."""
    topics: Mapping[str, LiveTopic]
    deleting: Mapping[str, int]
    """Topics marked for deletion, with the age of the marker in ms by the server's clock."""
    reassigning: frozenset[str] = frozenset()
    """Topics named in ``/admin/reassign_partitions``."""
    orphan_configs: frozenset[str] = frozenset()
    """Names with a config znode and no topic."""
    broker_defaults: BrokerDefaults | None = None
    """Default of each topic config by broker; None means that the brokers were not asked."""
    releases: Releases | None = None
    """Releases of the brokers, if they answered."""
    log_directories: DirectoriesByBroker | None = None
    """Log directories of each broker, including partitions of topics that are being deleted; None means not asked."""
    missing_requests: MissingRequests = field(default_factory=dict)
    """Requests that brokers do not support, as far as they answered."""
    unknown: frozenset[str] = frozenset()
    """Fields of this class that are empty because the source does not know them."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What a managed cluster did not tell the reader, such as ``MOVES``, and why."""
    draining: frozenset[int] = frozenset()
    """Brokers that the environment keeps new replicas away from."""
    accepted_moves: Mapping[str, Assignment] = field(default_factory=dict)
    """Rows that moves lead to which runs have accepted and which have not ended, by topic: a plan takes them for
    granted. Part of a topic's partitions only."""
    totals: Totals | None = None
    """Totals of all topics, if they were counted when they were read."""
    lost: Mapping[str, LastSeen] = field(default_factory=dict)
    """Described topics of earlier snapshots that are not live any more, and that topicops did not delete."""
    past_deletes: Mapping[str, PastDelete] = field(default_factory=dict)
    """Past deletes of topics that a plan would create."""

    @property
    def with_accepted_moves(self) -> ClusterSnapshot:
        """The snapshot in which accepted moves count as running ones: their targets are what the topics get."""
        moving = {name: rows for name, rows in self.accepted_moves.items() if name in self.topics}
        if not moving:
            return self
        newer = {name: self.topics[name].moved(rows) for name, rows in moving.items()}
        return replace(self, topics=WithNewer(self.topics, newer))

    @property
    def racks(self) -> Mapping[int, str | None]:
        return {broker.id: broker.rack for broker in self.brokers.values()}

    def default_of(self, config: str, replicas: Collection[int] = ()) -> Default:
        """Return what brokers use for a config that a topic does not set: all that are registered, and these.

        Any of them may lead a partition of the topic, now or after a reassignment. One that is not registered, or does
        not answer, has a value that is not known.
        """
        found = default_of(config, self.broker_defaults, {*self.brokers, *(self.broker_defaults or ()), *replicas})
        return (*found, ON_CONTROLLERS) if config in OF_CONTROLLERS and self.source == "kafka" else found

    @property
    def whole_racks(self) -> Mapping[int, str | None]:
        """Racks of the brokers that get new replicas: no log directory is known to have failed, and none is closed."""
        told = (self.log_directories or {}).items()
        failed = {broker for broker, found in told if isinstance(found, LogDirectories) and found.failed}
        out = failed | self.closed.keys()
        return {broker: rack for broker, rack in self.racks.items() if broker not in out}

    @property
    def closed(self) -> Mapping[int, str]:
        """Live brokers that get no new replicas although their disks work, each with the reason, a clause."""
        told = (self.log_directories or {}).items()
        cordoned = {b: "which is cordoned" for b, found in told if isinstance(found, LogDirectories) and found.cordoned}
        draining = dict.fromkeys(self.draining, "which is in cluster.draining")
        return {broker: why for broker, why in sorted((draining | cordoned).items()) if broker in self.brokers}

    @property
    def partitions(self) -> int:
        """Of all topics."""
        return self.totals.partitions if self.totals else sum(topic.partitions for topic in self.topics.values())

    @property
    def has_states(self) -> bool:
        """Whether the partition states of all topics were read."""
        if self.totals:
            return self.totals.leaders is not None
        return all(topic.states is not None for topic in self.topics.values())

    @property
    def offline_partitions(self) -> int | None:
        """Partitions without a live leader; None when states were not read.

        Those of topics that are being deleted do not count: the controller takes their leaders away first.
        """
        if self.totals:
            return self._offline_by_totals(self.totals)
        known = [topic for topic in self.topics.values() if topic.states is not None]
        if len(known) < len(self.topics):
            return None
        return sum(self._offline(topic) for topic in known if topic.name not in self.deleting)

    def _offline_by_totals(self, totals: Totals) -> int | None:
        if totals.leaders is None:
            return None
        led = sum(partitions for leader, partitions in totals.leaders.items() if leader in self.brokers)
        going = sum(self._offline(self.topics[name]) for name in self.deleting if name in self.topics)
        return totals.partitions - led - going

    def _offline(self, topic: LiveTopic) -> int:
        """Count them as ``PartitionHealth.is_offline`` does."""
        states = topic.states or {}
        return sum(p not in states or states[p].leader not in self.brokers for p in topic.assignment)

    def traces(self, topic: str) -> TopicTraces:
        """Return what it has under this name; a live topic is taken to have a config znode."""
        live = self.topics.get(topic)
        return TopicTraces(
            live=live,
            has_config_znode=live is not None,
            is_deleting=topic in self.deleting,
            is_in_reassignment=topic in self.reassigning,
            unread_moves=self.unread.get(MOVES, ""),
        )
