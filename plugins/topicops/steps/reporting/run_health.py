"""What a run saw of the cluster's health: a sentence for people, and numbers for metrics."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.runs.facts import Facts
from topicops.model.runs.results import IN_PLACE, QualityResult
from topicops.steps.reporting.facts_wording import unhealthy_lines
from topicops.steps.reporting.run_report import RunReport


def unhealthy_verdict(report: RunReport) -> str:
    """What is not healthy, in a sentence; empty: nothing is, as far as the run looked."""
    facts = report.newest_facts
    lines = unhealthy_lines(facts) if facts else []
    said = "\n".join(lines)
    lines = [*lines, *(_rule_words(rule) for rule in failing_rules(report) if f"({rule.rule})" not in said)]
    return f"The cluster is not healthy: {'; '.join(lines)}." if lines else ""


def failing_rules(report: RunReport) -> list[QualityResult]:
    """Give the quality rules that do not hold, by id; of a rule that was evaluated twice the later result."""
    by_rule = {rule.rule: rule for rule in (*report.quality_before, *report.quality_after)}
    return [by_rule[rule] for rule in sorted(by_rule) if not by_rule[rule].success]


def _rule_words(rule: QualityResult) -> str:
    """``Every topic of the files is in the cluster (Q16): not so for shop.orders, 3 more``."""
    topics = list(dict.fromkeys(str(row.row["topic"]) for row in rule.examples if row.row.get("topic")))
    more = max(0, rule.rows_failed - 1)
    named = f" for {topics[0]}{f', {more} more' if more else ''}" if topics else f", {rule.rows_failed} times"
    return f"{rule.title} ({rule.rule}): not so{named}"


def most_of_a_broker(facts: Facts | None) -> int:
    """Partitions that one broker makes unhealthy for one cause: a partition may be counted by several."""
    return max((found.partitions for found in facts.unhealthy), default=0) if facts else 0


def gauges_of(report: RunReport) -> Mapping[str, float]:
    """What metrics show of a whole run."""
    summary, plan = report.summary, report.plan
    return {
        "changes": float(len(plan.changes)) if plan else 0.0,
        "held": float(summary.held),
        "skipped": float(summary.skipped),
        "blocked": float(summary.blocked),
        "done": float(summary.count(*IN_PLACE)),
        "failed": float(len(report.outcomes) - summary.count(*IN_PLACE) + len(report.failed_tasks)),
        "failing_rules": float(len({r.rule for r in report.quality_after or report.quality_before if not r.success})),
        "unhealthy_partitions": float(most_of_a_broker(report.newest_facts)),
    }
