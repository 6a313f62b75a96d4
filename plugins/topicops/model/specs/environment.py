"""An environment: one cluster, its limits and its policy, as people write them.

Editors show the sentence under each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from topicops.model.choices import Lease, Source
from topicops.model.release import USUAL, Release
from topicops.model.specs.diagnostics import Location


class Written(BaseModel):
    """Base of everything that people write: immutable, camelCase in files, no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


Configs = Mapping[str, str | None]
"""Kafka's topic configs by name, in text; null means that no override may be live."""


class Risk(StrEnum):
    """How bad a change can be, in rising order."""

    SAFE = "safe"
    NOTICE = "notice"
    RISKY = "risky"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        return list(Risk).index(self)


Permission = Literal["refuse", "allow"]
ApprovalWay = Literal["question", "parameter", "review"]
"""Airflow's question, a parameter of a run or of the command, or an approving review of the pull request."""
PRODUCTION_RESTS_FOR = timedelta(hours=24)
MOST_PARTITIONS = 2**31 - 1
LARGEST_REPLICATION_FACTOR = 32_767
"""The protocol counts replicas in 16 bits."""


class ZooKeeperEndpoint(Written):
    """Either a connection id or an address with its chroot."""

    connection: str | None = None
    """Id of a connection in Airflow, or in AIRFLOW_CONN_<ID>."""
    hosts: str | None = None
    """host:port,host:port/chroot, instead of a connection."""


class KafkaEndpoint(Written):
    """Either connection ids or bootstrap servers."""

    connection: str | None = None
    """Id of a connection in Airflow, or in AIRFLOW_CONN_<ID>."""
    applier: str | None = None
    """Id of the connection that sends changes; left out: the first connection."""
    deleter: str | None = None
    """Id of the connection that deletes topics; left out: the first connection."""
    bootstrap_servers: str | None = None
    """host:port,host:port, instead of a connection."""


class Cluster(Written):
    id: str | None = None
    """Id in the znode /cluster/id; only a sandbox may leave it out."""
    cluster_class: Literal["production", "sandbox"] = Field(alias="class")
    """A production cluster must name its id."""
    kafka_version: str = str(USUAL)
    """Release of the brokers, such as 3.9; it decides which configs and values are valid."""
    source: Source = "zookeeper"
    """Where the live topics are read; changes always go through the brokers."""
    zookeeper: ZooKeeperEndpoint | None = None
    """How to reach ZooKeeper."""
    kafka: KafkaEndpoint | None = None
    """How to reach the brokers."""
    lease: Lease = "zookeeper"
    """What keeps two runs from changing the cluster at the same time."""
    min_live_brokers: int = Field(default=1, ge=1)
    """With fewer live brokers, nothing is created, expanded or deleted."""

    @property
    def release(self) -> Release:
        """Of ``kafka_version``; ``USUAL`` where that is no release."""
        return Release.parse(self.kafka_version) or USUAL


class SharedSpec(Written):
    """The values that every layer may give."""

    partitions: int | None = Field(default=None, ge=1, le=MOST_PARTITIONS)
    """Number of partitions; it can grow and never shrink."""
    replication_factor: int | None = Field(default=None, ge=1, le=LARGEST_REPLICATION_FACTOR)
    """How many brokers hold each partition."""
    configs: Configs = Field(default_factory=dict)
    """Kafka's topic configs; null means that no override may be live."""


class Limits(Written):
    partitions_per_topic: int = Field(default=128, ge=1)
    """The most partitions of one topic."""
    expansion_factor: int = Field(default=4, ge=1)
    """In one run a topic grows to at most this many times its live partitions."""
    replicas_per_run: int = Field(default=3000, ge=0)
    """The most replicas that one run creates."""
    creates_per_run: int = Field(default=20, ge=0)
    """The most topics that one run creates without an approval."""
    deletes_per_run: int = Field(default=1, ge=0)
    """The most topics that one run deletes."""
    deletes_percent: int = Field(default=5, ge=0, le=100)
    """The largest part of the managed topics that one run deletes."""
    shrink_percent: int = Field(default=10, ge=0, le=100)
    """A snapshot is refused if a larger part of the topics is gone since the last good one."""
    unmanaged_percent: int = Field(default=100, ge=0, le=100)
    """Quality warns when a larger part of the live topics is in no file."""


class PolicyException(Written):
    """Makes one error of one topic a warning until the exception ends."""

    topic: str
    """Name of the topic that has the error."""
    code: str
    """Code of the error, such as TOP320."""
    reason: str
    """Why the error is allowed."""
    until: datetime | None = None
    """End of the exception, in UTC; left out: it has no end."""


class Policy(Written):
    min_replication_factor: int = Field(default=1, ge=1, le=LARGEST_REPLICATION_FACTOR)
    """The lowest replication factor that a topic may have."""
    protected_topics: tuple[str, ...] = ()
    """Glob patterns of names that no spec may use, beside the built-in ones."""
    alterable_configs: tuple[str, ...] | None = None
    """Configs that specs may set; left out: all."""
    name_pattern: str | None = None
    """A regular expression that the whole name of each topic must match, in the syntax of Rust's regex crate."""
    required_labels: tuple[str, ...] = ()
    """Keys that the labels of each topic must have."""
    allowed_owners: tuple[str, ...] | None = None
    """Glob patterns: only such owners may have topics here; left out: all owners."""
    unlisted_configs: Literal["report", "remove"] = "report"
    """What happens to live overrides that no spec names."""
    unattended: Risk = Risk.NOTICE
    """The highest risk that runs without an approval."""
    delete_active: Permission = "refuse"
    """Whether a topic with traffic or readers may be deleted."""
    rests_for: timedelta | None = None
    """A topic whose last record is younger than this is in use, and is not deleted; left out: by cluster.class."""
    delete_by_name: Permission | None = None
    """Whether topics without a topic id may be deleted, which Kafka does by name; left out: by cluster.class."""
    plans_without_files: Permission = "refuse"
    """Whether a saved plan is applied where no topic files are that could ask for its changes."""
    readable_passwords: Permission | None = None
    """Whether a login may send its password over the network without TLS; left out: by cluster.class."""
    approvals: tuple[ApprovalWay, ...] | None = None
    """The ways to approve that count; left out: by cluster.class."""
    approvers: tuple[str, ...] = ()
    """Names of the Airflow users who may approve; left out: all who may answer."""
    author_approves: Risk | None = None
    """The highest risk that the author of a change may approve alone; left out: by cluster.class."""
    approval_lasts: timedelta = timedelta(hours=24)
    """The longest time between an approval and the change."""
    after: tuple[str, ...] = ()
    """Environments that must be applied and verified first, at the same commit."""
    exceptions: tuple[PolicyException, ...] = ()
    """Each turns one error of one topic into a warning."""


class Apply(Written):
    validate_only: bool = True
    """Whether the brokers check each change in a dry run before it is sent."""
    topics_per_request: int = Field(default=20, ge=1)
    """The most topics in one request."""
    partitions_per_request: int = Field(default=500, ge=1)
    """The most new partitions in one request."""


class Verify(Written):
    """How long each kind may take before its change counts as not healthy."""

    leaders: timedelta = timedelta(seconds=30)
    """The longest time until every partition has a leader."""
    isr: timedelta = timedelta(seconds=60)
    """The longest time until all replicas are in sync."""
    metadata: timedelta = timedelta(seconds=30)
    """The longest time until every broker knows of the change."""
    deletes: timedelta = timedelta(seconds=120)
    """The longest time until a deleted topic is gone."""


class Airflow(Written):
    """Left out: as the settings of the installation say."""

    schedule: str | None = None
    """When the pipeline runs: every 5m, a cron, @hourly or none; left out: TOPICOPS_SCHEDULE."""
    drift_schedule: str | None = None
    """When the drift DAG runs, in the same forms; left out: TOPICOPS_DRIFT_SCHEDULE."""
    mode: Literal["plan", "apply"] | None = None
    """Whether scheduled runs send changes; left out: TOPICOPS_MODE."""
    full_check_every: timedelta = timedelta(hours=1)
    """After this time a run makes every check, also if nothing has changed."""
    fail_on: tuple[Literal["unhealthy"], ...] = ()
    """[unhealthy]: a run fails if the cluster is not healthy at its end. By default it is green."""
    owner: str | None = None
    """Team that Airflow names as the owner of these DAGs."""
    owner_link: str | None = None
    """Where the owner's name leads in Airflow: https://… or mailto:…."""


class EnvironmentSpec(Written):
    cluster: Cluster
    """The cluster and how to reach it."""
    defaults: SharedSpec = SharedSpec()
    """Values for topics that have none of their own or from a profile."""
    limits: Limits = Limits()
    """Limits of a topic and of a run."""
    policy: Policy = Policy()
    """What is allowed, and what needs an approval."""
    apply: Apply = Apply()
    """How changes are sent."""
    verify: Verify = Verify()
    """How long each kind of change may take until it is healthy."""
    airflow: Airflow = Airflow()
    """When the environment's DAGs run, and in which mode."""
    overrides: Mapping[str, SharedSpec] = Field(default_factory=dict)
    """Values for single topics; they win over all other layers."""

    @property
    def rests_for(self) -> timedelta:
        """``policy.restsFor``; by default 24 hours in production, and no time at all in a sandbox."""
        written = self.policy.rests_for
        return written if written is not None else PRODUCTION_RESTS_FOR if self._is_production else timedelta(0)

    @property
    def delete_by_name(self) -> Permission:
        """``policy.deleteByName``; by default ``refuse`` in production, ``allow`` in a sandbox."""
        return self.policy.delete_by_name or ("refuse" if self._is_production else "allow")

    @property
    def readable_passwords(self) -> Permission:
        """``policy.readablePasswords``; by default ``refuse`` in production, ``allow`` in a sandbox."""
        return self.policy.readable_passwords or ("refuse" if self._is_production else "allow")

    @property
    def approvals(self) -> tuple[ApprovalWay, ...]:
        """``policy.approvals``; by default the question alone in production, also the parameter in a sandbox."""
        written = self.policy.approvals
        return written if written is not None else ("question",) if self._is_production else ("question", "parameter")

    @property
    def author_approves(self) -> Risk:
        """``policy.authorApproves``; by default ``notice`` in production, any risk in a sandbox."""
        return self.policy.author_approves or (Risk.NOTICE if self._is_production else Risk.DESTRUCTIVE)

    @property
    def command_approves(self) -> Risk | None:
        """The highest risk that ``--approve`` lets run, whose giver is the author; None: it counts for nothing."""
        return self.author_approves if "parameter" in self.approvals else None

    @property
    def _is_production(self) -> bool:
        return self.cluster.cluster_class == "production"


BUILT_IN_PROTECTED_TOPICS = ("__*", "_schemas", "_confluent*")
"""Topics that no spec may name, whatever an environment says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment file after reading, with the location of each value."""

    name: str
    spec: EnvironmentSpec
    file: str
    locations: Mapping[str, Location] = field(default_factory=dict)
    """By dotted path below ``spec``, as written: ``limits.deletesPerRun``; only values that are in the file."""

    def place_of(self, path: str) -> str:
        """``limits.deletesPerRun, topics/environments/prod-eu.yaml:18``, for the reasons that the gate gives."""
        location = self.locations.get(path)
        return f"{path}, {location}" if location else f"{path}, by default"

    @property
    def protected_topics(self) -> tuple[str, ...]:
        return (*BUILT_IN_PROTECTED_TOPICS, *self.spec.policy.protected_topics)

    def protecting_pattern(self, topic: str) -> str | None:
        """The first pattern that protects this topic from changes; None: it is not protected."""
        return next((pattern for pattern in self.protected_topics if fnmatchcase(topic, pattern)), None)
