"""The rules judged in this process, for runs that are too small for Spark. A few hundred topics are held at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from topicops.features.quality.measures import MOST_EXAMPLES, FailingRows, Judged, Measure, broken_rules, measures_of
from topicops.features.quality.rows import Rows
from topicops.features.quality.rules import LAYOUTS, RowKind, Rule
from topicops.model.runs.results import FailingRow


def judge_rows(
    rules: Sequence[Rule], rows: Rows, expected: Mapping[RowKind, int], *, earlier: Rows | None = None
) -> Judged:
    """Count the rows that break each rule, and name them: what ``edges.measuring`` does in Spark.

    Args:
        expected: How many rows of a kind there must be, where that is known.
        earlier: The rows before the changes; None means that they are not known.

    Raises ``TopicopsError`` when there are not so many rows.
    """
    measures = measures_of(rules, _counted(rules, rows), expected)
    failing = {rule.id: _failing_rows(rule, rows, earlier or {}) for rule in broken_rules(rules, measures)}
    return Judged(measures, failing)


def _counted(rules: Sequence[Rule], rows: Rows) -> Iterator[Measure]:
    for kind, make in rows.items():
        judged = [(rule.id, rule.is_met) for rule in rules if rule.kind == kind]
        failed, checked = Counter[str](), 0
        for row in make() if judged else ():
            checked += 1
            failed.update(rule for rule, is_met in judged if not is_met(row))
        yield from (Measure(rule, checked, failed[rule]) for rule, _ in judged)


def _failing_rows(rule: Rule, rows: Rows, earlier: Rows) -> FailingRows:
    """Name the first rows in the order of their keys; those that did not fail earlier come first."""
    is_known = rule.kind in earlier
    before = {key for key, _ in _breaking(rule, earlier)} if is_known else frozenset()
    failing = [(key in before, key, row) for key, row in _breaking(rule, rows)]
    first = nsmallest(MOST_EXAMPLES, failing, key=lambda found: found[:2])
    return FailingRows(
        old=sum(was_so for was_so, *_ in failing) if is_known else None,
        examples=tuple(
            FailingRow(row=_shown(rule, row), was_so_before=was_so if is_known else None) for was_so, _, row in first
        ),
    )


def _breaking(rule: Rule, rows: Rows) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the rows that break the rule, each with its key."""
    key = LAYOUTS[rule.kind].key
    return ((tuple(getattr(row, name) for name in key), row) for row in rows[rule.kind]() if not rule.is_met(row))


def _shown(rule: Rule, row: object) -> dict[str, object]:
    """Return the key and the shown columns, as JSON has them."""
    columns = [*LAYOUTS[rule.kind].key, *(rule.shows.split(", ") if rule.shows else ())]
    named = ((column.partition(" AS ")[0], column.rpartition(" AS ")[2]) for column in columns)
    return {name: _plain(getattr(row, column)) for column, name in named}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
