"""Data quality on Spark with Great Expectations: may the inputs be trusted, and is the result healthy.

The rules are data (``features/quality/rules.py``). All rows of a suite are in one frame: each kind has columns of its
own, and nulls in the columns of other kinds. One Spark job counts the rows, and one more the failures of all rules. For
rules that fail, two more jobs name the first rows, and count those that failed before the changes too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.quality.edges.frames import Frames, rows_frame
from topicops.features.quality.edges.great_expectations_inside import evaluate, is_true
from topicops.features.quality.rules import LAYOUTS, RowKind, Rule, rules_of
from topicops.features.spark.edges.session import are_few, arrow_frame, arrow_rows, planned_for, spark_errors
from topicops.model.errors import TopicopsError
from topicops.model.runs.results import FailingRow, QualityResult, QualitySuite

MOST_EXAMPLES = 20
SO_BEFORE = "so_before"


def check_quality(
    spark: SparkSession,
    suite: QualitySuite,
    frames: Frames,
    *,
    expected: Mapping[RowKind, int],
    earlier: Callable[[], Frames] | None = None,
) -> tuple[QualityResult, ...]:
    """One result for each rule of the suite, in the order of ``RULES``. A rule without rows holds.

    Args:
        frames: The rows, by kind; a kind that is left out has none.
        expected: How many rows of a kind Spark must have looked at, where Python knows it.
        earlier: Gives the rows before the changes; called only when a rule fails. None: they are not known.

    Raises ``TopicopsError`` where Spark or Great Expectations failed.
    """
    rules = rules_of(suite)
    kinds: Frames = {rule.kind: frames.get(rule.kind, rows_frame(spark, rule.kind, ())) for rule in rules}
    known = sum(expected.values())
    with spark_errors(f"quality {suite}"), planned_for(spark, known):
        rows = one_frame(kinds.values())
        if are_few(known):
            rows, kinds = made_now(rows, kinds)
        results = evaluate(rows, rules)
        _check_complete(rules, results, expected)
        failed = [rule for rule, result in zip(rules, results, strict=True) if not result.success]
        if not failed:
            return results
        before = earlier() if earlier else {}
        if are_few(known) and before:
            _, before = made_now(one_frame(before.values()), before)
        named = name_rows(kinds, failed, before)
        both = zip(rules, results, strict=True)
        return tuple(_with_rows(result, named, is_known=rule.kind in before) for rule, result in both)


def one_frame(kinds: Iterable[DataFrame]) -> DataFrame:
    """All rows of a suite: each kind fills its own columns and the columns that it shares with other kinds."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), kinds)


def made_now(rows: DataFrame, kinds: Iterable[RowKind]) -> tuple[DataFrame, Frames]:
    """The rows as ``one_frame`` gives them, and by kind; Spark makes them now, once for all jobs.

    With few rows, to plan how they are made is most of a job's time.
    """
    made = arrow_frame(rows.sparkSession, arrow_rows(rows))
    return made, {kind: made.filter(F.col(LAYOUTS[kind].own).isNotNull()) for kind in kinds}


class FailingRows(NamedTuple):
    """The rows that fail one rule."""

    old: int
    """How many of them failed before the changes too."""
    examples: Sequence[Row]
    """``key``, ``shown``: JSON objects; ``so_before``: whether the row failed before too."""


def name_rows(frames: Frames, rules: Sequence[Rule], earlier: Frames) -> Mapping[str, FailingRows]:
    """The failing rows by rule; rows that did not fail in ``earlier`` come first. Two jobs for all rules."""
    failing = {rule: _failing(frames[rule.kind], rule, earlier.get(rule.kind)) for rule in rules}
    examples = _union(_examples(frame, rule) for rule, frame in failing.items()).collect()
    failed_before = [
        frame.agg(F.lit(rule.id).alias("rule"), F.count_if(SO_BEFORE).alias("old"))
        for rule, frame in failing.items()
        if rule.kind in earlier
    ]
    counted = _union(failed_before).collect() if failed_before else []
    old = {row["rule"]: row["old"] for row in counted}
    return {
        rule.id: FailingRows(old.get(rule.id) or 0, [row for row in examples if row["rule"] == rule.id])
        for rule in rules
    }


def _failing(frame: DataFrame, rule: Rule, earlier: DataFrame | None) -> DataFrame:
    """The rows that fail the rule, and whether a row of the same key failed it earlier: ``so_before``."""
    failing, key = frame.filter(~is_true(rule.holds)), LAYOUTS[rule.kind].key
    if earlier is None:
        return failing.withColumn(SO_BEFORE, F.lit(False))
    before = earlier.filter(~is_true(rule.holds))
    if not key:
        return failing.crossJoin(before.agg((F.count(F.lit(1)) > 0).alias(SO_BEFORE)))
    keys = before.select(*key, F.lit(True).alias(SO_BEFORE))
    return failing.join(keys, on=list(key), how="left").withColumn(SO_BEFORE, F.coalesce(SO_BEFORE, F.lit(False)))


def _examples(failing: DataFrame, rule: Rule) -> DataFrame:
    """The first rows in the order of their keys; only of these the shown columns are made."""
    key = LAYOUTS[rule.kind].key
    first = failing.orderBy(SO_BEFORE, *key).limit(MOST_EXAMPLES)
    return first.select(
        F.lit(rule.id).alias("rule"),
        _as_json(key).alias("key"),
        _as_json(rule.shows.split(", ") if rule.shows else ()).alias("shown"),
        SO_BEFORE,
    )


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


def _as_json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*map(F.expr, columns)), {"ignoreNullFields": "false"}) if columns else F.lit("{}")


def _check_complete(rules: Iterable[Rule], results: Iterable[QualityResult], expected: Mapping[RowKind, int]) -> None:
    """Raise ``TopicopsError`` when Spark did not check every row: the result would be worthless."""
    for rule, result in zip(rules, results, strict=True):
        if result.rows_checked != expected.get(rule.kind, result.rows_checked):
            raise TopicopsError(
                f"quality rule {rule.id}: Spark checked {result.rows_checked} of {expected[rule.kind]} rows"
            )


def _with_rows(result: QualityResult, named: Mapping[str, FailingRows], *, is_known: bool) -> QualityResult:
    if result.success:
        return result
    failing = named[result.rule]
    return replace(
        result,
        rows_failed_before=failing.old if is_known else None,
        examples=tuple(_failing_row(row, is_known=is_known) for row in failing.examples),
    )


def _failing_row(row: Row, *, is_known: bool) -> FailingRow:
    columns = {**json.loads(row["key"]), **json.loads(row["shown"])}
    return FailingRow(row=columns, was_so_before=row[SO_BEFORE] if is_known else None)
