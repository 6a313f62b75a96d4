"""Rules about a partition's health, and the brokers that break them, as SQL of Spark.

The columns are those of ``PartitionRow``. A test holds the counts to those of ``steps.facts``.
"""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.codes import Code

HOLDS: Mapping[str, str] = {
    Code.Q11: "leader_is_live",
    Code.Q12: "size(missing_replicas) = 0",
    Code.Q13: "size(isr) >= min_isr",
    Code.Q15: "racks_used >= racks_possible",
    Code.Q26: "leader = -1 OR array_contains(isr, leader)",
    Code.Q27: "size(dead_replicas) = 0",
}
"""Conditions of a good partition, by rule; null counts as false."""
BROKERS_AT_FAULT: Mapping[str, str] = {
    Code.Q11: "IF(leader = -1, slice(replicas, 1, 1), array(leader))",
    Code.Q12: "missing_replicas",
    Code.Q13: "missing_replicas",
    Code.Q15: "CAST(array() AS array<int>)",
    Code.Q26: "array(leader)",
    Code.Q27: "dead_replicas",
}
"""Brokers that make a partition break the rule, if single ones do."""
