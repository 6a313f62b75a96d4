"""What ``why`` reads about one topic, the commands that a person types, and the causes of a state that does not end."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.health import PartitionHealth, health_of
from topicops.model.cluster.snapshot import Assignment, LiveTopic, PartitionState, TopicTraces
from topicops.model.errors import UndecodableZnodeError
from topicops.model.json_types import FormatVersion
from topicops.model.ports import BrokerLogs, BrokerView
from topicops.model.release import CONFIGURES_TOPICS_BY_BROKERS, REASSIGNMENTS_IN_TOPICS, USUAL, Release, Releases
from topicops.model.specs.spellings import time_of_ms

CLIENT_PROPERTIES = "client.properties"
"""The file with a login, which the person who types a command has."""
ZNODES = 5
"""Number of znodes of a kind that one cause names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTimes:
    """When the znodes of one topic were written, in ms since 1970 by the clocks of ZooKeeper's servers."""

    config: int | None = None
    """None means that there is no such znode, as for all of them."""
    marker: int | None = None
    states: Mapping[int, int] = field(default_factory=dict)
    """Times by partition."""
    is_config_told: bool | None = None
    """Whether the brokers got notice of the newest config. None means not known: they remove old notices."""
    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Targets of the topic's partitions in ``/admin/reassign_partitions``."""
    controller: int | None = None
    """The broker that ``/controller`` names, which may not be registered."""
    now: int | None = None
    """Time of reading: by our own clock, or by the newest of these znodes, whichever is later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFacts:
    topic: str
    has_zookeeper: bool
    """Whether ZooKeeper was read; else the brokers were."""
    traces: TopicTraces | None
    """Topic with states; None means that one of ``unreadable`` is the topic's."""
    unreadable: tuple[UndecodableZnodeError, ...] = ()
    times: TopicTimes | None
    """None means that the source is not ZooKeeper, or that one of ``unreadable`` is among what they are read from."""
    brokers: frozenset[int]
    """Registered brokers."""
    controller_id: int | None
    views: Mapping[int, BrokerView] = field(default_factory=dict)
    """Own metadata of each registered broker that answers."""
    silent: Mapping[int, str] = field(default_factory=dict)
    """Reason why each of the other registered brokers gave no metadata; where all gave none, it may not be theirs."""
    logs: Mapping[int, BrokerLogs | str] = field(default_factory=dict)
    broker_overrides: Mapping[str, str] | str | None = None
    """Configs of the topic as the brokers have them, or why they do not give them; None means not asked."""
    broker_defaults: BrokerDefaults | None = None
    releases: Releases | None = None
    """None means that the brokers were not asked, or gave no answer."""
    written_release: Release = USUAL
    """Release in the environment's file."""
    bootstrap_servers: str = ""
    zookeeper_hosts: str = ""
    """``host:port,host:port/chroot``."""
    own_move: tuple[str, ...] | None = None
    """What the last step of our moves said of the topic; None means that topicops moves none of its replicas."""
    environment: str = ""
    command_config: bool = False
    """Whether the brokers need a login: then a command needs a file of client properties."""

    @property
    def live(self) -> LiveTopic | None:
        return self.traces.live if self.traces else None

    @property
    def staying(self) -> LiveTopic | None:
        """The live topic, unless it is being deleted."""
        return None if self.is_deleting else self.live

    @property
    def states(self) -> Mapping[int, PartitionState]:
        return (self.live.states or {}) if self.live else {}

    @property
    def healths(self) -> Mapping[int, PartitionHealth]:
        """Health of each partition that has a state, by id; empty for a topic that is being deleted."""
        live = self.staying
        return {p: health_of(live, p, self.brokers) for p in sorted(self.states)} if live else {}

    @property
    def is_deleting(self) -> bool:
        return self.traces is not None and self.traces.is_deleting

    @property
    def release(self) -> Release:
        return self.releases.oldest if self.releases else self.written_release

    @property
    def topic_path(self) -> str:
        return f"/brokers/topics/{self.topic}"

    @property
    def marker_path(self) -> str:
        return f"/admin/delete_topics/{self.topic}"

    @property
    def config_path(self) -> str:
        return f"/config/topics/{self.topic}"

    def state_paths(self, partitions: Iterable[int]) -> list[str]:
        """Return paths of the first states, as many as one cause names."""
        return [f"{self.topic_path}/partitions/{p}/state" for p in [*partitions][:ZNODES]]

    def read_from(self, *paths: str) -> tuple[str, ...]:
        """Znodes, where ZooKeeper was read; else the brokers' metadata."""
        return paths if self.has_zookeeper else ("the brokers' metadata",)

    def row(self, partition: int) -> tuple[int, ...]:
        return self.live.assignment.get(partition, ()) if self.live else ()

    def isr(self, partition: int) -> tuple[int, ...]:
        return self.states[partition].isr if partition in self.states else ()

    def since(self, partitions: Iterable[int]) -> str:
        """`` since 2024-05-01 12:00 UTC``, when the oldest of these states was written; empty where it is not known."""
        times = self.times.states if self.times else {}
        return when("since", min((times[p] for p in partitions if p in times), default=None))

    @property
    def asked_for(self) -> str:
        """``the deletion asked for at 2024-05-01 12:00 UTC``."""
        return f"the deletion asked for{when('at', self.times.marker if self.times else None)}"

    def unregistered(self, brokers: Iterable[int]) -> list[int]:
        return sorted(set(brokers) - self.brokers)

    # ---- commands that a person types ----

    def zookeeper_shell(self, *words: str) -> str:
        return shlex.join(["zookeeper-shell.sh", self.zookeeper_hosts, *words])

    def remove_all(self, path: str) -> str:
        """Remove a znode and all below it; ZooKeeper 3.5, which comes with Kafka 2.4, has another word for it."""
        return self.zookeeper_shell("deleteall" if self.release >= REASSIGNMENTS_IN_TOPICS else "rmr", path)

    def new_controller(self) -> tuple[str, ...]:
        """Have another controller elected, which tells every broker of everything; nothing under KRaft."""
        return (self.zookeeper_shell("delete", "/controller"),) if self.has_zookeeper else ()

    def kafka_tool(self, name: str, *words: str, since: Release | None = None, login: str = "--command-config") -> str:
        """Name a script of Kafka; before ``since`` it asks ZooKeeper. ``login`` is its option for client properties."""
        place = ["--bootstrap-server", self.bootstrap_servers]
        if since is not None and self.release < since:
            place = ["--zookeeper", self.zookeeper_hosts]
        elif self.command_config:
            place += [login, CLIENT_PROPERTIES]
        return shlex.join([f"{name}.sh", *place, *words])

    def configure(self, *words: str) -> str:
        """Return ``kafka-configs`` for the topic, with ``--add-config`` or ``--delete-config``."""
        words = ("--alter", "--entity-type", "topics", "--entity-name", self.topic, *words)
        return self.kafka_tool("kafka-configs", *words, since=CONFIGURES_TOPICS_BY_BROKERS)

    def partitions_file(self, name: str, rows: Mapping[int, Mapping[str, object]], **more: object) -> str:
        """Write the file that a tool wants, with these partitions and what is known of each."""
        partitions = [{"topic": self.topic, "partition": p, **row} for p, row in sorted(rows.items())]
        return f"echo {shlex.quote(json.dumps({**more, 'partitions': partitions}))} > {shlex.quote(name)}"


class CauseKind(StrEnum):
    STUCK = "stuck"
    """The topic stays so until a person does something."""
    WAITS = "waits"
    """The cause ends by itself once something else has happened."""
    NOTE = "note"
    """The cause stops nothing."""


STUCK, WAITS, NOTE = CauseKind.STUCK, CauseKind.WAITS, CauseKind.NOTE


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why a topic is not as it should be."""

    kind: CauseKind
    message: str
    """Sentence that says what is so, and where."""
    way_out: str
    """Way to end it that costs nothing."""
    read_from: tuple[str, ...]
    """Znodes, and answers of brokers."""
    commands: tuple[str, ...] = ()
    """Lines for a shell, in order: those of the last resort, if there is one."""
    caution: str = ""
    """Cost of the commands."""
    last_resort: str = ""
    """Way to end it if ``way_out`` is not possible."""
    id: str = ""
    """Id of the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What ``why`` prints."""

    format_version: FormatVersion = "1.0"
    environment: str
    topic: str
    causes: tuple[Cause, ...]
    """Causes in the order in which a person would fix them; empty means that nothing is wrong."""


K = TypeVar("K", int, tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]])


def grouped(partitions: Iterable[tuple[K, int]]) -> list[tuple[K, list[int]]]:
    found: defaultdict[K, list[int]] = defaultdict(list)
    for key, partition in partitions:
        found[key].append(partition)
    return sorted(found.items())


def when(word: str, ms: int | None) -> str:
    """Return `` at 2024-05-01 12:00 UTC``; empty where it is not known."""
    if not ms:
        return ""
    at = time_of_ms(ms)
    return f" {word} {at:%Y-%m-%d %H:%M} UTC" if at else f" {word} {ms} ms since 1970"


def are(brokers: Collection[int]) -> str:
    return "are" if len(brokers) > 1 else "is"


def metadata_of(brokers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"metadata of broker {broker}" for broker in sorted(brokers))


def topic_znode(topic_id: str | None, rows: Assignment, adding: Assignment, removing: Assignment) -> str:
    """Return the data of a topic's znode: with an id as Kafka writes it since 2.8, else as 1.0 does, which all read."""
    written = ({str(p): list(row) for p, row in sorted(by.items())} for by in (rows, adding, removing))
    names = ("partitions", "adding_replicas", "removing_replicas")
    value: dict[str, object] = {"version": 3, "topic_id": topic_id, **dict(zip(names, written, strict=True))}
    if topic_id is None:
        value = {"version": 1, "partitions": value["partitions"]}
    return json.dumps(value, separators=(",", ":"))
