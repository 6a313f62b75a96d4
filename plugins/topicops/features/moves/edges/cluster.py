"""A real cluster for the steps of moves: questions and requests over one connection to each broker, as the mover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from confluent_kafka import KafkaError
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so

from topicops.edges.connections.lookup import principal_of
from topicops.edges.kafka.clients.kafka_python_inside import Reconnecting
from topicops.edges.kafka.clients.requests import (
    directories_of,
    directories_request,
    settings_request,
    topic_configs_request,
)
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.features.moves.carrying.ports import BrokerNow, Listed, LogSizes, PartitionNow, TopicNow
from topicops.features.moves.edges.requests import (
    FOLLOWER_RATE,
    LEADER_RATE,
    MIN_ISR,
    Edit,
    Operation,
    adding,
    alter_answers,
    alter_request,
    caps_min_isr,
    cleaned,
    configs_answers,
    configs_request,
    elect_answers,
    elect_request,
    entries_of,
    listing_of,
    listing_request,
    rates_of,
    refused,
    removing,
    sizes_of,
)
from topicops.features.moves.record import FOLLOWER_LIST, LEADER_LIST, TopicPartition
from topicops.model.cluster.snapshot import Broker, LiveTopic, LogDirectories, identity_of
from topicops.model.codes import Code
from topicops.model.errors import ClusterError, ClusterUnreachableError, UndecodableZnodeError, WrongTargetError
from topicops.model.ports import BrokerMetadata, BrokerView, LiveReader
from topicops.model.printable import printable

ANSWER_S = 10.0
"""Seconds that a broker has for one answer."""
ALTER_S = 30.0
"""Seconds for the answer to a request of 50 partitions: a ZooKeeper controller writes each of them twice."""
TOPICS_A_REQUEST = 200
BROKER_CONFIGS = "/config/brokers"
ALTER, DESCRIBE = "Alter on the cluster", "Describe on the cluster"


class KafkaMoveCluster:
    """Implements ``MoveCluster``; a context manager around its connections.

    Args:
        properties: Librdkafka's properties of the mover.
        reader: What reads the environment's source.
        views: What asks each broker for its own metadata.
        draining: Brokers that are to be emptied.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        reader: LiveReader,
        views: BrokerMetadata,
        *,
        draining: Collection[int] = (),
    ) -> None:
        self._properties, self._reader, self._views, self._draining = properties, reader, views, draining
        self._connections = Reconnecting(properties, request_timeout_s=ANSWER_S)
        self._partitions: dict[str, Collection[int]] = {}
        """Partitions of the topics that were read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    def require_same_cluster(self) -> None:
        """Raise ``WrongTargetError`` unless the brokers that are asked belong to the cluster that is read."""
        asked, read = self._connections().cluster_id(), self._reader.cluster_id()
        if asked != read:
            raise WrongTargetError(
                f"the mover's brokers belong to cluster {printable(str(asked))}, what is read to {printable(read)}; "
                "nothing was sent: correct the address of cluster.kafka.mover, or that of what is read"
            )

    # --- questions

    def listed(self) -> Mapping[TopicPartition, Listed]:
        return listing_of(self._of_controller(lambda: listing_request(ANSWER_S), "list the moves", DESCRIBE))

    def topics(self, names: Collection[str]) -> Mapping[str, TopicNow]:
        """Return the topics; entries of the throttle lists count once all live brokers have them."""
        if not names:
            return {}
        traces = self._reader.traces(sorted(names), states=True)
        deleting = {name for name, found in traces.items() if found.is_deleting}
        lives = {name: found.live for name, found in traces.items() if found.live is not None}
        self._partitions |= {name: live.assignment.keys() for name, live in lives.items()}
        configs = self._topic_configs(sorted(lives.keys() - deleting))
        return {
            name: _deleting(live) if name in deleting else _topic(live, configs[name]) for name, live in lives.items()
        }

    def brokers(self) -> Mapping[int, BrokerNow]:
        live = self._reader.brokers()
        rates = self._asked({b: settings_request(b, [LEADER_RATE, FOLLOWER_RATE]) for b in live})
        disks = self._asked({b: directories_request({}) for b in live})
        offered = self._connections().offered(live)
        return {b: self._broker(found, rates[b], disks[b], offered[b]) for b, found in live.items()}

    def agreed_rows(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        if not partitions:
            return frozenset()
        views = self._views.views(sorted(self._reader.brokers()), sorted({found.topic for found in partitions}))
        known = [view for view in views.values() if isinstance(view, BrokerView)]
        if len(known) < len(views):
            return frozenset()
        return frozenset(found for found in partitions if _is_agreed(found, known))

    def log_sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[int, LogSizes | str]:
        if unread := topics - self._partitions.keys():
            found = self._reader.traces(sorted(unread))
            self._partitions |= {name: t.live.assignment.keys() for name, t in found.items() if t.live is not None}
        wanted = {topic: self._partitions[topic] for topic in topics if topic in self._partitions}
        answers = self._asked({broker: directories_request(wanted) for broker in brokers})
        return {broker: self._sizes(broker, answer) for broker, answer in answers.items()}

    # --- requests

    def add_entries(self, topic: str, leader: Sequence[str], follower: Sequence[str]) -> str:
        present = self._lists(topic)
        if isinstance(present, str):
            return present
        lists = [*zip((LEADER_LIST, FOLLOWER_LIST), present, (leader, follower), strict=True)]
        answer = self._edit_topic(topic, [edit for each in lists for edit in adding(*each)])
        if answer.startswith(_NO_LIST):
            answer = self._edit_topic(topic, [edit for each in lists for edit in adding(*each, can_begin=False)])
        return answer or self._without_empty_entries(topic)

    def _without_empty_entries(self, topic: str) -> str:
        found = self._described_lists(topic)
        if isinstance(found, str):
            return found
        texts = {setting.name: setting.value for setting in found.configs}
        return self._edit_topic(topic, [edit for config in _LISTS for edit in cleaned(config, texts.get(config))])

    def remove_entries(self, topic: str, leader: Sequence[str], follower: Sequence[str]) -> str:
        """Take out what any live broker has: the one that is asked may not have heard of entries that were added."""
        present = self._lists_of_all(topic)
        if isinstance(present, str):
            return present
        lists = zip((LEADER_LIST, FOLLOWER_LIST), present, (leader, follower), strict=True)
        return self._edit_topic(topic, [edit for each in lists for edit in removing(*each)])

    def set_rate(self, broker: int, rate: int | None) -> str:
        """Set both rates at the broker itself, because no other one takes them."""
        if broker not in self._reader.brokers():
            return f"broker {broker} is not live"
        operation, value = (Operation.DELETE, None) if rate is None else (Operation.SET, str(rate))
        edits = {str(broker): [(LEADER_RATE, operation, value), (FOLLOWER_RATE, operation, value)]}
        answer = self._asked({broker: configs_request(ResourceType.BROKER, edits)})[broker]
        return configs_answers(self._clear(answer, "change its throttle rates"))[str(broker)]

    def alter(self, rows: Mapping[TopicPartition, tuple[int, ...] | None]) -> Mapping[TopicPartition, str]:
        return alter_answers(self._alter(rows))

    def elect(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        to = "let the preferred leaders lead"
        return elect_answers(self._of_controller(lambda: elect_request(partitions, ANSWER_S), to, ALTER))

    def require_rights(self, topics: Collection[str]) -> None:
        """Raise ``ClusterError`` for the first right that the mover lacks. Nothing is changed."""
        broker, to = min(self._live()), "change the throttle rates"
        self.listed()
        self._alter({})
        rates = {str(broker): [(LEADER_RATE, Operation.SET, "1"), (FOLLOWER_RATE, Operation.SET, "1")]}
        asked = {broker: configs_request(ResourceType.BROKER, rates, validate_only=True)}
        for refusal in configs_answers(self._clear(self._asked(asked)[broker], to)).values():
            self._require(refusal, to, "AlterConfigs on the cluster")
        lists = {topic: [(LEADER_LIST, Operation.SET, "0:0")] for topic in topics}
        asked = {broker: configs_request(ResourceType.TOPIC, lists, validate_only=True)}
        for topic, refusal in configs_answers(self._clear(self._asked(asked)[broker], "change configs")).items():
            if refusal.startswith(_NO_RIGHT):  # a step says what else is wrong with one topic
                self._require(refusal, to, f"AlterConfigs on the topic {topic}")

    def _alter(self, rows: Mapping[TopicPartition, tuple[int, ...] | None]) -> Any:
        return self._of_controller(lambda: alter_request(rows, ALTER_S), "move replicas", ALTER, timeout_s=ALTER_S)

    # --- how

    def _asked(self, requests: Mapping[int, Any], *, timeout_s: float = ANSWER_S) -> dict[int, Any]:
        """Ask brokers at the same time; give each one's answer, or a sentence that names the broker."""
        if not requests:
            return {}
        connections = self._connections()
        if not requests.keys() <= set(connections.known()):
            connections.brokers()
        answers = connections.ask(requests, timeout_s=timeout_s)
        return {b: type(a)(f"broker {b} {a}") if isinstance(a, str) else a for b, a in answers.items()}

    def _of_controller(self, request: Callable[[], Any], to: str, right: str, *, timeout_s: float = ANSWER_S) -> Any:
        """Return the controller's answer; ask once more where the controller is another broker by now.

        Raises ``ClusterError`` where there is no clear answer, or the mover lacks the right.
        """
        answer = self._controllers_answer(request, to, timeout_s)
        if answer.error_code == KafkaError.NOT_CONTROLLER:
            answer = self._controllers_answer(request, to, timeout_s)
        self._require(refused(answer.error_code, getattr(answer, "error_message", "")), to, right)
        return answer

    def _controllers_answer(self, request: Callable[[], Any], to: str, timeout_s: float) -> Any:
        controller = self._connections().controller()
        return self._clear(self._asked({controller: request()}, timeout_s=timeout_s)[controller], to)

    def _clear(self, answer: Any, to: str) -> Any:
        """Return the answer. Raises ``ClusterUnreachableError`` for a sentence: what became of it is not known."""
        if isinstance(answer, str):
            self._connections.close()  # the broker may come back with another address
            raise ClusterUnreachableError(f"{answer} when asked to {to}")
        return answer

    def _require(self, refusal: str, to: str, right: str) -> None:
        if refusal.startswith(_NO_RIGHT):
            who, way = principal_of(self._properties), "name a connection that has it as cluster.kafka.mover"
            raise ClusterError(f"{who} lacks {right} ({Code.MISSING_RIGHT}): grant it, or {way}")
        if refusal:
            raise ClusterError(f"the brokers refuse to {to}: {refusal}")

    def _edit_topic(self, topic: str, edits: Sequence[Edit]) -> str:
        if not edits:
            return ""
        broker = self._connections().controller()
        asked = {broker: configs_request(ResourceType.TOPIC, {topic: edits})}
        return configs_answers(self._clear(self._asked(asked)[broker], f"change the configs of {topic}"))[topic]

    def _lists(self, topic: str) -> tuple[tuple[str, ...], tuple[str, ...]] | str:
        """Return both throttle lists of a topic as the controller has them; a sentence where it refuses."""
        found = self._described_lists(topic)
        return found if isinstance(found, str) else _both_lists(found)

    def _lists_of_all(self, topic: str) -> tuple[tuple[str, ...], tuple[str, ...]] | str:
        """Return both throttle lists of a topic with what any live broker has; a sentence where one refuses."""
        leader, follower = Counter[str](), Counter[str]()
        for answer in self._asked({b: topic_configs_request([topic], _LISTS) for b in self._live()}).values():
            [found] = self._clear(answer, f"describe the configs of {topic}").results
            if refusal := refused(found.error_code, found.error_message):
                return refusal
            leader, follower = (
                kind | Counter(new) for kind, new in zip((leader, follower), _both_lists(found), strict=True)
            )
        return tuple(leader.elements()), tuple(follower.elements())

    def _described_lists(self, topic: str) -> Any:
        """Return the controller's answer about both throttle lists of a topic; a sentence where it refuses."""
        broker = self._connections().controller()
        answer = self._asked({broker: topic_configs_request([topic], _LISTS)})[broker]
        [found] = self._clear(answer, f"describe the configs of {topic}").results
        return refused(found.error_code, found.error_message) or found

    def _topic_configs(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the configs of each topic as each live broker has them. Raises ``ClusterError`` without one of them.

        A broker without an answer may be the one that leads, with a ``min.insync.replicas`` of its own.
        """
        found: dict[str, list[Any]] = {name: [] for name in names}
        live = self._live()
        for start in range(0, len(names), TOPICS_A_REQUEST):
            batch = names[start : start + TOPICS_A_REQUEST]
            wanted = (MIN_ISR, LEADER_LIST, FOLLOWER_LIST)
            for broker, answer in self._asked({b: topic_configs_request(batch, wanted) for b in live}).items():
                for result in self._clear(answer, "describe the configs of topics").results:
                    what = f"describe the configs of {result.resource_name} (broker {broker})"
                    self._require(refused(result.error_code, result.error_message), what, "DescribeConfigs on it")
                    found[result.resource_name].append(result)
        return found

    def _live(self) -> Mapping[int, Broker]:
        """Return the live brokers. Raises ``ClusterError`` without one: their sessions may be lost while they run."""
        if live := self._reader.brokers():
            return live
        raise ClusterError("no broker is live; start the brokers, or wait for them")

    def _broker(self, broker: Broker, rates: Any, disks: Any, offered: Mapping[int, int] | str) -> BrokerNow:
        leader_rate, follower_rate, unread = self._rates(broker.id, rates)
        return BrokerNow(
            rack=broker.rack,
            closed="which is in cluster.draining" if broker.id in self._draining else _closed(broker.id, disks),
            leader_rate=leader_rate,
            follower_rate=follower_rate,
            unread=unread,
            caps_min_isr=caps_min_isr(offered),
        )

    def _rates(self, broker: int, answer: Any) -> tuple[int | None, int | None, str]:
        """Return the rates of leaders and followers, or why they cannot be read."""
        if isinstance(answer, str):
            return None, None, answer
        if refusal := refused(answer.results[0].error_code, answer.results[0].error_message):
            return None, None, f"broker {broker} does not tell its throttle rates: {refusal}"
        rates, is_hidden = rates_of(answer)
        if is_hidden:
            if not isinstance(self._reader, ZooKeeperReader):
                return None, None, f"broker {broker} hides its throttle rates"
            rates = rates_in_zookeeper(self._reader, broker)
        return rates.get(LEADER_RATE), rates.get(FOLLOWER_RATE), ""

    def _sizes(self, broker: int, answer: Any) -> LogSizes | str:
        found = directories_of(broker, answer)
        return found if isinstance(found, str) else sizes_of(answer)


_LISTS = (LEADER_LIST, FOLLOWER_LIST)
_NO_LIST = "UNKNOWN (-1)"
"""Answer of Kafka 2.4 to an entry that is added to a list that is not set (a NullPointerException)."""
_NO_RIGHT = ("CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")


class _BrokerConfigs(msgspec.Struct):
    config: dict[str, str] = {}


def rates_in_zookeeper(reader: ZooKeeperReader, broker: int) -> dict[str, int | None]:
    """Return the rates of a broker whose answer hides them, or else those of all brokers."""
    paths = (f"{BROKER_CONFIGS}/{broker}", f"{BROKER_CONFIGS}/<default>")
    znodes = reader.connected(lambda: [reader.session.get(path) for path in paths])
    told = [_rates_of_znode(p, znode.data or b"{}") for p, znode in zip(paths, znodes, strict=True) if znode]
    return {name: next((rates[name] for rates in told if name in rates), None) for name in (LEADER_RATE, FOLLOWER_RATE)}


def _rates_of_znode(path: str, data: bytes) -> dict[str, int]:
    try:
        config = msgspec.json.decode(data, type=_BrokerConfigs).config
        return {name: int(config[name]) for name in (LEADER_RATE, FOLLOWER_RATE) if name in config}
    except (msgspec.DecodeError, ValueError) as error:
        raise UndecodableZnodeError(path, f"has no configs ({error})", "find out which program wrote it") from error


def _closed(broker: int, disks: Any) -> str:
    """Return why a broker gets no new replicas; empty where it may get them, or does not say."""
    found = directories_of(broker, disks)
    if not isinstance(found, LogDirectories):
        return ""
    return "which has a failed log directory" if found.failed else "which is cordoned" if found.cordoned else ""


def _partitions(live: LiveTopic) -> dict[int, PartitionNow]:
    states = live.states or {}
    return {
        p: PartitionNow(replicas=row, isr=states[p].isr, leader=states[p].leader)
        if p in states
        else PartitionNow(replicas=row, isr=(), leader=-1)
        for p, row in live.assignment.items()
    }


def _topic(live: LiveTopic, configs: Sequence[Any]) -> TopicNow:
    """Put together what the source and all live brokers say of a topic."""
    by_broker = [{setting.name: setting.value for setting in result.configs} for result in configs]
    # What one broker does not tell may be as much as the partition has replicas.
    unknown = str(max(map(len, live.assignment.values()), default=1))
    leader, follower = zip(*(_both_lists(result) for result in configs), strict=True)
    return TopicNow(
        identity=live.identity,
        first_identity=_first_identity(live),
        partitions=_partitions(live),
        min_isr=max(int(found.get(MIN_ISR) or unknown) for found in by_broker),
        leader_entries=_in_all(leader),
        follower_entries=_in_all(follower),
    )


def _deleting(live: LiveTopic) -> TopicNow:
    return TopicNow(
        identity=live.identity,
        first_identity=_first_identity(live),
        partitions=_partitions(live),
        min_isr=1,
        is_deleting=True,
    )


def _first_identity(live: LiveTopic) -> str:
    return "" if live.czxid is None else identity_of(None, live.czxid)


def _both_lists(result: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts = {setting.name: setting.value for setting in result.configs}
    return entries_of(texts.get(LEADER_LIST)), entries_of(texts.get(FOLLOWER_LIST))


def _in_all(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the entries of the first list that all of them have."""
    return tuple(entry for entry in lists[0] if all(entry in other for other in lists[1:]))


def _is_agreed(wanted: TopicPartition, views: Sequence[BrokerView]) -> bool:
    """Return whether all brokers know the partition, with the same replicas and leader."""
    rows = {
        (seen.replicas, seen.leader) if (seen := view.topics.get(wanted.topic, {}).get(wanted.partition)) else None
        for view in views
    }
    return len(rows) == 1 and None not in rows
