"""What ``why`` reads about one topic, and what it finds: the causes of a state that does not end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from topicops.model.choices import Source
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFacts:
    """All that was read about one topic."""

    topic: str
    source: Source
    traces: TopicTraces | None
    """With states; None: a znode of the topic cannot be read."""
    undecodable: str = ""
    """Why not."""
    times: TopicTimes | None
    """None: the source is not ZooKeeper."""
    brokers: frozenset[int]
    """Registered."""
    controller_id: int | None
    views: Mapping[int, BrokerView | str] = field(default_factory=dict)
    """Each live broker's own metadata of the topic, or a sentence where it does not answer."""
    logs: Mapping[int, BrokerLogs | str] = field(default_factory=dict)
    broker_overrides: Mapping[str, str] | str | None = None
    """The topic's configs as the brokers have them, or why they do not give them; None: not asked."""
    broker_defaults: Mapping[str, str] | None = None
    releases: Releases | None = None
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
    def release(self) -> Release:
        return self.releases.oldest if self.releases else USUAL


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
    """What ends it."""
    commands: tuple[str, ...] = ()
    """Lines for a shell that lead out, in their order; empty where starting or restarting a broker is the way."""
    caution: str = ""
    """What the commands cost."""
    read_from: tuple[str, ...] = ()
    """The znodes, and the answers of brokers."""
