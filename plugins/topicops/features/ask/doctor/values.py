"""What ``doctor`` reads of one cluster, from ZooKeeper and from the brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from topicops.model.cluster.snapshot import ClusterSnapshot, LogDirectories
from topicops.model.errors import TopicopsError
from topicops.model.release import Ability, Release
from topicops.model.runs.moves import KnownMoves
from topicops.model.specs.environment import Environment

Migration = Literal["none", "prepared", "begun"]
Area = Literal["zookeeper", "snapshot", "kafka"]
"""Field of ``DoctorFacts``; each is read on its own and may be missing."""
KafkaRole = Literal["reader", "applier", "mover", "deleter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperServer:
    """What one server of the connection reports about itself."""

    address: str
    """``host:port``."""
    version: str | None = None
    """``3.8.4``; None means that the server did not answer."""
    mode: str | None = None
    """``leader``, ``follower``, ``observer``, ``standalone`` or ``read-only``."""
    problem: str = ""
    """Reason why it did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFacts:
    """What the ZooKeeper session shows beside the cluster itself."""

    chroot: str
    servers: tuple[ZooKeeperServer, ...]
    identities: tuple[str, ...] | None
    """``scheme:id`` of this session; None means that the server is older than 3.7 and does not report it."""
    knows_multi_read: bool
    migration: Migration
    feature_problem: str = ""
    """Reason why ``/feature`` cannot be read; empty where it can, or where there is none."""
    has_lease_root: bool
    """``/topicops`` exists below the chroot."""
    stray_lease: str = ""
    """Path of a lease that belongs to no session; empty where there is none."""
    may_hold_lease: bool | None
    """Whether the ACL lets this identity create a lease; None means that ACL or identities cannot be read."""
    clocks_ahead_ms: Mapping[int, int]
    """Clock of each broker minus ZooKeeper's, from both time stamps of the broker's registration."""
    newest_stamp_ms: int
    """Latest time stamp of any znode that was read."""
    read_at_ms: int
    """Time by this host's clock, after the last znode was read."""
    topics_without_config: tuple[str, ...] = ()
    """Topics without a config znode; brokers create one with each topic."""
    undecodable: tuple[str, ...] = ()
    """``path: problem; remedy`` of each znode that prevents a snapshot; empty if there is a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """What one broker reports about itself."""

    release: Release | None = None
    """Release as far as the requests that it answers show; None means that it did not answer."""
    missing: tuple[Ability, ...] = ()
    """Requests that it does not offer, as its own list of them says."""
    settings: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    """Settings that it takes for secrets: it does not tell their values."""
    problem: str = ""
    """Reason why something is missing above."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Requests that it refuses as a whole, with its error as ``NAME (code)``."""
    log_directories: LogDirectories | str | None = None
    """A sentence says why it does not describe them; None means that it does not offer that, or answers nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaFacts:
    cluster_id: str
    brokers: Mapping[int, BrokerFacts]
    principals: Mapping[KafkaRole, str]
    """Identity of each role, as far as its own settings show it; no secret."""
    operations: Mapping[KafkaRole, frozenset[str] | None]
    """Operations that each role may do to the cluster, in Kafka's words: ``CREATE``; None means not known."""
    readable_passwords: tuple[KafkaRole, ...] = ()
    """Roles whose login sends its password without TLS."""
    vendor: str = ""
    """Vendor that runs brokers of such names; empty where the names tell none."""
    topic_operations: Mapping[KafkaRole, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Operations of each role on topics that it would have to change; topics with unknown rights are left out."""

    @property
    def by_id(self) -> Sequence[tuple[int, BrokerFacts]]:
        return sorted(self.brokers.items())

    @property
    def releases(self) -> Mapping[int, Release]:
        """Releases of the brokers that answered."""
        return {b: broker.release for b, broker in self.by_id if broker.release is not None}

    def where(self, setting: str, value: str) -> list[str]:
        """Return ``broker 1`` for each that has this value, in upper or lower case."""
        return [f"broker {b}" for b, broker in self.by_id if broker.settings.get(setting, "").lower() == value.lower()]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    """All that was read. An area that is None has its reason in ``unread``, unless the cluster does not have it."""

    environment: Environment
    snapshot: ClusterSnapshot | None = None
    """Snapshot with states."""
    zookeeper: ZooKeeperFacts | None = None
    kafka: KafkaFacts | None = None
    unread: Mapping[Area, TopicopsError] = field(default_factory=dict)
    other_cluster_id: str | None = None
    """Id of the cluster that answered, if it is not the environment's; its topics are not read."""
    home_is_set: bool = True
    """``TOPICOPS_HOME`` names the folder of audit log and journals."""
    home_problem: str = ""
    """Reason why the object store of the home cannot be used; empty if it can."""
    moves: KnownMoves = field(default_factory=KnownMoves)
    """Our moves that have not ended."""
    moves_problem: str = ""
    """Reason why the record of our moves cannot be read; empty if it can, or if there is none."""
    read_at: datetime | None = None
    """Time of reading by this host's clock."""
    clock_difference: str = ""
    """Difference between the clocks of this host and a server; empty means that they agree, or none sends its time."""
