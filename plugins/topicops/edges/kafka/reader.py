"""The live cluster as the brokers describe it: for KRaft, and where ZooKeeper cannot be reached. Never writes.

Brokers have no ``sync`` and no transaction ids: a topic is described, its configs are read, and it is described again
until two descriptions agree. Each broker hears from the controller a little later, so that a snapshot may be some
tenths of a second old; the few topics of ``traces`` are read until all brokers that answer agree. Reading creates no
topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import ListPartitionReassignmentsRequest

from topicops.edges.kafka.clients.confluent import Confluent
from topicops.edges.kafka.clients.diagnosis import address_problem, answering_brokers
from topicops.edges.kafka.clients.kafka_python_inside import Reconnecting
from topicops.edges.kafka.clients.requests import is_override
from topicops.edges.kafka.clients.settings import Deadline, error_text, named, wait_all
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.kafka.questions.broker_views import BrokerViews
from topicops.edges.kafka.questions.cluster import Quorum, ask_offered, ask_quorum
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import (
    MOVES,
    Assignment,
    Broker,
    ClusterSnapshot,
    LiveTopic,
    PartitionState,
    TopicsInMemory,
    TopicTraces,
)
from topicops.model.codes import Code
from topicops.model.errors import ClusterError, ClusterUnreachableError, NoTopicIdError, UsageError
from topicops.model.memory import gc_paused
from topicops.model.ports import BrokerView, Lease, ServerTime, TopicSink, Unoffered
from topicops.model.printable import address, printable
from topicops.model.release import GIVE_TOPIC_IDS, REASSIGNMENTS
from topicops.model.waits import waiting_for

T = TypeVar("T")
BatchCall = Callable[[AdminClient, Sequence[str]], Mapping[str, Future[Any]]]
"""Sends a request for some names, and gives a future for each."""

TOPICS_PER_REQUEST = 300
MOST_READS = 10
"""Most readings of a topic that changes, before it is marked unstable."""
MOST_SNAPSHOTS = 5
"""Most readings of all topics, because brokers or controller changed meanwhile."""
READ_PAUSE_S = 0.1
"""Time for a broker to hear from the controller what another broker has heard."""
BROKERS_COMPARED = 16
"""Number of brokers that must agree on a topic: the first by id."""
VIEW_TIMEOUT_S = 1.0
"""Seconds that brokers may take to give their own view; silent ones are left out."""
GRACE_S = 2.0
"""Seconds that a future is waited for beyond librdkafka's own deadline."""
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Sixteen zero bytes: the topic has none."""
UNKNOWN_UNDER_ZOOKEEPER = frozenset({"deleting", "orphan_configs"})
"""Fields that only ZooKeeper knows. Under KRaft neither exists."""


class ClusterHeader(NamedTuple):
    """The cluster without its topics: must be the same before and after the topics are read."""

    cluster_id: str
    brokers: Mapping[int, Broker]
    controller_id: int | None
    controller_epoch: int | None
    """Epoch of the controller; None means that ZooKeeper controls the brokers."""


class Description(NamedTuple):
    topic_id: str
    assignment: Assignment
    states: Mapping[int, PartitionState]


class Reassignment(NamedTuple):
    """The replicas that a running reassignment adds and removes, by partition."""

    adding: dict[int, tuple[int, ...]]
    removing: dict[int, tuple[int, ...]]


class TopicsRead(NamedTuple):
    """What was read of some topics; absent ones have no description."""

    descriptions: dict[str, Description]
    overrides: dict[str, dict[str, str]]
    reassignments: dict[str, Reassignment]
    unstable: frozenset[str]
    """Topics that changed at each read, or on which the brokers disagree."""


class KafkaReader:
    """Fills ``model.ports.LiveReader`` from the Admin API; a context manager. Each answer is waited for ``timeout_s``.

    It sees the topics that its identity may describe, and, under ZooKeeper, no topic that is being deleted.
    """

    chroot = ""
    """Brokers have no chroot."""
    lag_s = 2.0
    """Brokers hear of a change from the controller, in most cases within some tenths of a second."""

    def __init__(self, properties: Mapping[str, str], *, timeout_s: float = 10.0, is_managed: bool = False) -> None:
        """With ``is_managed``, do without reassignments and the quorum where the brokers refuse them."""
        self._properties, self._is_managed = dict(properties), is_managed
        self._unread: dict[str, str] = {}
        self._timeout_s = timeout_s
        self._confluent = Confluent(properties)
        self._connections = Reconnecting(properties, request_timeout_s=timeout_s, is_managed=is_managed)
        self._views = BrokerViews(properties, timeout_s=VIEW_TIMEOUT_S)

    def __enter__(self) -> Self:
        """Ask for the list of brokers first: librdkafka never stops asking a port that does not answer.

        Raises ``ClusterError`` where no broker answers; the text has the cause for each server.
        """
        with suppress(UsageError):
            answering_brokers(self._connections(), self._properties)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._confluent.discard()
        self._views.close()
        self._connections.close()

    def cluster_id(self) -> str:
        """Return the id of the cluster, as the brokers know it. Raises ``ClusterUnreachableError``."""
        return self._described_cluster()[0]

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        """Read the whole cluster, and the brokers' defaults.

        Raises ``ClusterUnreachableError`` where no broker answers in time, and ``ClusterError`` where one refuses, or
        where brokers or controller change each time.
        """
        with gc_paused():
            for _ in range(MOST_SNAPSHOTS):
                header = self._header()
                topics = self._all_topics()
                if self._header() == header:
                    return self._assembled(header, topics, into or TopicsInMemory(), states=states)
        raise ClusterError(
            f"{self._servers}: brokers or controller changed {MOST_SNAPSHOTS} times while the topics were read; "
            "wait until they no longer change, and try again"
        )

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        """Return the topics of these names, as all brokers know them; brokers see no config or marker without a topic.

        A topic on which the brokers do not come to agree is unstable, also if one of them does not know it at all.
        """
        names = sorted(set(topics))
        found = self._read(names, by_all_brokers=True)
        lives = {name: _live_topic(name, found, states=states) for name in found.descriptions}
        lives |= self._known_to_some(sorted(found.unstable - found.descriptions.keys()))
        return {
            name: TopicTraces(
                live=lives.get(name),
                has_config_znode=False,
                is_deleting=False,
                unread_moves=self._unread.get(MOVES, ""),
            )
            for name in names
        }

    def _known_to_some(self, topics: Sequence[str]) -> dict[str, LiveTopic]:
        """Return topics that the broker which was asked does not know, as the first broker knows them that does."""
        found: dict[str, LiveTopic] = {}
        for view in self._views_of(topics) if topics else ():
            for name in topics:
                if (rows := _rows(view, name)) is not None and name not in found:
                    topic_id = view.topic_ids.get(name)
                    found[name] = LiveTopic(name=name, topic_id=topic_id, assignment=rows, unstable=True)
        return found

    def require_describable(self, topics: Sequence[str]) -> None:
        """Raise ``ClusterError`` unless the reader may describe each topic: brokers hide others without an error."""
        self._descriptions(topics)

    def catch_up_with(self, lease: Lease) -> None:
        """Do nothing: the brokers' answers carry no ZooKeeper transaction to compare with."""

    def server_time(self) -> ServerTime | None:
        """Return the time of the quorum's leader; None if ZooKeeper controls the brokers: they do not send it."""
        quorum = self._quorum()
        return None if quorum is None else quorum.time

    def brokers(self) -> Mapping[int, Broker]:
        """Live brokers by id, without fenced ones."""
        return self._described_cluster()[1]

    def controller_epoch(self) -> int | None:
        """Return the epoch of the quorum's leader; None if ZooKeeper controls the brokers: only ZooKeeper knows it."""
        quorum = self._quorum()
        return None if quorum is None else quorum.epoch

    def controller_id(self) -> int | None:
        """Return the leader of the quorum under KRaft; None while none is elected."""
        return self._header().controller_id

    def _header(self) -> ClusterHeader:
        cluster_id, brokers, controller_id = self._described_cluster()
        quorum = self._quorum()
        if quorum is None and self._is_managed and controller_id is not None:
            controller_id = min(brokers, default=None)  # services name any broker, and the next time another one
        if quorum is None:
            return ClusterHeader(cluster_id, brokers, controller_id, None)
        # A KRaft cluster names any broker as its controller, and another one the next time.
        return ClusterHeader(cluster_id, brokers, quorum.leader if quorum.leader >= 0 else None, quorum.epoch)

    def _quorum(self) -> Quorum | None:
        """Return what ``ask_quorum`` gives; in a managed cluster None, too, where the brokers refuse."""
        try:
            return ask_quorum(self._connections())
        except ClusterUnreachableError:
            raise
        except ClusterError as error:
            if not self._is_managed:
                raise
            reason = str(error).partition(": ")[2].partition(";")[0]
            self._unread["the KRaft quorum"] = f"DescribeQuorum: {reason}"  # whichever broker was asked
            return None

    def _described_cluster(self) -> tuple[str, dict[int, Broker], int | None]:
        described = self._result(lambda client: client.describe_cluster(request_timeout=self._timeout_s))
        brokers = {
            node.id: Broker(id=node.id, rack=node.rack, endpoints=(address(node.host, node.port),))
            for node in sorted(described.nodes, key=lambda node: int(node.id))
        }
        controller = described.controller
        return str(described.cluster_id), brokers, controller.id if controller and controller.id >= 0 else None

    def _all_topics(self) -> TopicsRead:
        names = self._names()
        found = self._read(names)
        new = sorted(set(self._names()) - set(names))
        if not new:
            return found
        more = self._read(new)
        return TopicsRead(
            found.descriptions | more.descriptions,
            found.overrides | more.overrides,
            found.reassignments | more.reassignments,
            found.unstable | more.unstable,
        )

    def _names(self) -> list[str]:
        # Without names: librdkafka lets a broker create a topic that is asked for by name.
        return sorted(self._call(lambda client: client.list_topics(timeout=self._timeout_s)).topics)

    def _read(self, names: Sequence[str], *, by_all_brokers: bool = False) -> TopicsRead:
        """Describe, read the configs, describe again, until two descriptions of each topic agree, or all brokers."""
        descriptions, overrides = self._descriptions(names), dict[str, dict[str, str]]()
        unstable = frozenset(names)
        reassignments: dict[str, Reassignment] = {}
        for attempt in range(MOST_READS):
            if attempt:
                time.sleep(READ_PAUSE_S)
            overrides |= self._overrides(sorted(unstable & descriptions.keys()))
            reassignments = self._reassignments()
            again = self._descriptions(sorted(unstable))
            changed = frozenset(name for name in unstable if _stamp(descriptions, name) != _stamp(again, name))
            descriptions = {name: d for name, d in descriptions.items() if name not in unstable} | again
            unstable = changed | self._disagreements(again, unstable - changed) if by_all_brokers else changed
            if not unstable:
                break
        return TopicsRead(descriptions, overrides, reassignments, unstable)

    def _disagreements(self, found: Mapping[str, Description], names: Collection[str]) -> frozenset[str]:
        """Return the names of which some broker knows something else."""
        rows = {name: found[name].assignment if name in found else None for name in names}
        views = self._views_of(sorted(rows)) if rows else []
        return frozenset(name for name in rows if any(_rows(view, name) != rows[name] for view in views))

    def _views_of(self, topics: Sequence[str]) -> list[BrokerView]:
        brokers = sorted(self._connections().brokers())[:BROKERS_COMPARED]
        return [view for view in self._views.views(brokers, topics).values() if isinstance(view, BrokerView)]

    def _descriptions(self, names: Sequence[str]) -> dict[str, Description]:
        """Return descriptions by name, without absent topics."""
        described = self._in_batches(names, self._describe_topics)
        found = {name: _description(answer) for name, answer in described.items()}
        if without := [name for name, description in found.items() if description.topic_id == NO_TOPIC_ID]:
            raise NoTopicIdError(
                f"{printable(without[0])}: the brokers give it no topic id, so a later topic of that name cannot be "
                f"distinguished ({Code.NO_TOPIC_IDS}): {self._way_without_ids()}"
            )
        return found

    def _way_without_ids(self) -> str:
        needed, offered = GIVE_TOPIC_IDS, ask_offered(self._connections(), Deadline(self._timeout_s))
        last = {broker: requests.get(needed.key, -1) for broker, requests in offered.items()}
        if old := {broker: version for broker, version in last.items() if version < needed.version}:
            return (
                f"{needed.request} on {brokers_text(old)} goes only up to version {min(old.values())}, "
                f"and topic ids come with version {needed.version} (Kafka {needed.since}); "
                "use source: zookeeper if you run their ZooKeeper, else ask who runs the brokers for topic ids"
            )
        return f"raise inter.broker.protocol.version to {needed.since}, or set source: zookeeper"

    def _describe_topics(self, client: AdminClient, names: Sequence[str]) -> Mapping[str, Future[Any]]:
        futures: Mapping[str, Future[Any]] = client.describe_topics(
            TopicCollection(list(names)), request_timeout=self._timeout_s
        )
        return futures

    def _overrides(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return what is set on each topic itself, as the brokers write it; without topics that are gone."""
        return {
            topic: {
                name: entry.value or ""
                for name, entry in sorted(entries.items())
                if is_override(entry.source, is_default=entry.is_default)
            }
            for topic, entries in self._in_batches(names, self._describe_configs).items()
        }

    def _describe_configs(self, client: AdminClient, names: Sequence[str]) -> Mapping[str, Future[Any]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        futures = client.describe_configs(resources, request_timeout=self._timeout_s)
        return {str(resource.name): future for resource, future in futures.items()}

    def _reassignments(self) -> dict[str, Reassignment]:
        """Return all running reassignments by topic, from the controller; confluent-kafka has no call for it."""
        connections = self._connections()
        controller = connections.controller()
        request = ListPartitionReassignmentsRequest(timeout_ms=int(self._timeout_s * 1000), topics=None)
        reply = connections.ask({controller: request}, timeout_s=self._timeout_s)[controller]
        if isinstance(reply, Unoffered) and self._is_managed:
            self._unread[MOVES] = reply.removeprefix("refuses ")
            return {}
        if isinstance(reply, Unoffered):
            raise ClusterError(f"{self._servers}: broker {controller} {reply}: {REASSIGNMENTS.cost}")
        if isinstance(reply, str):
            self._connections.close()
            raise ClusterUnreachableError(f"{self._servers}: reassignments: broker {controller} {reply}")
        error = KafkaError(reply.error_code)
        if _is_transport(error):
            raise ClusterUnreachableError(f"{self._servers}: reassignments: {named(error.code())}; try again")
        if error.code() != KafkaError.NO_ERROR:
            raise self._refusal("reassignments", error)
        return {
            topic.name: Reassignment(
                adding={p.partition_index: tuple(p.adding_replicas) for p in topic.partitions if p.adding_replicas},
                removing={
                    p.partition_index: tuple(p.removing_replicas) for p in topic.partitions if p.removing_replicas
                },
            )
            for topic in reply.topics
        }

    def _in_batches(self, names: Sequence[str], call: BatchCall) -> dict[str, Any]:
        """Results by name, without unknown topics. Raises ``ClusterError`` for any other refusal."""
        found: dict[str, Any] = {}
        for start in range(0, len(names), TOPICS_PER_REQUEST):
            found |= self._call(partial(self._batch, call, names[start : start + TOPICS_PER_REQUEST]))
        return found

    def _batch(self, call: BatchCall, names: Sequence[str], client: AdminClient) -> dict[str, Any]:
        futures = call(client, names)
        wait_all(list(futures.values()), self._timeout_s + GRACE_S)
        found = {}
        for name, future in futures.items():
            try:
                found[name] = future.result(0)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
                if reason.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                if _is_transport(reason):
                    raise
                raise self._refusal(f"topic {printable(name)}", reason) from error
        return found

    def _result(self, call: Callable[[AdminClient], Future[Any]]) -> Any:
        return self._call(lambda client: call(client).result(self._timeout_s + GRACE_S))

    def _call(self, call: Callable[[AdminClient], T]) -> T:
        """Call, and after a failure once more with a new client: the old one may keep asking a broker that is gone."""
        with waiting_for(f"an answer of {self._servers}", limit_s=2 * (self._timeout_s + GRACE_S)):
            try:
                return call(self._confluent.client())
            except (KafkaException, TimeoutError) as error:
                self._confluent.discard()
                self._require_reachable(error)
            try:
                return call(self._confluent.client())
            except (KafkaException, TimeoutError) as error:
                failure = self._confluent.failure(f"{self._servers}: {error_text(error)}")
                self._confluent.discard()
                raise failure from error

    def _require_reachable(self, error: Exception) -> None:
        """Raise where librdkafka reaches no broker, or not the controller, although the bootstrap address works."""
        problem = ""
        with suppress(UsageError, ClusterError):
            problem = address_problem(self._connections().brokers())
        if problem:
            raise ClusterUnreachableError(problem) from error

    def _refusal(self, what: str, reason: KafkaError) -> ClusterError:
        return ClusterError(
            f"{self._servers}: {what}: {error_text(KafkaException(reason))}; a snapshot must be "
            "complete: the reader needs Describe on the cluster, and Describe and DescribeConfigs on all topics"
        )

    @property
    def _servers(self) -> str:
        return self._properties.get("bootstrap.servers", "the brokers")

    def _assembled(self, header: ClusterHeader, found: TopicsRead, sink: TopicSink, *, states: bool) -> ClusterSnapshot:
        sink.begin()
        sink.take([_live_topic(name, found, states=states) for name in sorted(found.descriptions)])
        with closing(BrokerQuestions(self._properties, is_managed=self._is_managed)) as questions:
            broker_defaults = questions.broker_defaults()
        return ClusterSnapshot(
            cluster_id=header.cluster_id,
            chroot=self.chroot,
            source="kafka",
            controller_id=header.controller_id,
            controller_epoch=header.controller_epoch,
            brokers=header.brokers,
            topics=sink.finish(),
            deleting={},
            broker_defaults=broker_defaults,
            unread=dict(self._unread),
            unknown=UNKNOWN_UNDER_ZOOKEEPER if header.controller_epoch is None and not self._unread else frozenset(),
        )


def _stamp(descriptions: Mapping[str, Description], name: str) -> object:
    """Equal in two descriptions if the topic did not change between them; a new leader is no change."""
    return (descriptions[name].topic_id, descriptions[name].assignment) if name in descriptions else None


def _description(described: Any) -> Description:
    partitions = sorted(described.partitions, key=lambda partition: int(partition.id))
    return Description(
        # As Kafka and its znodes write it; librdkafka uses the alphabet of plain base64.
        topic_id=str(described.topic_id).rstrip("=").replace("+", "-").replace("/", "_"),
        assignment={p.id: tuple(node.id for node in p.replicas) for p in partitions},
        states={
            p.id: PartitionState(
                leader=-1 if p.leader is None else p.leader.id,
                isr=tuple(node.id for node in p.isr),
                leader_epoch=None,
                controller_epoch=None,
                version=None,
            )
            for p in partitions
        },
    )


def _rows(view: BrokerView, topic: str) -> Assignment | None:
    """Return the topic's replicas as one broker knows them; None means that the broker does not know the topic."""
    partitions = view.topics.get(topic)
    return None if partitions is None else {p: seen.replicas for p, seen in partitions.items()}


def _live_topic(name: str, found: TopicsRead, *, states: bool) -> LiveTopic:
    description = found.descriptions[name]
    reassignment = found.reassignments.get(name, Reassignment({}, {}))
    return LiveTopic(
        name=name,
        topic_id=description.topic_id,
        assignment=description.assignment,
        adding=reassignment.adding,
        removing=reassignment.removing,
        overrides=found.overrides.get(name, {}),
        unstable=name in found.unstable,
        states=description.states if states else None,
    )


def _is_transport(reason: KafkaError) -> bool:
    passing = (KafkaError.NOT_CONTROLLER, KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION)
    return reason.code() < KafkaError.UNKNOWN or reason.code() in passing
