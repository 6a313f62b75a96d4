"""What an engine finds for the rules of a suite, and the results that are made of it: the same for each engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from topicops.features.quality.rules import RowKind, Rule
from topicops.model.errors import TopicopsError
from topicops.model.runs.results import FailingRow, QualityResult

MOST_EXAMPLES = 20


class Measure(NamedTuple):
    """What was counted for one rule."""

    rule: str
    rows_checked: int
    rows_failed: int


class FailingRows(NamedTuple):
    old: int | None
    """Number of them that failed before the changes too; None means that this is not known."""
    examples: tuple[FailingRow, ...]


_NONE_FAILS = FailingRows(None, ())


class Judged(NamedTuple):
    """What an engine found, for the rules of a suite."""

    measures: Sequence[Measure]
    """A measure for each rule, in the order of the rules."""
    failing: Mapping[str, FailingRows]
    """The rows that break a rule, for each rule that is broken."""


def broken_rules(rules: Sequence[Rule], measures: Sequence[Measure]) -> list[Rule]:
    return [rule for rule, measure in zip(rules, measures, strict=True) if measure.rows_failed]


def measures_of(
    rules: Sequence[Rule], counted: Iterable[Measure], expected: Mapping[RowKind, int]
) -> Sequence[Measure]:
    """Put the measures in the order of the rules; where there are no rows, none breaks the rule.

    Args:
        expected: How many rows of a kind must have been looked at, where that is known.

    Raises ``TopicopsError`` when not every row was checked: the result would be worthless.
    """
    found = {measure.rule: measure for measure in counted}
    measures = [found.get(rule.id, Measure(rule.id, 0, 0)) for rule in rules]
    for rule, measure in zip(rules, measures, strict=True):
        if measure.rows_checked != expected.get(rule.kind, measure.rows_checked):
            raise TopicopsError(
                f"quality rule {rule.id}: {measure.rows_checked} of {expected[rule.kind]} rows were checked"
            )
    return measures


def results_of(rules: Sequence[Rule], judged: Judged, failed: Collection[str]) -> tuple[QualityResult, ...]:
    """Return a result for each rule; ``failed`` are the rules of which Great Expectations says so."""
    return tuple(
        QualityResult(
            rule=rule.id,
            title=rule.title,
            severity=rule.severity,
            success=rule.id not in failed,
            rows_checked=measure.rows_checked,
            rows_failed=measure.rows_failed,
            rows_failed_before=failing.old,
            runbook=rule.runbook,
            examples=failing.examples,
        )
        for rule, measure in zip(rules, judged.measures, strict=True)
        for failing in (judged.failing.get(rule.id, _NONE_FAILS),)
    )
