"""The rules judged in this process, for runs that are too small for Spark. A few hundred topics are held at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    broken = broken_rules(rules, measures)
    if not broken:
        return Judged(measures, {})
    before = _breaking(broken, earlier) if earlier else {}
    breaking = _breaking(broken, rows)
    return Judged(measures, {rule.id: _failing_rows(rule, breaking[rule.id], before.get(rule.id)) for rule in broken})


def _counted(rules: Sequence[Rule], rows: Rows) -> Iterator[Measure]:
    checked, failed = Counter[str](), Counter[str]()
    for rule, found in _by_rule(rules, rows):
        failed[rule.id] += sum(not rule.is_met(row) for row in found)
        checked[rule.id] += len(found)
    return (Measure(rule, checked[rule], failed[rule]) for rule in checked)


def _by_rule(rules: Sequence[Rule], rows: Rows) -> Iterator[tuple[Rule, Collection[Any]]]:
    """Yield each rule with the rows that it is about, as often as there are some."""
    return ((rule, part[rule.kind]) for part in rows() for rule in rules if rule.kind in part)


Breaking = Sequence[tuple[tuple[Any, ...], Any]]
"""Rows that break a rule, each with its key."""


def _breaking(rules: Sequence[Rule], rows: Rows) -> Mapping[str, Breaking]:
    """Give the rows that break a rule; a rule is left out where there are no rows of its kind at all."""
    found: dict[str, list[tuple[tuple[Any, ...], Any]]] = {}
    for rule, some in _by_rule(rules, rows):
        key = LAYOUTS[rule.kind].key
        rows_of_key = ((tuple(getattr(row, name) for name in key), row) for row in some if not rule.is_met(row))
        found.setdefault(rule.id, []).extend(rows_of_key)
    return found


def _failing_rows(rule: Rule, breaking: Breaking, before: Breaking | None) -> FailingRows:
    """Name the first rows in the order of their keys; those that did not fail earlier come first."""
    is_known, keys = before is not None, {key for key, _ in before or ()}
    failing = [(key in keys, key, row) for key, row in breaking]
    first = nsmallest(MOST_EXAMPLES, failing, key=lambda found: found[:2])
    return FailingRows(
        old=sum(was_so for was_so, *_ in failing) if is_known else None,
        examples=tuple(
            FailingRow(row=_shown(rule, row), was_so_before=was_so if is_known else None) for was_so, _, row in first
        ),
    )


def _shown(rule: Rule, row: object) -> dict[str, object]:
    """Return the key and the shown columns, as JSON has them."""
    columns = [*LAYOUTS[rule.kind].key, *(rule.shows.split(", ") if rule.shows else ())]
    named = ((column.partition(" AS ")[0], column.rpartition(" AS ")[2]) for column in columns)
    return {name: _plain(getattr(row, column)) for column, name in named}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
