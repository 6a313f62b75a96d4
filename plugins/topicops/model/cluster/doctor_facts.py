"""What ``doctor`` reads and finds: facts of one cluster from both sides, and one finding for each kind of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from topicops.model.cluster.snapshot import ClusterSnapshot

Migration = Literal["none", "prepared", "begun"]
Area = Literal["zookeeper", "snapshot", "brokers"]
"""What a rule looks at; each is read by itself and may be missing."""
KafkaRole = Literal["reader", "applier", "deleter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperServer:
    """What one server of the connection says of itself."""

    address: str
    """``host:port``."""
    version: str | None
    """``3.8.4``; None: it did not tell."""
    mode: str | None
    """``leader``, ``follower``, ``observer``, ``standalone`` or ``read-only``."""
    problem: str = ""
    """Why it did not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperFacts:
    """What the session saw beside the cluster itself."""

    hosts: str
    chroot: str
    servers: tuple[ZooKeeperServer, ...]
    identities: tuple[str, ...] | None
    """``scheme:id`` of this session; None: the server is too old to tell, before 3.7."""
    knows_multi_read: bool
    migration: Migration
    features: Mapping[str, int] | None
    """Finalized features with their levels; None: there is no such znode, or it cannot be read."""
    feature_problem: str = ""
    has_lease_root: bool
    """``/topicops`` stands below the chroot."""
    may_hold_lease: bool | None
    """Whether the ACL lets this identity create a lease there; None: nobody may look at the ACL, or identities."""
    clocks_ahead_ms: Mapping[int, int]
    """By broker: its clock minus ZooKeeper's, as both stamped the broker's registration."""
    newest_stamp_ms: int
    """The latest time that ZooKeeper stamped on any znode that was looked at."""
    read_at_ms: int
    """By this host's clock, after the last of them was read."""
    topics_without_config: tuple[str, ...] = ()
    """Topics that have no config znode, which brokers give each one that they make."""
    undecodable: tuple[str, ...] = ()
    """``path: problem; remedy`` of each znode that keeps a snapshot from being made; empty where one was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """What one broker says of itself."""

    release: str | None = None
    """``3.9``, as far as its protocol tells; None: it did not answer."""
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why something is missing above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaFacts:
    cluster_id: str
    brokers: Mapping[int, BrokerFacts]
    principals: Mapping[KafkaRole, str]
    """As whom each role comes, as far as its own settings say; no secret."""
    operations: Mapping[KafkaRole, frozenset[str] | None]
    """What each role may do to the cluster, in Kafka's words: ``CREATE``; None: the brokers did not tell."""
    topic_operations: Mapping[KafkaRole, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """What a role may do to topics that it would have to change; without those of which the brokers did not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why an area could not be read."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFacts:
    """All that was read; an area that is None has its reason in ``problems``, unless it is not there to be read."""

    snapshot: ClusterSnapshot | None
    """With states."""
    zookeeper: ZooKeeperFacts | None
    kafka: KafkaFacts | None
    problems: Mapping[Area, Problem] = field(default_factory=dict)


class Severity(StrEnum):
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One kind of trouble, wherever it is."""

    id: str
    severity: Severity
    message: str
    """Where and what, with a few of the places."""
    fix: str
    code: str | None = None
    places: tuple[str, ...] = ()
    """All places: topics, partitions, brokers or servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What ``doctor`` tells."""

    environment: str
    facts: Mapping[str, str]
    """One sentence each, by what it is about, in order."""
    findings: tuple[Finding, ...]
    """Errors first."""
    looked: int
    """How many rules had what they need."""
    not_looked: tuple[str, ...]
    """Ids of the rules that had not."""

    @property
    def has_errors(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)
