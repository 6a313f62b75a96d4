"""The quality rules, conditions for every row of one kind, and the kinds of rows with those that need no table.

A condition is there twice: in SQL for Spark, and as a function. A test judges the same worlds both ways.

A new rule is one entry here, its code in ``model/codes.py`` and one section in docs/reference/quality.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from topicops.features.spark.partition_health import HOLDS
from topicops.model.cluster.snapshot import STUCK_AFTER_MS, ClusterSnapshot
from topicops.model.codes import CODES, Code
from topicops.model.runs.facts import PartitionRow
from topicops.model.runs.results import QualitySuite
from topicops.model.specs.environment import Environment, EnvironmentSpec, QualityRule, RuleSeverity
from topicops.steps.facts import BROKERS_AT_FAULT
from topicops.steps.specs.conditions import read_condition

RowKind = Literal[
    "spec", "spec_config", "listed", "live_config", "inputs",
    "partition", "topic", "broker", "deletion", "config_znode", "difference", "cluster",
]  # fmt: skip


Pairs = tuple[tuple[str, str], ...]  # a map in Spark


class SpecRow(NamedTuple):
    """One row per topic of the environment; key ``topic``."""

    topic: str
    file: str
    owner: str
    domain: str
    lifecycle: str
    partitions: int
    replication_factor: int
    configs: Pairs
    described: int
    """Number of specs that name the topic."""


class SpecConfigRow(NamedTuple):
    """One row per config that a spec sets; key ``topic``, ``config``."""

    topic: str
    config: str
    spec_problem: str
    """Reason why a broker would refuse the value; empty when it accepts it."""


class ListedTopicRow(NamedTuple):
    """One row per topic that the cluster listed; key ``topic``."""

    topic: str
    listed_partitions: int
    empty_partitions: int
    """Partitions without any replica."""
    offline_partitions: int
    """Partitions without a live leader; 0 where states were not read, and of a topic that is being deleted."""
    is_unstable: bool
    """The topic kept changing while it was read."""


class LiveConfigRow(NamedTuple):
    """One row per override in the cluster; key ``topic``, ``config``."""

    topic: str
    config: str
    live_problem: str
    """Reason why brokers of the environment's release would refuse the value; empty when they accept it."""


class InputsRow(NamedTuple):
    """The state at the start of the run; exactly one row."""

    topics: int
    topics_last_good: int
    """The number of topics now, where there is no last good snapshot."""
    topics_at_least: int
    """Number of topics that ``limits.shrinkPercent`` requires, from the last good number."""
    live_brokers: int
    min_live_brokers: int
    brokers_without_rack: int
    has_controller: bool
    """A controller is elected and registered. Under KRaft it need not be a broker."""


class TopicRow(NamedTuple):
    """One row per live topic; key ``topic``."""

    topic: str
    is_managed: bool
    """A spec names it."""
    partitions: int
    lowest_partition: int
    highest_partition: int
    fewest_replicas: int
    most_replicas: int
    min_insync_replicas: int
    """The topic's value, else the default of the brokers."""
    is_reassigning: bool
    is_throttled: bool
    """The topic has a list of throttled replicas."""
    is_own_move: bool
    """Our record of moves has the topic: its move, or its throttle, is ours, and later steps end it."""
    identity: str
    """Topic id, else ``czxid:<n>``; the known identity where it is that of the same topic before it got an id."""
    known_identity: str | None
    """The identity that this name had at the last run; None when it is not known."""
    is_own: bool
    """The identity is not the known one, and this tool created the topic, by the audit log."""
    configs: Pairs
    """The overrides that are live."""


class BrokerRow(NamedTuple):
    """One row per broker that is registered or preferred by a partition; key ``broker``."""

    broker: int
    preferred: int
    """Partitions whose first replica is on this broker."""
    led: int
    """Number of these partitions that the broker leads."""


class DeletionRow(NamedTuple):
    """One row per deletion marker; key ``topic``."""

    topic: str
    age_ms: int
    stuck_from_ms: int
    """Age from which the marker counts as stuck; 0 for a topic whose deletion this run has verified."""


class ConfigZnodeRow(NamedTuple):
    """One row per topic with overrides, and per config znode without a topic; key ``topic``."""

    topic: str
    has_topic: bool


class DifferenceRow(NamedTuple):
    """One row per topic that was compared between the source and the brokers; key ``topic``."""

    topic: str
    differences: str
    """Differences between the brokers and the source; empty when they agree."""


class ClusterRow(NamedTuple):
    """The cluster as a whole; exactly one row."""

    live_topics: int
    unmanaged: int
    unmanaged_percent: int
    """``limits.unmanagedPercent``."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the rows of one kind."""

    row: type[NamedTuple]
    key: tuple[str, ...]
    """Columns that name a row; empty if there is only one row."""


LAYOUTS: Mapping[RowKind, Layout] = {
    "spec": Layout(SpecRow, ("topic", "file")),
    "spec_config": Layout(SpecConfigRow, ("topic", "config")),
    "listed": Layout(ListedTopicRow, ("topic",)),
    "live_config": Layout(LiveConfigRow, ("topic", "config")),
    "inputs": Layout(InputsRow, ()),
    "partition": Layout(PartitionRow, ("topic", "partition")),
    "topic": Layout(TopicRow, ("topic",)),
    "broker": Layout(BrokerRow, ("broker",)),
    "deletion": Layout(DeletionRow, ("topic",)),
    "config_znode": Layout(ConfigZnodeRow, ("topic",)),
    "difference": Layout(DifferenceRow, ("topic",)),
    "cluster": Layout(ClusterRow, ()),
}


IMBALANCE_PERCENT = 10
"""Kafka's ``leader.imbalance.per.broker.percentage``: up to this share the controller moves no leader."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition for every row of one kind."""

    id: str
    """Code, or the id of an environment's own rule."""
    severity: RuleSeverity
    """A failed critical rule fails its task; a warning is shown."""
    suite: QualitySuite
    kind: RowKind
    holds: str
    """Spark SQL, true for a good row; null counts as false."""
    is_met: Callable[[Any], bool]
    """The same condition, for one row in this process."""
    shows: str = ""
    """Columns of a failing row shown besides its key, with ", " between them; ``a AS b`` gives another name."""
    own: QualityRule | None = None
    """The rule as an environment's file has it; None means a rule of topicops."""

    @property
    def title(self) -> str:
        """Sentence that holds when the rule does."""
        return self.own.title if self.own else CODES[self.id].meaning

    @property
    def runbook(self) -> str:
        """Page that says what to do."""
        return self.own.runbook if self.own else CODES[self.id].page


def _of_partition(code: Code, severity: RuleSeverity, shows: str) -> Rule:
    """Make a rule about a partition's health, as facts count it."""
    at_fault = BROKERS_AT_FAULT[code]
    return Rule(code, severity, "after", "partition", HOLDS[code], lambda row: at_fault(row) is None, shows)


# fmt: off
BEFORE = (
    Rule(Code.Q01, "critical", "before", "spec", "described = 1", lambda row: row.described == 1),
    Rule(Code.Q02, "critical", "before", "listed",
         "is_unstable OR (listed_partitions > 0 AND empty_partitions = 0)",
         lambda row: row.is_unstable or (row.listed_partitions > 0 and row.empty_partitions == 0),
         "listed_partitions, empty_partitions"),
    Rule(Code.Q03, "critical", "before", "inputs",
         "topics >= topics_at_least", lambda row: row.topics >= row.topics_at_least,
         "topics, topics_last_good, topics_at_least"),
    Rule(Code.Q04, "critical", "before", "spec", "trim(owner) <> ''", lambda row: row.owner.strip(" ") != ""),
    Rule(Code.Q05, "critical", "before", "spec_config",
         "spec_problem = ''", lambda row: row.spec_problem == "", "spec_problem AS problem"),
    Rule(Code.Q06, "warning", "before", "live_config",
         "live_problem = ''", lambda row: row.live_problem == "", "live_problem AS problem"),
    Rule(Code.Q07, "critical", "before", "inputs",
         "live_brokers >= min_live_brokers", lambda row: row.live_brokers >= row.min_live_brokers,
         "live_brokers, min_live_brokers"),
    Rule(Code.Q08, "critical", "before", "inputs", "has_controller", lambda row: row.has_controller, "live_brokers"),
    Rule(Code.Q09, "warning", "before", "listed",
         "offline_partitions = 0", lambda row: row.offline_partitions == 0,
         "offline_partitions, listed_partitions AS partitions"),
    Rule(Code.Q10, "warning", "before", "inputs",
         "brokers_without_rack IN (0, live_brokers)", lambda row: row.brokers_without_rack in (0, row.live_brokers),
         "brokers_without_rack, live_brokers"),
)

AFTER = (
    _of_partition(Code.Q11, "critical", "leader, replicas"),
    _of_partition(Code.Q12, "warning", "missing_replicas, isr"),
    _of_partition(Code.Q13, "critical", "isr, min_isr"),
    Rule(Code.Q14, "warning", "after", "deletion",
         "age_ms < stuck_from_ms", lambda row: row.age_ms < row.stuck_from_ms, "age_ms"),
    _of_partition(Code.Q15, "warning", "replicas, racks_used, racks_possible"),
    Rule(Code.Q16, "warning", "after", "broker",
         f"(preferred - led) * 100 <= {IMBALANCE_PERCENT} * preferred",
         lambda row: (row.preferred - row.led) * 100 <= IMBALANCE_PERCENT * row.preferred, "preferred, led"),
    Rule(Code.Q17, "critical", "after", "topic",
         "partitions > 0 AND lowest_partition = 0 AND highest_partition = partitions - 1",
         lambda row: row.partitions > 0 and row.lowest_partition == 0 and row.highest_partition == row.partitions - 1,
         "partitions, lowest_partition, highest_partition"),
    Rule(Code.Q18, "warning", "after", "topic",
         "fewest_replicas = most_replicas OR is_own_move",
         lambda row: row.fewest_replicas == row.most_replicas or row.is_own_move, "fewest_replicas, most_replicas"),
    Rule(Code.Q19, "warning", "after", "topic",
         "min_insync_replicas <= fewest_replicas", lambda row: row.min_insync_replicas <= row.fewest_replicas,
         "min_insync_replicas, fewest_replicas"),
    Rule(Code.Q20, "warning", "after", "config_znode", "has_topic", lambda row: row.has_topic),
    Rule(Code.Q21, "warning", "after", "topic",
         "NOT is_reassigning OR is_own_move", lambda row: not row.is_reassigning or row.is_own_move),
    Rule(Code.Q22, "warning", "after", "topic",
         "is_reassigning OR is_own_move OR NOT is_throttled",
         lambda row: row.is_reassigning or row.is_own_move or not row.is_throttled),
    Rule(Code.Q23, "critical", "after", "difference",
         "differences = ''", lambda row: row.differences == "", "differences"),
    Rule(Code.Q24, "critical", "after", "topic",
         "NOT is_managed OR is_own OR known_identity IS NULL OR identity = known_identity",
         lambda row: not row.is_managed or row.is_own or row.known_identity in (None, row.identity),
         "known_identity, identity"),
    Rule(Code.Q25, "warning", "after", "cluster",
         "unmanaged * 100 <= unmanaged_percent * live_topics",
         lambda row: row.unmanaged * 100 <= row.unmanaged_percent * row.live_topics,
         "unmanaged, live_topics AS topics, unmanaged_percent"),
    _of_partition(Code.Q26, "critical", "leader, isr"),
    _of_partition(Code.Q27, "warning", "dead_replicas"),
)
# fmt: on

RULES = (*BEFORE, *AFTER)


def rules_of(suite: QualitySuite, environment: EnvironmentSpec | None = None) -> tuple[Rule, ...]:
    """Return the rules of topicops, and then those of an environment."""
    own, is_before = environment.quality.rules if environment else (), suite == "before"
    judged = (rule for rule in own if (rule.level == "spec") is is_before or (is_before and rule.gate))
    return (*(rule for rule in RULES if rule.suite == suite), *(_own_rule(rule, suite) for rule in judged))


def _own_rule(rule: QualityRule, suite: QualitySuite) -> Rule:
    """Show the columns that the condition reads. Raises ``UsageError``."""
    condition = read_condition(rule.holds, rule.level)
    shows = ", ".join(condition.columns)
    return Rule(rule.id, rule.severity, suite, rule.level, condition.sql, _only_in_spark, shows, own=rule)


def _only_in_spark(_: object) -> bool:
    raise AssertionError("a condition in SQL is judged by Spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """What the rules after the changes need besides the snapshot."""

    managed: Collection[str]
    """Topics that a spec names."""
    unmanaged_percent: int = 100
    prefix: str = ""
    """Topics with other names belong to other environments."""
    deleted: Collection[str] = ()
    """Topics whose deletion this run has verified."""
    known_identities: Mapping[str, str] | None = None
    """The identity of each topic at the last run."""
    own_moves: Collection[str] = ()
    """Topics of our record of moves."""
    own_topic_identities: Collection[str] = ()
    """Unknown identities that belong to topics which this tool created."""
    differences: Mapping[str, str] | None = None
    """Differences between the brokers and the source, by topic; None means that the brokers were not asked."""


def deletion_rows(live: ClusterSnapshot, afterwards: Afterwards) -> list[DeletionRow]:
    return [
        DeletionRow(name, age_ms, 0 if name in afterwards.deleted else STUCK_AFTER_MS)
        for name, age_ms in live.deleting.items()
    ]


def topics_at_least(topics_last_good: int, shrink_percent: int) -> int:
    """Return how many topics are required. Rounded up: at 10 % one of 15 topics may be missing, not two."""
    return -(-topics_last_good * (100 - shrink_percent) // 100)


def cluster_row(live: ClusterSnapshot, afterwards: Afterwards) -> ClusterRow:
    unmanaged = sum(name not in afterwards.managed and name.startswith(afterwards.prefix) for name in live.topics)
    return ClusterRow(len(live.topics), unmanaged, afterwards.unmanaged_percent)


def inputs_row(live: ClusterSnapshot, environment: Environment, topics_last_good: int | None) -> InputsRow:
    topics = len(live.topics)
    topic_count = topics if topics_last_good is None else topics_last_good
    has_controller = live.controller_id is not None and (live.source == "kafka" or live.controller_id in live.brokers)
    return InputsRow(
        topics=topics,
        topics_last_good=topic_count,
        topics_at_least=topics_at_least(topic_count, environment.spec.limits.shrink_percent),
        live_brokers=len(live.brokers),
        min_live_brokers=environment.spec.cluster.min_live_brokers,
        brokers_without_rack=sum(rack is None for rack in live.racks.values()),
        has_controller=has_controller,
    )
