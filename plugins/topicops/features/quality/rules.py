"""The quality rules: conditions for every row of one kind, in SQL over the columns of ``quality_rows.py``.

A new rule is one entry here, its code in ``model/codes.py`` and one section in docs/reference/quality.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topicops.features.quality.rows import RowKind
from topicops.features.spark.partition_health import HOLDS
from topicops.model.codes import Code
from topicops.model.runs.results import QualitySuite

Severity = Literal["critical", "warning"]

IMBALANCE_PERCENT = 10
"""Kafka's ``leader.imbalance.per.broker.percentage``: up to this share the controller moves no leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One condition for every row of one kind."""

    id: Code
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


BEFORE = (
    Rule(
        id=Code.Q01,
        severity="critical",
        suite="before",
        kind="spec",
        holds="described = 1",
    ),
    Rule(
        id=Code.Q02,
        severity="critical",
        suite="before",
        kind="listed",
        holds="is_unstable OR (listed_partitions > 0 AND empty_partitions = 0)",
        shows=("listed_partitions", "empty_partitions"),
    ),
    Rule(
        id=Code.Q03,
        severity="critical",
        suite="before",
        kind="inputs",
        holds="topics >= topics_at_least",
        shows=("topics", "topics_last_good", "topics_at_least"),
    ),
    Rule(
        id=Code.Q04,
        severity="critical",
        suite="before",
        kind="spec",
        holds="trim(owner) <> ''",
    ),
    Rule(
        id=Code.Q05,
        severity="critical",
        suite="before",
        kind="spec_config",
        holds="spec_problem = ''",
        shows=("spec_problem AS problem",),
    ),
    Rule(
        id=Code.Q06,
        severity="warning",
        suite="before",
        kind="live_config",
        holds="live_problem = ''",
        shows=("live_problem AS problem",),
    ),
    Rule(
        id=Code.Q07,
        severity="critical",
        suite="before",
        kind="inputs",
        holds="live_brokers >= min_live_brokers",
        shows=("live_brokers", "min_live_brokers"),
    ),
    Rule(
        id=Code.Q08,
        severity="critical",
        suite="before",
        kind="inputs",
        holds="has_controller",
        shows=("live_brokers",),
    ),
    Rule(
        id=Code.Q09,
        severity="warning",
        suite="before",
        kind="listed",
        holds="offline_partitions = 0",
        shows=("offline_partitions", "listed_partitions AS partitions"),
    ),
    Rule(
        id=Code.Q10,
        severity="warning",
        suite="before",
        kind="inputs",
        holds="brokers_without_rack IN (0, live_brokers)",
        shows=("brokers_without_rack", "live_brokers"),
    ),
)

AFTER = (
    Rule(
        id=Code.Q11,
        severity="critical",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q11],
        shows=("leader", "replicas"),
    ),
    Rule(
        id=Code.Q12,
        severity="warning",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q12],
        shows=("missing_replicas", "isr"),
    ),
    Rule(
        id=Code.Q13,
        severity="critical",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q13],
        shows=("isr", "min_isr"),
    ),
    Rule(
        id=Code.Q14,
        severity="warning",
        suite="after",
        kind="deletion",
        holds="age_ms < stuck_from_ms",
        shows=("age_ms",),
    ),
    Rule(
        id=Code.Q15,
        severity="warning",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q15],
        shows=("replicas", "racks_used", "racks_possible"),
    ),
    Rule(
        id=Code.Q16,
        severity="warning",
        suite="after",
        kind="broker",
        holds=f"(preferred - led) * 100 <= {IMBALANCE_PERCENT} * preferred",
        shows=("preferred", "led"),
    ),
    Rule(
        id=Code.Q17,
        severity="critical",
        suite="after",
        kind="topic",
        holds="partitions > 0 AND lowest_partition = 0 AND highest_partition = partitions - 1",
        shows=("partitions", "lowest_partition", "highest_partition"),
    ),
    Rule(
        id=Code.Q18,
        severity="warning",
        suite="after",
        kind="topic",
        holds="fewest_replicas = most_replicas",
        shows=("fewest_replicas", "most_replicas"),
    ),
    Rule(
        id=Code.Q19,
        severity="warning",
        suite="after",
        kind="topic",
        holds="min_insync_replicas <= fewest_replicas",
        shows=("min_insync_replicas", "fewest_replicas"),
    ),
    Rule(
        id=Code.Q20,
        severity="warning",
        suite="after",
        kind="config_znode",
        holds="has_topic",
    ),
    Rule(
        id=Code.Q21,
        severity="warning",
        suite="after",
        kind="topic",
        holds="NOT is_reassigning",
    ),
    Rule(
        id=Code.Q22,
        severity="warning",
        suite="after",
        kind="topic",
        holds="is_reassigning OR NOT is_throttled",
    ),
    Rule(
        id=Code.Q23,
        severity="critical",
        suite="after",
        kind="difference",
        holds="differences = ''",
        shows=("differences",),
    ),
    Rule(
        id=Code.Q24,
        severity="critical",
        suite="after",
        kind="topic",
        holds="NOT is_managed OR is_own OR known_identity IS NULL OR identity = known_identity",
        shows=("known_identity", "identity"),
    ),
    Rule(
        id=Code.Q25,
        severity="warning",
        suite="after",
        kind="cluster",
        holds="unmanaged * 100 <= unmanaged_percent * live_topics",
        shows=("unmanaged", "live_topics AS topics", "unmanaged_percent"),
    ),
    Rule(
        id=Code.Q26,
        severity="critical",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q26],
        shows=("leader", "isr"),
    ),
    Rule(
        id=Code.Q27,
        severity="warning",
        suite="after",
        kind="partition",
        holds=HOLDS[Code.Q27],
        shows=("dead_replicas",),
    ),
)

RULES = (*BEFORE, *AFTER)


def rules_of(suite: QualitySuite) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.suite == suite)
