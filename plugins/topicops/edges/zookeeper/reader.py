"""The live cluster out of ZooKeeper: read whole and settled, or not at all. Never writes.

A snapshot is no instant: topics are looked at twice, and again as long as their znodes move; brokers and controller
must be the same before and after. A topic that keeps moving is marked unstable. A reading that loses its connection
begins anew, as long as the session lives on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, NamedTuple, Self, TypeVar

from topicops.edges.connections.lookup import ZooKeeperAddress
from topicops.edges.zookeeper import znodes
from topicops.edges.zookeeper.multi_read import Meanwhile, MultiRead, nothing, read_batched, read_pipelined
from topicops.edges.zookeeper.session import (
    ConnectionLostError,
    Offspring,
    UnknownRequestError,
    Znode,
    ZooKeeperSession,
)
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic, PartitionState, TopicTraces
from topicops.model.errors import (
    ClusterError,
    ClusterUnreachableError,
    UndecodableZnodeError,
    UnsupportedTargetError,
    WrongTargetError,
)
from topicops.model.gc_pause import gc_paused
from topicops.model.ports import Lease
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

LOOKS = 20
"""How often a moving topic is looked at before it is marked unstable."""
FRAMES = 5
"""How often the whole is read again because brokers or controller changed meanwhile."""
FRESH_STARTS = 3
"""How often one reading begins anew because its connection was lost."""

T = TypeVar("T")


class Look(NamedTuple):
    """One topic's znodes as they were at one moment."""

    topic: Znode | None
    config: Znode | None
    found: LiveTopic | UndecodableZnodeError | None
    """What the two say; whether an error matters, only a settled look can tell."""
    states: Mapping[int, Znode | None] | None = None
    """Undecoded."""

    @property
    def live(self) -> LiveTopic | None:
        """The topic, without its states. Raises ``UndecodableZnodeError``."""
        if isinstance(self.found, UndecodableZnodeError):
            raise self.found
        return self.found

    @property
    def stamp(self) -> tuple[int, int]:
        """Equal stamps of two looks: neither znode changed between them. 0: there is none."""
        return (
            self.topic.mzxid if self.topic else 0,
            self.config.mzxid if self.config else 0,
        )

    def is_as_of(self, zxid: int) -> bool:
        """Whether all of it is what stood there at ``zxid``, the newest change known before the look.

        A znode that is not there carries no stamp, so that it cannot tell. States may be younger, as long as they
        belong to the topic of then.
        """
        if self.topic is None or self.config is None or max(self.stamp) > zxid:
            return False
        return all(state is not None and state.czxid <= zxid for state in (self.states or {}).values())


class Frame(NamedTuple):
    """What the topics are seen in: must be the same before and after they are read."""

    brokers: Mapping[int, Broker]
    controller_id: int | None
    controller_epoch: int


class ZooKeeperReader:
    """Fills ``model.ports.LiveReader``; a context manager around one session.

    Args:
        address: Or only its hosts, ``host:port,host:port/chroot``.
        timeout_s: The longest wait for the connection and for each answer.

    Raises:
        ConnectionSecurityError: On entering: wrong credentials, certificates or kind of port.
        ClusterUnreachableError: On entering, and whenever the connection is lost.

    """

    request: ClassVar[type[MultiRead]] = MultiRead
    """The bulk request to try; a server that does not know it is read one request a znode."""

    def __init__(self, address: ZooKeeperAddress | str, *, timeout_s: float = 10.0) -> None:
        self.session = ZooKeeperSession(address, timeout_s=timeout_s)
        self._knows_multi_read = True
        self._session_id: int | None = None
        self._lease: Lease | None = None

    def __enter__(self) -> Self:
        self.session.__enter__()
        try:
            self._session_id = self.session.session_id
            self._probe()
        except BaseException:
            self.session.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()

    @property
    def chroot(self) -> str:
        """``/kafka``, or empty for the root."""
        return self.session.chroot

    @property
    def knows_multi_read(self) -> bool:
        """Whether the server reads many znodes in one request; else each znode is a request."""
        return self._knows_multi_read

    def catch_up_with(self, lease: Lease) -> None:
        """Refuse, from now on, a server that has not seen every change that the lease's session has seen.

        A leader that is cut off from its followers, and does not know yet that they elected another one, still answers
        a ``sync`` without an error. But it does not know what the other servers wrote, the lease for example.
        """
        self._lease = lease

    def require_describable(self, topics: Sequence[str]) -> None:
        """Do nothing: ZooKeeper lists every topic, and refuses openly what it does not let a client read."""

    def cluster_id(self) -> str:
        """Read ``/cluster/id``. Raises ``WrongTargetError`` where no Kafka cluster keeps its znodes."""
        return self._connected(self._cluster_id)

    def _cluster_id(self) -> str:
        path = CLUSTER_ID
        znode = self.session.get(path)
        if znode is None:
            raise WrongTargetError(
                f"{self.session.hosts}: there is no {path} here: wrong chroot {self.session.chroot or '/'!r}? "
                "No Kafka cluster keeps its znodes there; compare with the brokers' zookeeper.connect"
            )
        return znodes.decode_cluster_id(path, znode.data)

    def snapshot(self, *, states: bool = False) -> ClusterSnapshot:
        """Read the whole cluster. ``broker_defaults`` stays None: only brokers know them.

        Ages of deletion markers are told by this machine's clock, moved forward to the newest time that the server
        stamped: a reader that writes nothing cannot ask ZooKeeper for the time.

        Raises:
            WrongTargetError: No Kafka cluster under this chroot.
            UnsupportedTargetError: A KRaft controller rules the cluster; ZooKeeper is a copy.
            UndecodableZnodeError: A znode that this needs holds what cannot be read.
            ClusterUnreachableError: The connection was lost, or an answer took too long.
            ClusterError: No broker is alive, a znode may not be read, or brokers and controller do not come to rest.

        """
        with gc_paused():
            return self._connected(lambda: self._snapshot(states=states))

    def _snapshot(self, *, states: bool) -> ClusterSnapshot:
        self._catch_up()
        cluster_id = self._cluster_id()
        for _ in range(FRAMES):
            before = self._frame()
            configs = self.session.offspring(CONFIGS)
            looks, moving = self._settled_looks(states=states)
            rest = self._rest(looks, configs)
            if self._frame() == before:
                self._require_same_session()
                return self._assemble(cluster_id, before, looks, moving, rest)
        raise ClusterError(
            f"{self.session.hosts}: brokers or controller changed {FRAMES} times while the topics were read; "
            "wait until the cluster rests: /controller_epoch must not rise"
        )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        """Everything that stands under the names, after the server has caught up with its leader."""
        return self._connected(lambda: self._traces(topics, states=states))

    def _traces(self, topics: Sequence[str], *, states: bool) -> Mapping[str, TopicTraces]:
        self._catch_up()
        names = sorted(set(topics))
        looks, moving = self._look_until_settled(names, states=states)
        markers = self._read([f"{MARKERS}/{name}" for name in names])
        return {
            name: TopicTraces(
                live=_live_topic(name, looks[name], unstable=name in moving),
                has_config_znode=looks[name].config is not None,
                is_deleting=marker is not None,
            )
            for name, marker in zip(names, markers, strict=True)
        }

    def brokers(self) -> Mapping[int, Broker]:
        """Live brokers by id; empty when none is registered."""
        return self._connected(self._brokers)

    def _brokers(self) -> Mapping[int, Broker]:
        names = self.session.children(BROKERS) or ()
        znodes_by_name = zip(names, self._read([f"{BROKERS}/{name}" for name in names]), strict=True)
        found = [_broker(name, znode) for name, znode in znodes_by_name if znode is not None]
        return {broker.id: broker for broker in sorted(found, key=lambda broker: broker.id)}

    def controller_epoch(self) -> int:
        """0 while the cluster has never had a controller."""
        return self._connected(self._controller_epoch)

    def _controller_epoch(self) -> int:
        znode = self.session.get(CONTROLLER_EPOCH)
        return 0 if znode is None else znodes.decode_controller_epoch(CONTROLLER_EPOCH, znode.data)

    def controller_id(self) -> int | None:
        """None while none is elected. Raises ``UnsupportedTargetError`` under KRaft."""
        return self._zookeeper_controller(self._connected(lambda: self.session.get(CONTROLLER)))

    def _connected(self, read: Callable[[], T]) -> T:
        """What ``read`` gives; from its beginning again when the connection is lost and the session is not."""
        for _ in range(FRESH_STARTS):
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
        """Learn, with nothing else in flight, whether the server knows the bulk request: an old one hangs up on it."""
        try:
            read_batched(self.session, [CLUSTER_ID], request=self.request)
        except UnknownRequestError:
            logger.debug("%s: no multiRead; one request a znode", self.session.hosts)
            self._knows_multi_read = False
            if not self.session.reconnected():
                message = f"{self.session.hosts}: {CLUSTER_ID}: the server hung up on multiRead and did not come back"
                raise ClusterUnreachableError(message) from None

    def _read(self, paths: Sequence[str], *, meanwhile: Meanwhile = nothing) -> list[Znode | None]:
        if self._knows_multi_read:
            return read_batched(self.session, paths, request=self.request, meanwhile=meanwhile)
        return read_pipelined(self.session, paths, meanwhile=meanwhile)

    def _frame(self) -> Frame:
        """Read it. Raises ``UnsupportedTargetError`` under KRaft, ``ClusterError`` where no broker is registered."""
        controller, migration = self._read([CONTROLLER, MIGRATION])
        controller_id = self._zookeeper_controller(controller)
        if migration and znodes.decode_migration(MIGRATION, migration.data).has_begun:
            raise UnsupportedTargetError(_kraft_message(self.session.hosts, MIGRATION))
        brokers = self._brokers()
        if not brokers:
            raise ClusterError(
                f"{self.session.hosts}: no broker is alive: {BROKERS} is empty; start the brokers, or wait for them"
            )
        return Frame(brokers, controller_id, self._controller_epoch())

    def _zookeeper_controller(self, znode: Znode | None) -> int | None:
        if znode is None:
            return None
        controller = znodes.decode_controller(CONTROLLER, znode.data)
        if controller.is_kraft:
            raise UnsupportedTargetError(_kraft_message(self.session.hosts, CONTROLLER))
        return controller.broker_id

    def _names(self, path: str) -> tuple[str, ...]:
        """Child names of a znode that every broker makes at its start."""
        found = self.session.children(path)
        if found is None:
            raise WrongTargetError(
                f"{self.session.hosts}: {CLUSTER_ID} stands and {path} does not: this is no whole Kafka cluster; "
                "compare the chroot with the brokers' zookeeper.connect"
            )
        return found

    def _look(self, names: Sequence[str], *, states: bool) -> dict[str, Look]:
        """One look at each name. States are read after their topic, so that a second look vouches for them too."""
        looks: dict[str, Look] = {}

        def take(znodes: Sequence[Znode | None]) -> None:
            for place in range(2 * len(looks), len(znodes) - 1, 2):
                name, topic, config = names[place // 2], znodes[place], znodes[place + 1]
                looks[name] = Look(topic, config, _decoded(name, topic, config))

        paths = [path for name in names for path in (f"{TOPICS}/{name}", f"{CONFIGS}/{name}")]
        self._read(paths, meanwhile=take)
        if not states:
            return looks
        partitions = {
            name: sorted(look.found.assignment) if isinstance(look.found, LiveTopic) else ()
            for name, look in looks.items()
        }
        found = iter(self._read([_state_path(name, p) for name in names for p in partitions[name]]))
        return {name: looks[name]._replace(states={p: next(found) for p in partitions[name]}) for name in names}

    def _look_until_settled(self, names: Sequence[str], *, states: bool) -> tuple[dict[str, Look], frozenset[str]]:
        """Look at each topic until its znodes are of one moment; give the looks, and which topics still move.

        They are when no change came after the one that was the newest before the look, or when two looks agree.
        """
        zxid = self.session.zxid
        looks = self._look(names, states=states)
        moving = [name for name in names if not looks[name].is_as_of(zxid)]
        for _ in range(LOOKS):
            if not moving:
                break
            zxid = self.session.zxid
            again = self._look(moving, states=states)
            newer = {name: look for name, look in again.items() if look.stamp != looks[name].stamp}
            looks.update(newer)
            moving = [name for name in moving if name in newer and not newer[name].is_as_of(zxid)]
        return looks, frozenset(moving)

    def _settled_looks(self, *, states: bool) -> tuple[dict[str, Look], frozenset[str]]:
        """Every topic's newest look, and the names of those that did not settle."""
        before = self.session.offspring(TOPICS)
        looks, moving = self._look_until_settled(self._names(TOPICS), states=states)
        # Whoever lists many children holds up all that the server does for others.
        is_same = self.session.offspring(TOPICS) == before
        came = () if is_same else sorted(set(self._names(TOPICS)) - looks.keys())
        younger, moving_too = self._look_until_settled(came, states=states)
        looks.update(younger)
        return {name: look for name, look in looks.items() if look.topic is not None}, moving | moving_too

    def _leftovers(self, looks: Mapping[str, Look], before: Offspring | None) -> Sequence[str]:
        """Names that have a config znode and are not among the topics; ``before`` is of the time before these looks."""
        configs = sum(look.config is not None for look in looks.values())
        if before is not None and before.children == configs and self.session.offspring(CONFIGS) == before:
            return ()  # all were seen with their topics, and need not be listed
        return sorted(set(self._names(CONFIGS)) - looks.keys())

    def _rest(self, looks: Mapping[str, Look], configs: Offspring | None) -> Rest:
        markers = self.session.children(MARKERS) or ()
        leftovers = self._leftovers(looks, configs)
        reassignment = self.session.get(REASSIGNMENT)
        return Rest(
            markers=dict(zip(markers, self._read([f"{MARKERS}/{name}" for name in markers]), strict=True)),
            # Looked at again: the topic of a config that came meanwhile is no orphan.
            orphans=frozenset(
                name for name, look in self._look(leftovers, states=False).items() if look.config and not look.topic
            ),
            reassigning=frozenset(
                moved.topic
                for moved in znodes.decode_reassignment(REASSIGNMENT, reassignment.data if reassignment else None)
            ),
        )

    def _assemble(
        self, cluster_id: str, frame: Frame, looks: Mapping[str, Look], moving: frozenset[str], rest: Rest
    ) -> ClusterSnapshot:
        in_order = sorted(looks.items())
        topics = (_live_topic(name, look, unstable=name in moving) for name, look in in_order)
        return ClusterSnapshot(
            cluster_id=cluster_id,
            chroot=self.session.chroot,
            source="zookeeper",
            controller_id=frame.controller_id,
            controller_epoch=frame.controller_epoch,
            brokers=frame.brokers,
            topics={topic.name: topic for topic in topics if topic is not None},
            deleting=_marker_ages(rest.markers, now_ms=_now_ms(looks, rest.markers)),
            reassigning=rest.reassigning,
            orphan_configs=rest.orphans,
        )

    def _require_same_session(self) -> None:
        """Refuse a new session: it may have begun at a server that lags behind what the old one saw."""
        # None: on its way to the next connection, with the same session.
        if self.session.is_lost or self.session.session_id not in (None, self._session_id):
            message = f"{self.session.hosts}: {TOPICS}: the ZooKeeper session ended while reading; run it again"
            raise ClusterUnreachableError(message)


class Rest(NamedTuple):
    """What stands beside the topics."""

    markers: Mapping[str, Znode | None]
    orphans: frozenset[str]
    reassigning: frozenset[str]


def _kraft_message(hosts: str, path: str) -> str:
    return (
        f"{hosts}: {path} says that a KRaft controller rules this cluster: ZooKeeper is only a copy of it; "
        "set `source: kafka` in the environment"
    )


def _broker(name: str, znode: Znode) -> Broker:
    path = f"{BROKERS}/{name}"
    if not (name.isascii() and name.isdecimal()):
        raise UndecodableZnodeError(printable(path), "is no broker id", "find out which program wrote it")
    decoded = znodes.decode_broker(path, znode.data)
    return Broker(
        id=int(name),
        rack=decoded.rack,
        endpoints=tuple(endpoint.text for endpoint in decoded.endpoints),
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


def _live_topic(name: str, look: Look, *, unstable: bool) -> LiveTopic | None:
    live = look.live
    if live is None or (look.states is None and not unstable):
        return live
    states = None if look.states is None else _states(name, look.states)
    return replace(live, unstable=unstable, states=states)


def _states(topic: str, found: Mapping[int, Znode | None]) -> dict[int, PartitionState]:
    states = {p: _state(_state_path(topic, p), znode) for p, znode in found.items() if znode is not None}
    return {p: state for p, state in states.items() if state is not None}


def _state(path: str, znode: Znode) -> PartitionState | None:
    decoded = znodes.decode_state(path, znode.data)
    if decoded is None:
        return None
    return PartitionState(
        leader=decoded.leader,
        isr=decoded.isr,
        leader_epoch=decoded.leader_epoch,
        controller_epoch=decoded.controller_epoch,
        version=znode.version,
    )


def _now_ms(looks: Mapping[str, Look], markers: Mapping[str, Znode | None]) -> int:
    stamped = [znode.mtime for look in looks.values() for znode in (look.topic, look.config) if znode]
    stamped += [znode.mtime for znode in markers.values() if znode]
    return max([time.time_ns() // 1_000_000, *stamped])


def _marker_ages(markers: Mapping[str, Znode | None], *, now_ms: int) -> dict[str, int]:
    """Age in ms by topic; a marker that went while it was read no longer counts."""
    return {name: now_ms - znode.stat.ctime for name, znode in markers.items() if znode is not None}
