"""An environment: one cluster, its limits and its policy, as people write them.

Editors show the sentence under each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal, dataclass_transform

import msgspec
from msgspec import Meta

from topicops.model.choices import EngineChoice, Lease, Source
from topicops.model.release import USUAL, Release
from topicops.model.specs.diagnostics import Location


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of everything that people write: immutable, camelCase in files, no unknown field."""


class InBytes:
    """Marks a number of bytes, which files may write with a unit."""


Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Percent = Annotated[int, Meta(ge=0, le=100)]

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
        return _RANKS[self]


_RANKS = {risk: rank for rank, risk in enumerate(Risk)}
Permission = Literal["refuse", "allow"]
ApprovalWay = Literal["question", "parameter", "review"]
"""Airflow's question, a parameter of a run or of the command, or an approving review of the pull request."""
PRODUCTION_RESTS_FOR = timedelta(hours=24)
MOST_PARTITIONS = 2**31 - 1
LARGEST_REPLICATION_FACTOR = 32_767
"""The protocol counts replicas in 16 bits."""
ReplicationFactor = Annotated[int, Meta(ge=1, le=LARGEST_REPLICATION_FACTOR)]


class ZooKeeperEndpoint(Written):
    """Either a connection id or an address with its chroot."""

    connection: str | None = None
    """Id of a connection in Airflow, or in `AIRFLOW_CONN_<ID>`."""
    hosts: str | None = None
    """Address instead of a connection: `zk1:2181,zk2:2181/kafka`, without login and TLS; it wins over the
    connection."""


class KafkaEndpoint(Written):
    """Either connection ids or bootstrap servers."""

    connection: str | None = None
    """Id of the connection that reads, in Airflow or in `AIRFLOW_CONN_<ID>`."""
    applier: str | None = None
    """Id of the connection that creates, expands and configures; left out: the one that reads."""
    deleter: str | None = None
    """Id of the connection that deletes topics; left out: the one that reads."""
    mover: str | None = None
    """Id of the connection that moves replicas and sets their throttles; left out: the one that reads. Kafka has no
    such right for single topics: who may move one replica may move all."""
    bootstrap_servers: str | None = None
    """Address instead of a connection, or for a connection without `bootstrap.servers`: `b1:9092,b2:9092`. A connection
    with a login (`sasl.*`) must name its servers itself."""


class TopicNames(Written):
    prefix: Annotated[str, Meta(pattern=r"[A-Za-z0-9._-]{0,100}")] = ""
    """What the cluster puts before each name of a file: with `dev.` the file `orders.yaml` is the topic `dev.orders`
    here. Topics with other names are left alone; two environments of one cluster must not share a name (TOP339)."""


class Cluster(Written, kw_only=True):
    id: str | None = None
    """Id in the znode `/cluster/id`, or as the brokers tell it. Only a sandbox may leave it out (TOP325); then any
    cluster is accepted."""
    cluster_class: Literal["production", "sandbox"] = msgspec.field(name="class")
    """`production` or `sandbox`. A production cluster must name its id, and has stricter defaults."""
    kind: Literal["own", "managed"] = "own"
    """`own`, or `managed` for a service that runs the brokers: they place the replicas, and what the service does not
    let the reader see is named as not checked."""
    draining: tuple[int, ...] = ()
    """Ids of brokers that are to be emptied: they get no new replicas, and plans move those that they have. An id that
    the cluster does not have is an error (TOP438)."""
    kafka_version: str = str(USUAL)
    """Release of the brokers, 1.0 or later: `2.8`, `3.9`, `4.1.2`. It decides which topic configs exist and what they
    take. A release newer than 4.4 has the rules of 4.4, with a warning (TOP334); production without a release has the
    same warning. 4.0 and later need `source: kafka` (TOP325)."""
    source: Source = "zookeeper"
    """Where the live topics are read: `zookeeper`, or `kafka` for the brokers. Changes always go through the
    brokers."""
    zookeeper: ZooKeeperEndpoint | None = None
    """How to reach ZooKeeper."""
    kafka: KafkaEndpoint | None = None
    """How to reach the brokers."""
    lease: Lease = "zookeeper"
    """What keeps two runs from changing the cluster at the same time: `zookeeper`, `home`, `file` or `none`. Without
    it, it is `zookeeper`, or `home` with `source: kafka`, which cannot have `zookeeper` (TOP325)."""
    min_live_brokers: Positive = 1
    """With fewer live brokers, creates, expansions and deletes are skipped."""
    topics: TopicNames = TopicNames()
    """How the topics of the files are called here."""

    def __post_init__(self) -> None:
        if (self.source, self.lease) == ("kafka", "zookeeper"):  # left out, because nobody may write it
            msgspec.structs.force_setattr(self, "lease", "home")

    @property
    def is_managed(self) -> bool:
        return self.kind == "managed"

    @property
    def release(self) -> Release:
        """Of ``kafka_version``; ``USUAL`` where that is no release."""
        return Release.parse(self.kafka_version) or USUAL


class SharedSpec(Written):
    """The values that every layer may give."""

    partitions: Annotated[int, Meta(ge=1, le=MOST_PARTITIONS)] | None = None
    """Number of partitions; it can grow and never shrink."""
    replication_factor: ReplicationFactor | None = None
    """Number of brokers that hold each partition, 1 to 32,767."""
    configs: Configs = {}
    """Kafka's topic configs, merged key by key over the layers; null means that no override may be live."""


class Limits(Written):
    partitions_per_topic: Positive = 128
    """The most partitions of one topic; more are an error of the file (TOP320)."""
    expansion_factor: Positive = 4
    """In one run a topic grows to at most this many times its live partitions; a larger expansion is skipped
    (TOP405)."""
    replicas_per_run: Count = 3000
    """The most new replicas of one run; creates and expansions beyond it are skipped."""
    creates_per_run: Count = 20
    """The most topics that one run creates without an approval. With more, all creates are held (TOP440): often the
    files are for another cluster."""
    deletes_per_run: Count = 1
    """The most topics that one run deletes without a further approval; with more, all deletes are held."""
    deletes_percent: Percent = 5
    """The largest percentage of the managed topics that one run deletes, rounded up, at least one topic. With more, all
    deletes are held, and no approval lifts that."""
    shrink_percent: Percent = 10
    """If a larger percentage of the topics is gone since the last good snapshot, nothing is planned (TOP416, exit
    status 8)."""
    moved_bytes_per_run: Annotated[int, InBytes(), Meta(ge=0)] | None = None
    """The most bytes that the moves of one run copy: `500GiB`. A move beyond it, or of unknown size, is skipped
    (TOP441); left out: no limit."""
    moves_at_once: Annotated[int, Meta(ge=1, le=50)] = 50
    """The most partitions that move at the same time, 50 at most: a ZooKeeper controller is busy with a larger request
    for seconds."""
    moves_per_broker: Positive = 5
    """The most partitions that one broker receives at the same time."""
    unmanaged_percent: Percent = 100
    """If a larger percentage of the live topics is in no file, quality rule Q25 warns."""


class PolicyException(Written):
    """Makes one error of one topic a warning until the exception ends."""

    topic: str
    """Name of the topic that has the error."""
    code: str
    """Code of the error, such as TOP320."""
    reason: str
    """Why the error is allowed."""
    until: datetime | None = None
    """End of the exception, in UTC: then the error counts again, with a warning (TOP326); left out: it has no end."""


class RuleMatch(Written):
    """A topic must fit both, where both are given."""

    names: str | None = None
    """Glob pattern of the topics' names; left out: all names."""
    owners: tuple[str, ...] | None = None
    """Glob patterns of the topics' owners; left out: all owners."""


class NumberRule(Written):
    min: Positive | None = None
    """The lowest number."""
    max: Positive | None = None
    """The highest number."""


class ConfigRule(Written):
    """Values have the units of the config itself: `30d`, `1MiB`."""

    min: str | None = None
    """The lowest value."""
    max: str | None = None
    """The highest value; where `-1` means no limit, it is above each `max`."""
    one_of: tuple[str, ...] | None = None
    """The values that are allowed, each a whole value: `[delete, "compact,delete"]`."""
    required: bool = False
    """Whether a layer must give the config. Otherwise a topic without it, or with `null`, has the brokers' default,
    which files do not know, and fits."""


class PolicyRule(Written):
    """What the values of some topics must be, all layers merged (TOP340)."""

    match: RuleMatch
    """The topics that the rule is for; `names: "*"` for all."""
    configs: Mapping[str, ConfigRule] = {}
    """By config, what it may be."""
    partitions: NumberRule | None = None
    """What `partitions` may be."""
    replication_factor: NumberRule | None = None
    """What `replicationFactor` may be."""


class Policy(Written):
    min_replication_factor: ReplicationFactor = 1
    """The lowest replication factor that a topic may have; a smaller one is an error of the file (TOP310)."""
    protected_topics: tuple[str, ...] = ()
    """Glob patterns of topics that no file may name, beside `__*`, `_schemas` and `_confluent*`."""
    alterable_configs: tuple[str, ...] | None = None
    """Configs that files may set (TOP311) and that may be removed as unlisted; left out: all."""
    name_pattern: str | None = None
    """Regular expression that the whole name of each topic must match (TOP329), in the syntax of Rust's regex crate: no
    look-around, no back-references."""
    required_labels: tuple[str, ...] = ()
    """Keys that the labels of each topic must have (TOP330)."""
    allowed_owners: tuple[str, ...] | None = None
    """Glob patterns: only such owners may have topics here (TOP331); left out: all owners."""
    rules: tuple[PolicyRule, ...] = ()
    """Ranges and choices for configs, partitions and replication factor of some topics (TOP340)."""
    unlisted_configs: Literal["report", "remove"] = "report"
    """What happens to live overrides that no file names: `report` or `remove`."""
    unattended: Risk = Risk.NOTICE
    """The highest risk that runs without an approval: `safe`, `notice`, `risky` or `destructive`."""
    delete_active: Permission = "refuse"
    """What happens to the delete of a topic that has traffic or groups: `refuse` or `allow`."""
    rests_for: timedelta | None = None
    """A topic whose last record is younger than this is in use, and is not deleted. `0s`: only what moves between plan
    and apply counts. Clocks may differ by a tenth of it; left out: `24h` in production, `0s` in a sandbox."""
    delete_by_name: Permission | None = None
    """Whether topics without an id (`inter.broker.protocol.version` below 2.8) are deleted, which Kafka does by name:
    `refuse` (TOP429) or `allow`; left out: `refuse` in production, `allow` in a sandbox."""
    reassign: Literal["plan", "refuse"] = "plan"
    """What happens where replicas would have to move: `plan`, or `refuse`, which blocks the topic and gives the JSON
    for Kafka's own tool."""
    drain_unmanaged: Permission = "refuse"
    """Whether the drain of a broker also moves the replicas of topics that no file describes, Kafka's own among them:
    `refuse` or `allow`. Without them the broker is never empty."""
    plans_without_files: Permission = "refuse"
    """What happens to a saved plan where no topic files are, so that nothing asks for its changes: `refuse`, or
    `allow`; then each change needs an approval."""
    readable_passwords: Permission | None = None
    """Whether a login may send its password, its token, or its secret for tokens without TLS (`SASL_PLAINTEXT` with
    `PLAIN`): `refuse` (TOP812) or `allow`; left out: `refuse` in production, `allow` in a sandbox."""
    approvals: tuple[ApprovalWay, ...] | None = None
    """The ways to approve that count: Airflow's `question`, a `parameter` (`approved` of a run, `--approve` of the
    command), and the `review` of a pull request, for which CI and Airflow must share a key; left out: `[question]` in
    production, `[question, parameter]` in a sandbox."""
    approvers: tuple[str, ...] = ()
    """Names of the Airflow users who may approve, or of the accounts that may use `--approve`; none: everyone whom
    Airflow lets answer. Reviews have the reviewers of the file of owners instead."""
    author_approves: Risk | None = None
    """The highest risk that the author of a change may approve alone: who started the run that found it, the run that
    asks, or the command; for a review, who opened the pull request or wrote a commit of it; left out: `notice` in
    production, `destructive` in a sandbox."""
    approval_lasts: timedelta = timedelta(hours=24)
    """The longest time between an approval and the change, by this host's clock and by a server's."""
    after: tuple[str, ...] = ()
    """Environments that come first: nothing is sent here before each of them was applied and verified at the same
    commit; until then every change is skipped."""
    exceptions: tuple[PolicyException, ...] = ()
    """Each turns one error of one topic into a warning."""


class Apply(Written):
    validate_only: bool = True
    """Whether the brokers check creates, expansions and configs in a dry run before anything is sent."""
    topics_per_request: Positive = 20
    """The most topics in one request that changes them."""
    partitions_per_request: Positive = 500
    """The most new partitions in one request, and the most topics in one dry run."""
    throttle: Annotated[int, InBytes(), Meta(ge=1)] | None = None
    """The most bytes a second that moves copy from each broker, and to each: `50MiB`. In production a move that copies
    needs it (TOP442); left out in a sandbox: no throttle."""


class Verify(Written):
    """How long each kind may take before its change counts as not healthy."""

    leaders: timedelta = timedelta(seconds=30)
    """Deadline for leaders, states, assignments, and all that has no deadline of its own."""
    isr: timedelta = timedelta(seconds=60)
    """Deadline for complete ISRs (V08, V09)."""
    metadata: timedelta = timedelta(seconds=30)
    """Deadline for the agreement of the brokers, overrides and logs (V14 to V16)."""
    moves: timedelta = timedelta(hours=1)
    """How long a moving partition may copy nothing until the move is cancelled, where that is safe, or reported."""
    deletes: timedelta = timedelta(seconds=120)
    """Deadline until all traces of a deleted topic are gone (V17); also how long apply waits for one delete."""


class Airflow(Written):
    """Left out: as the settings of the installation say."""

    schedule: str | None = None
    """When the pipeline runs; left out: `TOPICOPS_SCHEDULE`."""
    drift_schedule: str | None = None
    """When the drift DAG runs; left out: `TOPICOPS_DRIFT_SCHEDULE`."""
    mode: Literal["plan", "apply"] | None = None
    """Default of the pipeline's param `mode`, `plan` or `apply`: whether scheduled runs send changes; left out:
    `TOPICOPS_MODE`."""
    full_check_every: timedelta = timedelta(hours=1)
    """A run in which nothing differs from the last good one ends early; after this time the next run makes every check
    again."""
    engine: EngineChoice = "auto"
    """What compares files and cluster in a DAG's run, and judges its rules: `spark`, `python`, or `auto`: Spark where
    it is faster, and for `quality.rules`. Both find the same."""
    fail_on: tuple[Literal["unhealthy"], ...] = ()
    """`[unhealthy]`: a run fails when the cluster is not healthy at its end, so that Airflow's first page shows it. By
    default such a run is green, and the notifiers are told."""
    owner: str | None = None
    """Team that Airflow names as the owner of these DAGs; left out: `topicops`."""
    owner_link: str | None = None
    """Where that name leads in Airflow's list of DAGs: `https://chat.example.com/kafka` or
    `mailto:kafka@example.com`."""


RowLevel = Literal["spec", "topic", "partition", "broker"]
RuleSeverity = Literal["critical", "warning"]


class QualityRule(Written):
    """A rule of your own; it is judged with those of topicops."""

    id: str
    """Name of the rule, used once in the file: lower-case letters, digits and hyphens."""
    level: RowLevel
    """What one row is: `spec` (a topic of the files), `topic` (a live topic), `partition` or `broker`."""
    holds: str
    """Condition in Spark SQL over the columns of the level, true for a good row; null counts as false."""
    title: str
    """Sentence that is true when the rule holds."""
    severity: RuleSeverity = "warning"
    """`critical`: a row that breaks the rule fails the task; `warning`: it is shown."""
    gate: bool = False
    """Whether the rule is judged before the changes too, so that a critical one stops them; of level `spec` each is."""
    runbook: str = ""
    """Page that says what to do."""


class Quality(Written):
    rules: tuple[QualityRule, ...] = ()
    """Rules of your own."""


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
    quality: Quality = Quality()
    """What the quality checks judge beside the rules of topicops."""
    overrides: Mapping[str, SharedSpec] = {}
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
        """The highest risk that ``--approve`` lets run, whose giver is the author; None means none."""
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
    """Places by dotted path below ``spec``, as written: ``limits.deletesPerRun``; only values that are in the file."""

    def place_of(self, path: str) -> str:
        """Return ``limits.deletesPerRun, topics/environments/prod-eu.yaml:18``, for the reasons that the gate gives."""
        location = self.locations.get(path)
        return f"{path}, {location}" if location else f"{path}, by default"

    @property
    def protected_topics(self) -> tuple[str, ...]:
        return (*BUILT_IN_PROTECTED_TOPICS, *self.spec.policy.protected_topics)

    @property
    def prefix(self) -> str:
        """What comes before a file's name to make the topic's; empty in most environments."""
        return self.spec.cluster.topics.prefix

    def protecting_pattern(self, topic: str) -> str | None:
        """Return the first pattern that protects this topic from changes; None means that it is not protected.

        Topics of other environments are protected too: ``not dev.*``.
        """
        if not topic.startswith(self.prefix):
            return f"not {self.prefix}*"
        return next((pattern for pattern in self.protected_topics if fnmatchcase(topic, pattern)), None)
