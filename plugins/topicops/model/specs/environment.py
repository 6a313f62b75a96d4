"""An environment: one cluster, its limits and its policy, as people write them."""

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


class ZooKeeperEndpoint(Written):
    """Either a connection id or an address with its chroot."""

    connection: str | None = None
    hosts: str | None = None
    """``host:port,host:port/chroot``."""


class KafkaEndpoint(Written):
    """Either connection ids or bootstrap servers; applier and deleter default to the first connection."""

    connection: str | None = None
    applier: str | None = None
    deleter: str | None = None
    bootstrap_servers: str | None = None


class Cluster(Written):
    id: str | None = None
    """Must equal ``/cluster/id`` and the brokers' answer; only a sandbox may leave it out."""
    cluster_class: Literal["production", "sandbox"] = Field(alias="class")
    kafka_version: str = str(USUAL)
    source: Source = "zookeeper"
    zookeeper: ZooKeeperEndpoint | None = None
    kafka: KafkaEndpoint | None = None
    lease: Lease = "zookeeper"
    min_live_brokers: int = Field(default=1, ge=1)

    @property
    def release(self) -> Release:
        """Of ``kafka_version``; ``USUAL`` where that is no release."""
        return Release.parse(self.kafka_version) or USUAL


class Defaults(Written):
    """Values for topics whose own files and profiles give none."""

    partitions: int | None = Field(default=None, ge=1)
    replication_factor: int | None = Field(default=None, ge=1, le=32767)
    configs: Configs = Field(default_factory=dict)


class Limits(Written):
    partitions_per_topic: int = Field(default=128, ge=1)
    expansion_factor: int = Field(default=4, ge=1)
    replicas_per_run: int = Field(default=3000, ge=0)
    creates_per_run: int = Field(default=20, ge=0)
    deletes_per_run: int = Field(default=1, ge=0)
    deletes_percent: int = Field(default=5, ge=0, le=100)
    shrink_percent: int = Field(default=10, ge=0, le=100)
    unmanaged_percent: int = Field(default=100, ge=0, le=100)


class PolicyException(Written):
    """Makes one error of one topic a warning until the exception ends."""

    topic: str
    code: str
    reason: str
    until: datetime | None = None
    """UTC."""


class Policy(Written):
    min_replication_factor: int = Field(default=1, ge=1, le=32767)
    protected_topics: tuple[str, ...] = ()
    """Glob patterns, added to the built-in ones."""
    alterable_configs: tuple[str, ...] | None = None
    """None: all."""
    name_pattern: str | None = None
    """A regular expression that a topic's whole name must match, in the syntax of Rust's regex crate."""
    required_labels: tuple[str, ...] = ()
    """Keys that the labels of every topic must have."""
    allowed_owners: tuple[str, ...] | None = None
    """Glob patterns of the owners that may have topics here; None: all."""
    unlisted_configs: Literal["report", "remove"] = "report"
    unattended: Risk = Risk.NOTICE
    """The highest risk that runs without an approval."""
    delete_active: Permission = "refuse"
    rests_for: timedelta | None = None
    """A topic whose last record is younger is in use; None: the default of the class."""
    delete_by_name: Permission | None = None
    """Deletes of topics without a topic id, which go by name; None: the default of the class."""
    plans_without_files: Permission = "refuse"
    """Saved plans where no topic files are that could ask for their changes."""
    readable_passwords: Permission | None = None
    """Logins that send a password without TLS; None: the default of the class."""
    approvals: tuple[ApprovalWay, ...] | None = None
    """Which ways to approve count; None: the default of the class."""
    approvers: tuple[str, ...] = ()
    """Airflow's user names; empty: every user whom Airflow lets answer."""
    author_approves: Risk | None = None
    """The highest risk that the author of a change may approve alone; None: the default of the class."""
    approval_lasts: timedelta = timedelta(hours=24)
    after: tuple[str, ...] = ()
    """Environments that must have been applied and verified first, at the same commit."""
    exceptions: tuple[PolicyException, ...] = ()


class Apply(Written):
    validate_only: bool = True
    topics_per_request: int = Field(default=20, ge=1)
    partitions_per_request: int = Field(default=500, ge=1)


class Verify(Written):
    """How long each kind may take before its change counts as not healthy."""

    leaders: timedelta = timedelta(seconds=30)
    isr: timedelta = timedelta(seconds=60)
    metadata: timedelta = timedelta(seconds=30)
    deletes: timedelta = timedelta(seconds=120)


class Airflow(Written):
    """Left out: as the settings of the installation say."""

    schedule: str | None = None
    """Of the pipeline; a form of ``model.specs.schedules``."""
    drift_schedule: str | None = None
    mode: Literal["plan", "apply"] | None = None
    full_check_every: timedelta = timedelta(hours=1)
    """How long runs may end after the snapshot because nothing differs; then all is checked again."""
    fail_on: tuple[Literal["unhealthy"], ...] = ()
    """What makes a run fail that did all it should: ``unhealthy``, a cluster that is not healthy at its end."""
    owner: str | None = None
    """The team that Airflow names beside the DAGs."""
    owner_link: str | None = None
    """Where the owner's name leads there."""


class Override(Defaults):
    """Values for one topic that this environment sets above all layers."""


class EnvironmentSpec(Written):
    cluster: Cluster
    defaults: Defaults = Defaults()
    limits: Limits = Limits()
    policy: Policy = Policy()
    apply: Apply = Apply()
    verify: Verify = Verify()
    airflow: Airflow = Airflow()
    overrides: Mapping[str, Override] = Field(default_factory=dict)

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
