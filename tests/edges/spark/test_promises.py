"""The promise of ``features.quality.rules``: a new rule is one entry in the list."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fakes import builders
from fixtures.quality_rows import rows_after
from topicops.features.quality import rules as quality_rules
from topicops.features.quality.rules import RULES, Afterwards, Rule
from topicops.model.codes import Code
from topicops.model.runs.results import FailingRow, QualityResult

NEW = Rule(
    id=Code.Q01,  # of the other suite: a new rule has a new code
    severity="warning",
    suite="after",
    kind="topic",
    holds="partitions <= 1",
    is_met=lambda row: row.partitions <= 1,
    shows="partitions, fewest_replicas AS replicas",
)


@pytest.mark.soak
def test_a_rule_that_is_added_to_the_list_is_checked_by_both_engines_and_names_its_rows(
    check_quality: Callable[..., tuple[QualityResult, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality_rules, "RULES", (*RULES, NEW))
    rows = {name: dict.fromkeys(range(partitions), (1, 2, 3)) for name, partitions in {"one": 1, "two": 2}.items()}
    topics = [
        builders.live_topic(
            name, assignment=assignment, states={p: builders.partition_state(r) for p, r in assignment.items()}
        )
        for name, assignment in rows.items()
    ]
    after = rows_after(builders.snapshot(*topics, racks=dict.fromkeys((1, 2, 3))), Afterwards(managed=rows))

    [*others, added] = check_quality("after", after, earlier=lambda: after)

    assert (added.rule, added.title, added.severity) == (NEW.id, NEW.id.meaning, NEW.severity)
    assert (added.success, added.rows_checked, added.rows_failed, added.rows_failed_before) == (False, 2, 1, 1)
    assert added.examples == (FailingRow(row={"topic": "two", "partitions": 2, "replicas": 3}, was_so_before=True),)
    assert added.runbook == "docs/reference/quality.md#q01"
    assert [result.rule for result in others] == [rule.id for rule in RULES if rule.suite == "after"]
    assert all(result.success for result in others)
