"""The quality rules: conditions for every row of one kind, in SQL over the columns of ``quality_rows.py``.

A new rule is one entry here and one section in docs/reference/quality.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicops.model.runs.quality_rows import RowKind
from topicops.model.runs.results import QualitySuite

Severity = Literal["critical", "warning"]

IMBALANCE_PERCENT = 10
"""Kafka's ``leader.imbalance.per.broker.percentage``: up to this share the controller moves no leader."""
_RUNBOOKS = "docs/reference/quality.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One condition for every row of one kind."""

    id: str
    title: str
    severity: Severity
    """A failed critical rule fails its task; a warning is shown."""
    suite: QualitySuite
    kind: RowKind
    holds: str
    """Spark SQL, true for a good row; null counts as false."""
    shows: tuple[str, ...] = ()
    """What is shown of a failing row besides its key: columns, or ``<expression> AS <name>``."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the shown columns."""
        return tuple(column.rpartition(" AS ")[2] for column in self.shows)

    @property
    def runbook(self) -> str:
        """Page and anchor: what to do when the rule fails."""
        return f"{_RUNBOOKS}#{self.id.lower()}"


BEFORE = (
    Rule(
        id="Q01",
        title="No topic is described twice",
        severity="critical",
        suite="before",
        kind="spec",
        holds="described = 1",
    ),
    Rule(
        id="Q02",
        title="Every listed topic was read with all its partitions and replicas, or is marked unstable",
        severity="critical",
        suite="before",
        kind="listed",
        holds="is_unstable OR (listed_partitions > 0 AND empty_partitions = 0)",
        shows=("listed_partitions", "empty_partitions"),
    ),
    Rule(
        id="Q03",
        title="The snapshot has not shrunk past the limit",
        severity="critical",
        suite="before",
        kind="inputs",
        holds="topics >= topics_at_least",
        shows=("topics", "topics_last_good", "topics_at_least"),
    ),
    Rule(
        id="Q04",
        title="Every described topic has an owner",
        severity="critical",
        suite="before",
        kind="spec",
        holds="trim(owner) <> ''",
    ),
    Rule(
        id="Q05",
        title="Every config of a spec is one that a broker takes",
        severity="critical",
        suite="before",
        kind="spec_config",
        holds="spec_problem = ''",
        shows=("spec_problem AS problem",),
    ),
    Rule(
        id="Q06",
        title="Every override in the cluster is one that brokers of cluster.kafkaVersion take",
        severity="warning",
        suite="before",
        kind="live_config",
        holds="live_problem = ''",
        shows=("live_problem AS problem",),
    ),
    Rule(
        id="Q07",
        title="As many brokers live as changes need",
        severity="critical",
        suite="before",
        kind="inputs",
        holds="live_brokers >= min_live_brokers",
        shows=("live_brokers", "min_live_brokers"),
    ),
    Rule(
        id="Q08",
        title="The cluster has a controller",
        severity="critical",
        suite="before",
        kind="inputs",
        holds="has_controller",
        shows=("live_brokers",),
    ),
    Rule(
        id="Q09",
        title="No partition is offline before the changes",
        severity="warning",
        suite="before",
        kind="listed",
        holds="offline_partitions = 0",
        shows=("offline_partitions", "listed_partitions AS partitions"),
    ),
    Rule(
        id="Q10",
        title="All brokers name their rack, or none does",
        severity="warning",
        suite="before",
        kind="inputs",
        holds="brokers_without_rack IN (0, live_brokers)",
        shows=("brokers_without_rack", "live_brokers"),
    ),
)

AFTER = (
    Rule(
        id="Q11",
        title="Every partition is led by a live broker",
        severity="critical",
        suite="after",
        kind="partition",
        holds="leader_is_live",
        shows=("leader", "replicas"),
    ),
    Rule(
        id="Q12",
        title="Every ISR is complete",
        severity="warning",
        suite="after",
        kind="partition",
        holds="size(array_except(replicas, isr)) = 0",
        shows=("array_except(replicas, isr) AS missing_replicas", "isr"),
    ),
    Rule(
        id="Q13",
        title="No ISR is below min.insync.replicas",
        severity="critical",
        suite="after",
        kind="partition",
        holds="size(isr) >= min_isr",
        shows=("isr", "min_isr"),
    ),
    Rule(
        id="Q14",
        title="No deletion is stuck",
        severity="warning",
        suite="after",
        kind="deletion",
        holds="age_ms < stuck_from_ms",
        shows=("age_ms",),
    ),
    Rule(
        id="Q15",
        title="Replicas are spread over the racks",
        severity="warning",
        suite="after",
        kind="partition",
        holds="racks_used >= racks_possible",
        shows=("replicas", "racks_used", "racks_possible"),
    ),
    Rule(
        id="Q16",
        title="Each broker leads the partitions that prefer it, as far as Kafka itself asks for it",
        severity="warning",
        suite="after",
        kind="broker",
        holds=f"(preferred - led) * 100 <= {IMBALANCE_PERCENT} * preferred",
        shows=("preferred", "led"),
    ),
    Rule(
        id="Q17",
        title="Partition ids are 0 to n-1",
        severity="critical",
        suite="after",
        kind="topic",
        holds="partitions > 0 AND lowest_partition = 0 AND highest_partition = partitions - 1",
        shows=("partitions", "lowest_partition", "highest_partition"),
    ),
    Rule(
        id="Q18",
        title="All partitions of a topic have the same replication factor",
        severity="warning",
        suite="after",
        kind="topic",
        holds="fewest_replicas = most_replicas",
        shows=("fewest_replicas", "most_replicas"),
    ),
    Rule(
        id="Q19",
        title="min.insync.replicas is not above the replication factor",
        severity="warning",
        suite="after",
        kind="topic",
        holds="min_insync_replicas <= fewest_replicas",
        shows=("min_insync_replicas", "fewest_replicas"),
    ),
    Rule(
        id="Q20",
        title="No config is left of a topic that is gone",
        severity="warning",
        suite="after",
        kind="config_znode",
        holds="has_topic",
    ),
    Rule(
        id="Q21",
        title="No reassignment is left over",
        severity="warning",
        suite="after",
        kind="topic",
        holds="NOT is_reassigning",
    ),
    Rule(
        id="Q22",
        title="No replication throttle is left over",
        severity="warning",
        suite="after",
        kind="topic",
        holds="is_reassigning OR NOT is_throttled",
    ),
    Rule(
        id="Q23",
        title="The source and the brokers agree on every topic",
        severity="critical",
        suite="after",
        kind="difference",
        holds="differences = ''",
        shows=("differences",),
    ),
    Rule(
        id="Q24",
        title="No managed topic was made again outside git",
        severity="critical",
        suite="after",
        kind="topic",
        holds="NOT is_managed OR is_own OR known_identity IS NULL OR identity = known_identity",
        shows=("known_identity", "identity"),
    ),
    Rule(
        id="Q25",
        title="No more topics are unmanaged than the limit allows",
        severity="warning",
        suite="after",
        kind="cluster",
        holds="unmanaged * 100 <= unmanaged_percent * live_topics",
        shows=("unmanaged", "live_topics AS topics", "unmanaged_percent"),
    ),
    Rule(
        id="Q26",
        title="Every leader is in its ISR",
        severity="critical",
        suite="after",
        kind="partition",
        holds="leader = -1 OR array_contains(isr, leader)",
        shows=("leader", "isr"),
    ),
    Rule(
        id="Q27",
        title="Every replica is on a broker that lives",
        severity="warning",
        suite="after",
        kind="partition",
        holds="size(dead_replicas) = 0",
        shows=("dead_replicas",),
    ),
)

RULES = (*BEFORE, *AFTER)


def rules_of(suite: QualitySuite) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.suite == suite)
