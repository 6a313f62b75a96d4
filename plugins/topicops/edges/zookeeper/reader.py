"""Reads the live cluster from ZooKeeper: complete and stable, or not at all. Never writes.

A snapshot takes time. So a topic whose znodes may have changed meanwhile is read again until two readings agree, and
is marked unstable if they never do. Brokers and controller must be the same before and after. When the connection is
lost and the session lives on, the reading starts again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self, TypeVar

from topicops.edges.connections.lookup import ZooKeeperAddress
from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.multi_read import Meanwhile, MultiRead, read_batched, read_pipelined
from topicops.edges.zookeeper.session import (
    ChildrenVersion,
    ConnectionLostError,
    UnknownRequestError,
    Znode,
    ZooKeeperSession,
)
from topicops.model.cluster.snapshot import (
    Broker,
    ClusterSnapshot,
    LiveTopic,
    PartitionState,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.errors import (
    ClusterError,
    ClusterUnreachableError,
    UndecodableZnodeError,
    UnsupportedTargetError,
    WrongTargetError,
)
from topicops.model.memory import gc_paused
from topicops.model.ports import Lease, TopicSink
from topicops.model.printable import printable

logger = logging.getLogger(__name__)

CLUSTER_ID = "/cluster/id"
BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONFIGS = "/config/topics"
MARKERS = "/admin/delete_topics"
REASSIGNMENT = "/admin/reassign_partitions"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
MIGRATION = "/migration"

TOPICS_AT_ONCE = 1_000
"""Number of topics that are read, and kept in memory, until all of them are stable."""
MOST_READINGS = 20
"""Most readings of a topic that changes, before it is marked unstable."""
MOST_ATTEMPTS = 5
"""Most readings of the cluster, because brokers or controller changed meanwhile."""
MOST_RESTARTS = 3
"""Most restarts of one reading because its connection was lost."""

T = TypeVar("T")


class TopicReading(NamedTuple):
    """One topic's znodes, read once."""

    topic: Znode | None
    config: Znode | None
    found: LiveTopic | UndecodableZnodeError | None
    """Topic decoded from both znodes; an error counts only once the reading is stable."""
    states: Mapping[int, Znode | None] | None = None
    """State znodes by partition, not decoded."""

    @property
    def live(self) -> LiveTopic | None:
        """The topic, without its states. Raises ``UndecodableZnodeError``."""
        if isinstance(self.found, UndecodableZnodeError):
            raise self.found
        return self.found

    @property
    def stamp(self) -> tuple[int, int]:
        """Equal for two readings if neither znode changed between them; 0 for a missing znode."""
        return (self.topic.mzxid if self.topic else 0, self.config.mzxid if self.config else 0)

    def is_as_of(self, zxid: int) -> bool:
        """Return whether the reading shows the topic as of ``zxid``, the newest change known before the reading.

        False for a missing znode, which has no stamp. States may be newer, as long as they belong to the same topic.
        """
        if self.topic is None or self.config is None or max(self.stamp) > zxid:
            return False
        return all(state is not None and state.czxid <= zxid for state in (self.states or {}).values())


class ControlState(NamedTuple):
    """Brokers and controller: must be the same before and after the topics are read."""

    brokers: Mapping[int, Broker]
    controller_id: int | None
    controller_epoch: int


class ZooKeeperReader:
    """Fills ``model.ports.LiveReader``; a context manager around one session.

    Args:
        address: Or only its hosts, ``host:port,host:port/chroot``.
        timeout_s: The longest wait for the connection and for each answer.

    Raises ``ConnectionSecurityError`` on entering, and ``ClusterUnreachableError`` then and whenever the connection is
    lost.
    """

    request: ClassVar[type[MultiRead]] = MultiRead
    """The bulk request to try; a server that does not know it is read one request a znode."""
    lag_s = 0.0
    """Lag of readings: none, because each begins with a ``sync``."""

    def __init__(self, address: ZooKeeperAddress | str, *, timeout_s: float = 10.0) -> None:
        self.session = ZooKeeperSession(address, timeout_s=timeout_s)
        self.knows_multi_read = True
        """Whether the server reads many znodes in one request; else each znode is a request."""
        self._session_id: int | None = None
        self._lease: Lease | None = None

    def __enter__(self) -> Self:
        self.session.__enter__()
        try:
            self._session_id = self.session.session_id
            self.connected(self._probe)
        except BaseException:
            self.session.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    @property
    def chroot(self) -> str:
        """``/kafka``, or empty for the root."""
        return self.session.chroot

    def server_time(self) -> None:
        """Return None: only a write shows ZooKeeper's clock, as that of the lease does."""

    def catch_up_with(self, lease: Lease) -> None:
        """Refuse, from now on, a server that has not seen every change that the lease's session has seen.

        A leader that lost its followers to a new leader, and does not know it yet, still answers a ``sync`` without an
        error. But it has not seen what the other servers wrote, the lease for example.
        """
        self._lease = lease

    def require_describable(self, topics: Sequence[str]) -> None:
        """Do nothing: ZooKeeper lists every topic, and refuses openly what it does not let a client read."""

    def cluster_id(self) -> str:
        """Read ``/cluster/id``. Raises ``WrongTargetError`` where no Kafka cluster keeps its znodes."""
        return self.connected(self._cluster_id)

    def _cluster_id(self) -> str:
        path = CLUSTER_ID
        znode = self.session.get(path)
        if znode is None:
            raise WrongTargetError(
                f"{self.session.hosts}: there is no {path} here: wrong chroot {self.session.chroot or '/'!r}? "
                "No Kafka cluster keeps its znodes there; compare with the brokers' zookeeper.connect"
            )
        return znodes.decode_cluster_id(path, znode.data)

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        """Read the whole cluster. ``broker_defaults`` stays None: only brokers know them.

        Ages of deletion markers use this machine's clock, or the newest time that a znode shows if that is later:
        ZooKeeper tells its time only to clients that write.

        Raises:
            WrongTargetError: No Kafka cluster under this chroot.
            UnsupportedTargetError: A KRaft controller rules the cluster; ZooKeeper is a copy.
            UndecodableZnodeError: A znode that this needs holds what cannot be read.
            ClusterUnreachableError: The connection was lost, or an answer took too long.
            ClusterError: No broker is alive, a znode may not be read, or brokers and controller keep changing.
        """
        with gc_paused():
            return self.connected(lambda: self._snapshot(into or TopicsInMemory(), states=states))

    def _snapshot(self, sink: TopicSink, *, states: bool) -> ClusterSnapshot:
        self._catch_up()
        cluster_id = self._cluster_id()
        for _ in range(MOST_ATTEMPTS):
            before = self._control_state()
            configs = self.session.children_version(CONFIGS)
            sink.begin()
            listing = self._read_all_topics(sink, states=states)
            names = self.session.children(MARKERS) or ()
            orphans = self._orphan_configs(listing, configs)
            reassigning = _moving(self.session.get(REASSIGNMENT))
            markers = dict(zip(names, self._read([f"{MARKERS}/{name}" for name in names]), strict=True))
            if self._control_state() == before:
                self._require_same_session()
                times = (znode.mtime for znode in markers.values() if znode)
                now_ms = max(time.time_ns() // 1_000_000, listing.newest_ms, *times)
                return ClusterSnapshot(
                    cluster_id=cluster_id,
                    chroot=self.session.chroot,
                    source="zookeeper",
                    controller_id=before.controller_id,
                    controller_epoch=before.controller_epoch,
                    brokers=before.brokers,
                    topics=sink.finish(),
                    # A marker that was removed meanwhile does not count.
                    deleting={name: now_ms - znode.stat.ctime for name, znode in markers.items() if znode},
                    reassigning=reassigning,
                    orphan_configs=orphans,
                )
        raise ClusterError(
            f"{self.session.hosts}: brokers or controller changed {MOST_ATTEMPTS} times while the topics were read; "
            "wait until the cluster is stable: /controller_epoch must not rise"
        )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        """Return every znode of these names, after the server has caught up with its leader."""
        return self.connected(lambda: self._traces(topics, states=states))

    def _traces(self, topics: Sequence[str], *, states: bool) -> Mapping[str, TopicTraces]:
        self._catch_up()
        names = sorted(set(topics))
        readings, unstable = self._read_until_stable(names, states=states)
        reassignment, *markers = self._read([REASSIGNMENT, *(f"{MARKERS}/{name}" for name in names)])
        moving = _moving(reassignment)
        return {
            name: TopicTraces(
                live=_live_topic(name, readings[name], unstable=name in unstable),
                has_config_znode=readings[name].config is not None,
                is_deleting=marker is not None,
                is_in_reassignment=name in moving,
            )
            for name, marker in zip(names, markers, strict=True)
        }

    def brokers(self) -> Mapping[int, Broker]:
        """Live brokers by id; empty when none is registered."""
        return self.connected(self._brokers)

    def _brokers(self) -> Mapping[int, Broker]:
        names = self.session.children(BROKERS) or ()
        znodes_by_name = zip(names, self._read([f"{BROKERS}/{name}" for name in names]), strict=True)
        found = [_broker(name, znode) for name, znode in znodes_by_name if znode is not None]
        return {broker.id: broker for broker in sorted(found, key=lambda broker: broker.id)}

    def controller_epoch(self) -> int:
        """0 while the cluster has never had a controller."""
        return self.connected(self._controller_epoch)

    def _controller_epoch(self) -> int:
        znode = self.session.get(CONTROLLER_EPOCH)
        return 0 if znode is None else znodes.decode_controller_epoch(CONTROLLER_EPOCH, znode.data)

    def controller_id(self) -> int | None:
        """Return None while none is elected. Raises ``UnsupportedTargetError`` under KRaft."""
        return self._zookeeper_controller(self.connected(lambda: self.session.get(CONTROLLER)))

    def connected(self, read: Callable[[], T]) -> T:
        """Call ``read``, and call it again when the connection is lost and the session is not."""
        for _ in range(MOST_RESTARTS):
            try:
                return read()
            except ConnectionLostError as error:
                if not self.session.reconnected() or self.session.is_lost:
                    raise
                logger.info("reading again: %s", error)
        return read()

    def _catch_up(self) -> None:
        """Sync the server with its leader. Raises ``ClusterUnreachableError`` if it is behind the lease's session."""
        newest = (self._lease.zxid() if self._lease else None) or 0
        self.session.sync()
        if self.session.zxid < newest:
            raise ClusterUnreachableError(
                f"{self.session.hosts}: this ZooKeeper has not heard of the newest changes ({self.session.zxid:#x}, "
                f"another server {newest:#x}): it is cut off from the others; run it again when they are connected"
            )

    def _probe(self) -> None:
        """Find out whether the server knows the bulk request: an old server closes the connection on it."""
        try:
            read_batched(self.session, [CLUSTER_ID], request=self.request)
        except UnknownRequestError:
            logger.debug("%s: no multiRead; one request a znode", self.session.hosts)
            self.knows_multi_read = False
            if not self.session.reconnected():
                raise ClusterUnreachableError(
                    f"{self.session.hosts}: {CLUSTER_ID}: the server closed the connection on multiRead, and no other "
                    "connection could be made"
                ) from None

    def _read(self, paths: Sequence[str], *, meanwhile: Meanwhile = lambda _: None) -> list[Znode | None]:
        if self.knows_multi_read:
            return read_batched(self.session, paths, request=self.request, meanwhile=meanwhile)
        return read_pipelined(self.session, paths, meanwhile=meanwhile)

    def _control_state(self) -> ControlState:
        """Raises ``UnsupportedTargetError`` under KRaft, ``ClusterError`` if no broker is registered."""
        controller, migration = self._read([CONTROLLER, MIGRATION])
        controller_id = self._zookeeper_controller(controller)
        if migration and znodes.decode_migration(MIGRATION, migration.data).has_begun:
            raise UnsupportedTargetError(_kraft_message(self.session.hosts, MIGRATION))
        brokers = self._brokers()
        if not brokers:
            raise ClusterError(
                f"{self.session.hosts}: no broker is alive: {BROKERS} is empty; start the brokers, or wait for them"
            )
        return ControlState(brokers, controller_id, self._controller_epoch())

    def _zookeeper_controller(self, znode: Znode | None) -> int | None:
        if znode is None:
            return None
        controller = znodes.decode_controller(CONTROLLER, znode.data)
        if controller.is_kraft:
            raise UnsupportedTargetError(_kraft_message(self.session.hosts, CONTROLLER))
        return controller.broker_id

    def _names(self, path: str) -> tuple[str, ...]:
        """Child names of a znode that every broker creates when it starts."""
        found = self.session.children(path)
        if found is None:
            raise WrongTargetError(
                f"{self.session.hosts}: {CLUSTER_ID} exists and {path} does not: this is no whole Kafka cluster; "
                "compare the chroot with the brokers' zookeeper.connect"
            )
        return found

    def _read_topics(self, names: Sequence[str], *, states: bool) -> dict[str, TopicReading]:
        """Read each topic once. States are read after their topic, so that a second reading confirms them too."""
        readings: dict[str, TopicReading] = {}

        def take(znodes: Sequence[Znode | None]) -> None:
            for place in range(2 * len(readings), len(znodes) - 1, 2):
                name, topic, config = names[place // 2], znodes[place], znodes[place + 1]
                readings[name] = TopicReading(topic, config, _decoded(name, topic, config))

        paths = [path for name in names for path in (f"{TOPICS}/{name}", f"{CONFIGS}/{name}")]
        self._read(paths, meanwhile=take)
        if not states:
            return readings
        partitions = {
            name: sorted(reading.found.assignment) if isinstance(reading.found, LiveTopic) else ()
            for name, reading in readings.items()
        }
        found = iter(self._read([_state_path(name, p) for name in names for p in partitions[name]]))
        return {name: readings[name]._replace(states={p: next(found) for p in partitions[name]}) for name in names}

    def _read_until_stable(
        self, names: Sequence[str], *, states: bool
    ) -> tuple[dict[str, TopicReading], frozenset[str]]:
        """Read each topic until its reading is stable; gives the readings, and the topics that never became stable.

        A reading is stable if it is as of the newest change known before it, or if the next reading agrees with it.
        """
        zxid = self.session.zxid
        readings = self._read_topics(names, states=states)
        unstable = [name for name in names if not readings[name].is_as_of(zxid)]
        for _ in range(MOST_READINGS):
            if not unstable:
                break
            zxid = self.session.zxid
            again = self._read_topics(unstable, states=states)
            newer = {name: reading for name, reading in again.items() if reading.stamp != readings[name].stamp}
            readings.update(newer)
            unstable = [name for name in unstable if name in newer and not newer[name].is_as_of(zxid)]
        return readings, frozenset(unstable)

    def _read_all_topics(self, sink: TopicSink, *, states: bool) -> Listing:
        """Hand every topic to the sink, once its reading is stable or was tried often enough."""
        before = self.session.children_version(TOPICS)
        listing = Listing()
        listed = sorted(self._names(TOPICS))
        self._read_in_parts(listed, sink, listing, states=states)
        # Listing many children delays every other client of the server.
        if self.session.children_version(TOPICS) != before:
            created = sorted(set(self._names(TOPICS)).difference(listed))
            self._read_in_parts(created, sink, listing, states=states)
        return listing

    def _read_in_parts(self, names: Sequence[str], sink: TopicSink, listing: Listing, *, states: bool) -> None:
        for start in range(0, len(names), TOPICS_AT_ONCE):
            part = names[start : start + TOPICS_AT_ONCE]
            readings, unstable = self._read_until_stable(part, states=states)
            found = (_live_topic(name, readings[name], unstable=name in unstable) for name in part)
            sink.take([topic for topic in found if topic is not None])
            listing.note(readings)

    def _orphan_configs(self, listing: Listing, before: ChildrenVersion | None) -> frozenset[str]:
        """Return the names with a config znode and without a topic; ``before`` was read before the topics."""
        is_complete = before is not None and before.children == listing.configs
        if is_complete and self.session.children_version(CONFIGS) == before:
            return frozenset()  # each config was read with its topic, so they need not be listed
        leftovers = sorted(set(self._names(CONFIGS)) - listing.topics)
        # Read again: a config whose topic was created meanwhile is no orphan.
        again = self._read_topics(leftovers, states=False)
        return frozenset(name for name, reading in again.items() if reading.config and not reading.topic)

    def _require_same_session(self) -> None:
        """Refuse a new session: its server may be behind the old session's server."""
        # None: the same session is reconnecting.
        if self.session.is_lost or self.session.session_id not in (None, self._session_id):
            message = f"{self.session.hosts}: {TOPICS}: the ZooKeeper session ended while reading; run it again"
            raise ClusterUnreachableError(message)


@dataclass(slots=True)
class Listing:
    """What is known of all topics once each part of them was read."""

    topics: set[str] = field(default_factory=set)
    configs: int = 0
    """Number of topics with a config znode."""
    newest_ms: int = 0
    """The newest time that one of their znodes shows."""

    def note(self, readings: Mapping[str, TopicReading]) -> None:
        there = {name: reading for name, reading in readings.items() if reading.topic is not None}
        self.topics |= there.keys()
        self.configs += sum(reading.config is not None for reading in there.values())
        times = (znode.mtime for reading in there.values() for znode in (reading.topic, reading.config) if znode)
        self.newest_ms = max(self.newest_ms, *times, 0)


def _moving(reassignment: Znode | None) -> frozenset[str]:
    """Return the topics that ``/admin/reassign_partitions`` names."""
    rows = znodes.decode_reassignment(REASSIGNMENT, reassignment.data if reassignment else None)
    return frozenset(row.topic for row in rows)


def _kraft_message(hosts: str, path: str) -> str:
    return (
        f"{hosts}: {path} says that a KRaft controller rules this cluster: ZooKeeper is only a copy of it; "
        "set `source: kafka` in the environment"
    )


def _broker(name: str, znode: Znode) -> Broker:
    path = f"{BROKERS}/{name}"
    if not (name.isascii() and name.isdecimal() and len(name) < 11):
        raise UndecodableZnodeError(printable(path), "is no broker id", "find out which program wrote it")
    decoded = znodes.decode_broker(path, znode.data)
    return Broker(
        id=int(name),
        rack=decoded.rack,
        endpoints=tuple(endpoint.text for endpoint in decoded.endpoints),
        protocols=tuple(endpoint.protocol for endpoint in decoded.endpoints),
        epoch=znode.czxid,
    )


def _state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def _decoded(name: str, topic: Znode | None, config: Znode | None) -> LiveTopic | UndecodableZnodeError | None:
    if topic is None:
        return None
    try:
        decoded = znodes.decode_topic(f"{TOPICS}/{name}", topic.data)
        overrides = znodes.decode_config(f"{CONFIGS}/{name}", config.data) if config else {}
    except UndecodableZnodeError as error:
        return error
    return LiveTopic(
        name=name,
        topic_id=decoded.topic_id,
        czxid=topic.czxid,
        mzxid=topic.mzxid,
        assignment=decoded.partitions,
        adding=decoded.adding,
        removing=decoded.removing,
        overrides=overrides,
    )


def _live_topic(name: str, reading: TopicReading, *, unstable: bool) -> LiveTopic | None:
    live = reading.live
    if live is None or (reading.states is None and not unstable):
        return live
    states = None if reading.states is None else _states(name, reading.states)
    return replace(live, unstable=unstable, states=states)


def _states(topic: str, found: Mapping[int, Znode | None]) -> dict[int, PartitionState]:
    states = {}
    for partition, znode in found.items():
        decoded = None if znode is None else znodes.decode_state(_state_path(topic, partition), znode.data)
        if znode is not None and decoded is not None:
            states[partition] = PartitionState(
                leader=decoded.leader,
                isr=decoded.isr,
                leader_epoch=decoded.leader_epoch,
                controller_epoch=decoded.controller_epoch,
                version=znode.version,
            )
    return states
