"""What ``why`` reads about one topic, and what it finds: the causes of a state that does not end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import LiveTopic, PartitionState, TopicTraces
from topicops.model.ports import BrokerLogs, BrokerView
from topicops.model.release import USUAL, Release, Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTimes:
    """When the znodes of one topic were written, in ms since 1970 by the clocks of ZooKeeper's servers."""

    config: int | None = None
    """None: there is no such znode; so for all."""
    marker: int | None = None
    states: Mapping[int, int] = field(default_factory=dict)
    """By partition."""
    is_config_told: bool | None = None
    """Whether the brokers were told of the newest config: ``/config/changes`` names the topic since. None: not known,
    because the brokers remove notices that are older than 15 minutes."""
    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Where ``/admin/reassign_partitions`` moves partitions of the topic."""
    controller: int | None = None
    """The broker that ``/controller`` names, which may not be registered."""
    now: int | None = None
    """When they were read: by our own clock, or by the newest of these znodes, whichever is later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableZnode:
    """A znode whose data cannot be decoded."""

    path: str
    problem: str
    """With the path, and what a person has to do."""
    stops_controller: bool = False
    """No broker can be the controller while it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFacts:
    """All that was read about one topic."""

    topic: str
    source: Source
    traces: TopicTraces | None
    """With states; None: one of ``unreadable`` is the topic's."""
    unreadable: tuple[UnreadableZnode, ...] = ()
    times: TopicTimes | None
    """None: the source is not ZooKeeper, or one of ``unreadable`` is among what they are read from."""
    brokers: frozenset[int]
    """Registered."""
    controller_id: int | None
    views: Mapping[int, BrokerView] = field(default_factory=dict)
    """The own metadata of each registered broker that answers."""
    silent: Mapping[int, str] = field(default_factory=dict)
    """Why each of the other registered brokers gave no metadata; all of them: it need not be their fault."""
    logs: Mapping[int, BrokerLogs | str] = field(default_factory=dict)
    broker_overrides: Mapping[str, str] | str | None = None
    """The topic's configs as the brokers have them, or why they do not give them; None: not asked."""
    broker_defaults: BrokerDefaults | None = None
    releases: Releases | None = None
    """As the brokers show; None: they were not asked, or gave no answer."""
    written_release: Release = USUAL
    """As the environment's file has it."""
    bootstrap_servers: str = ""
    zookeeper_hosts: str = ""
    """``host:port,host:port/chroot``."""
    command_config: bool = False
    """The brokers need a login: a command needs a file of client properties."""

    @property
    def live(self) -> LiveTopic | None:
        return self.traces.live if self.traces else None

    @property
    def states(self) -> Mapping[int, PartitionState]:
        return (self.live.states or {}) if self.live else {}

    @property
    def is_deleting(self) -> bool:
        return self.traces is not None and self.traces.is_deleting

    @property
    def has_zookeeper(self) -> bool:
        return self.source == "zookeeper"

    @property
    def release(self) -> Release:
        return self.releases.oldest if self.releases else self.written_release


class CauseKind(StrEnum):
    STUCK = "stuck"
    """Somebody has to do something."""
    WAITS = "waits"
    """It ends by itself once something else has happened."""
    NOTE = "note"
    """It stops nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason why a topic is not as it should be."""

    id: str
    kind: CauseKind
    message: str
    """What is so, and where."""
    way_out: str
    """What ends it, and costs nothing."""
    last_resort: str = ""
    """What ends it where that cannot be."""
    commands: tuple[str, ...] = ()
    """Lines for a shell, in their order: those of the last resort, where there is one. Empty where starting or
    restarting a broker is the way."""
    caution: str = ""
    """What the commands cost."""
    read_from: tuple[str, ...] = ()
    """The znodes, and the answers of brokers."""
