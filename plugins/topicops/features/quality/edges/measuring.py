"""How many rows break each rule, in one action, and which rows these are, in one more.

A frame of measures has one row for each rule: that is what Great Expectations validates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.features.quality.edges.rows import TIMES, Frames
from topicops.features.quality.measures import MOST_EXAMPLES, FailingRows, Judged, Measure, broken_rules, measures_of
from topicops.features.quality.rules import LAYOUTS, RowKind, Rule
from topicops.features.spark.edges.causes import reason_of
from topicops.features.spark.edges.session import arrow_rows
from topicops.features.spark.settings import without_secrets
from topicops.model.errors import TopicopsError
from topicops.model.runs.results import FailingRow

SO_BEFORE = "so_before"


def judge_rows(
    rules: Sequence[Rule],
    to_count: Frames,
    to_name: Callable[[], Frames],
    expected: Mapping[RowKind, int],
    *,
    earlier: Callable[[], Frames] | None = None,
    beside: DataFrame | None = None,
) -> tuple[Judged, Sequence[Mapping[str, Any]]]:
    """Count the rows of each rule in one action, and name the rows that break one in one more.

    Args:
        to_count: The rows, by kind; a kind that is left out has none. A row may stand for several: ``times``.
        to_name: Gives the same rows, each under its own name; called only when a rule fails.
        expected: How many rows of a kind Spark must have looked at, where Python knows it.
        earlier: Gives the rows before the changes, in the same way; None means that they are not known.
        beside: Rows that the first action gives too, and that are returned; their columns have names of their own.

    Raises ``TopicopsError`` when Spark did not look at all rows.
    """
    counting = measures_frame(rules, to_count)
    found = arrow_rows(counting if beside is None else one_frame([counting, beside])).to_pylist()
    counted = [Measure(*(row[name] for name in Measure._fields)) for row in found if row["rule"] is not None]
    measures = measures_of(rules, counted, expected)
    broken = broken_rules(rules, measures)
    failing = name_rows(to_name(), broken, earlier() if earlier else {}) if broken else {}
    return Judged(measures, failing), [row for row in found if row["rule"] is None]


def measures_frame(rules: Iterable[Rule], frames: Frames) -> DataFrame:
    """One row for each rule whose kind has a frame; the columns are those of ``Measure``."""
    by_kind: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.kind in frames:
            by_kind.setdefault(rule.kind, []).append(rule)
    return one_frame(_measured(frames[kind], found) for kind, found in by_kind.items())  # type: ignore[index]


def _measured(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    times = F.col(TIMES) if TIMES in frame.columns else F.lit(1)
    failed = [F.sum(F.when(_holds(frame, rule), F.lit(0)).otherwise(times)) for rule in rules]
    counts = frame.agg(F.sum(times).alias("rows"), *(each.alias(f"failed_{n}") for n, each in enumerate(failed)))
    ids = enumerate(rule.id for rule in rules)
    each = F.array(*(F.struct(F.lit(name).alias("rule"), F.col(f"failed_{n}").alias("failed")) for n, name in ids))
    nought = F.lit(0).cast("long")
    return counts.select("rows", F.explode(each).alias("of")).select(
        "of.rule",
        F.coalesce("rows", nought).alias("rows_checked"),
        F.coalesce("of.failed", nought).alias("rows_failed"),
    )


def _holds(frame: DataFrame, rule: Rule) -> Column:
    """Raise ``TopicopsError`` for a rule of an environment that Spark refuses; Spark Connect says so only later."""
    try:
        if rule.own:
            frame.select(is_true(rule.holds))
    except AnalysisException as error:
        reason = without_secrets(reason_of(error))
        raise TopicopsError(f"quality rule {rule.id}: Spark refuses its condition: {reason}") from None
    return is_true(rule.holds)


def one_frame(frames: Iterable[DataFrame]) -> DataFrame:
    """Return all rows of frames with different columns."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def is_true(predicate: str) -> Column:
    return F.coalesce(F.expr(predicate), F.lit(False))


def name_rows(frames: Frames, rules: Sequence[Rule], earlier: Frames) -> Mapping[str, FailingRows]:
    """Return the failing rows by rule; rows that did not fail in ``earlier`` come first. One action for all rules."""
    failing = {rule: _failing(frames[rule.kind], rule, earlier.get(rule.kind)) for rule in rules}
    examples = [_examples(frame, rule) for rule, frame in failing.items()]
    before = [
        frame.agg(F.lit(rule.id).alias("rule"), F.count_if(SO_BEFORE).alias("old")) for rule, frame in failing.items()
    ]
    found = arrow_rows(one_frame([*examples, *before])).to_pylist()
    return {
        rule.id: _failing_rows([row for row in found if row["rule"] == rule.id], is_known=rule.kind in earlier)
        for rule in rules
    }


def _failing_rows(rows: Sequence[Mapping[str, Any]], *, is_known: bool) -> FailingRows:
    examples = sorted((row for row in rows if row["key"] is not None), key=lambda row: int(row["place"]))
    return FailingRows(
        old=sum(row["old"] or 0 for row in rows) if is_known else None,
        examples=tuple(
            FailingRow(
                row={**json.loads(row["key"]), **json.loads(row["shown"])},
                was_so_before=row[SO_BEFORE] if is_known else None,
            )
            for row in examples
        ),
    )


def _failing(frame: DataFrame, rule: Rule, earlier: DataFrame | None) -> DataFrame:
    """Return the rows that fail the rule, and whether a row of the same key failed it earlier: ``so_before``."""
    failing, key = frame.filter(~is_true(rule.holds)), LAYOUTS[rule.kind].key
    if earlier is None:
        return failing.withColumn(SO_BEFORE, F.lit(False))
    before = earlier.filter(~is_true(rule.holds))
    if not key:
        return failing.crossJoin(before.agg((F.count(F.lit(1)) > 0).alias(SO_BEFORE)))
    keys = before.select(*key, F.lit(True).alias(SO_BEFORE))
    return failing.join(keys, on=list(key), how="left").withColumn(SO_BEFORE, F.coalesce(SO_BEFORE, F.lit(False)))


def _examples(failing: DataFrame, rule: Rule) -> DataFrame:
    """Return the first rows in the order of their keys; only of these the shown columns are made."""
    key = LAYOUTS[rule.kind].key
    first = failing.orderBy(SO_BEFORE, *key).limit(MOST_EXAMPLES)
    return first.select(
        F.lit(rule.id).alias("rule"),
        _as_json(key).alias("key"),
        _as_json(rule.shows.split(", ") if rule.shows else ()).alias("shown"),
        SO_BEFORE,
        F.monotonically_increasing_id().alias("place"),
    )


def _as_json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*map(F.expr, columns)), {"ignoreNullFields": "false"}) if columns else F.lit("{}")
