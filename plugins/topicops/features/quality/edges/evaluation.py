"""Data quality on Spark with Great Expectations: may the inputs be trusted, and is the result healthy.

The rules are data (``model/runs/quality_rules.py``). All rows of a suite are in one frame: each kind has columns of its
own, and nulls in the columns of other kinds. One Spark job counts the rows, and one more the failures of all rules. For
rules that fail, two more jobs name the first rows, and count those that failed before the changes too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from topicops.edges.extras import require_extra

require_extra("quality")
# At import it logs more than two hundred INFO lines, which would fill every task's log.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

import great_expectations as gx  # noqa: E402
from great_expectations.core import ExpectationSuite  # noqa: E402
from great_expectations.core.expectation_validation_result import ExpectationValidationResult  # noqa: E402
from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: E402
from great_expectations.exceptions.exceptions import GreatExpectationsError  # noqa: E402
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine  # noqa: E402
from great_expectations.expectations.expectation import ColumnMapExpectation  # noqa: E402
from great_expectations.expectations.metadata_types import FailureSeverity  # noqa: E402
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (  # noqa: E402
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (  # noqa: E402
    ColumnMapMetricProvider,
)
from great_expectations.validator.validator import ValidationDependencies  # noqa: E402

from topicops.features.quality.edges.frames import Frames, rows_frame  # noqa: E402
from topicops.features.quality.rows import LAYOUTS, RowKind  # noqa: E402
from topicops.features.quality.rules import Rule, rules_of  # noqa: E402
from topicops.features.spark.edges.session import are_few, arrow_frame, arrow_rows, planned_for, spark_errors  # noqa: E402
from topicops.model.errors import TopicopsError  # noqa: E402
from topicops.model.runs.results import FailingRow, QualityResult, QualitySuite  # noqa: E402

# This module sets a level of its own, and logs each temporary folder.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)

MOST_EXAMPLES = 20
SO_BEFORE = "so_before"


def _is_true(predicate: str) -> Column:
    return F.coalesce(F.expr(predicate), F.lit(False))


class RowCondition(ColumnMapMetricProvider):
    """Great Expectations' metric for every rule: whether a predicate is true for a row."""

    condition_metric_name = "column_values.row_matches"
    condition_value_keys = ("predicate",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, _column: Column, predicate: str, **_: object) -> Column:  # noqa: N805 - a class method to be
        return _is_true(predicate)


class ExpectRowsToMatch(ColumnMapExpectation):
    """The predicate, which may read any column, is true for every row in which ``column`` is not null.

    The result has counts and no rows: rows would cost one Spark job for each rule, also for rules that hold.
    """

    predicate: str
    map_metric: ClassVar[str] = "column_values.row_matches"
    success_keys: ClassVar[tuple[str, ...]] = ("predicate", "mostly")

    def get_validation_dependencies(
        self, execution_engine: Any = None, runtime_configuration: Any = None, **_: Any
    ) -> ValidationDependencies:
        metrics = super().get_validation_dependencies(execution_engine, runtime_configuration)
        metrics.remove_metric_configuration(f"{self.map_metric}.unexpected_values")
        return metrics


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

    Raises:
        TopicopsError: Spark or Great Expectations failed; there is no result.
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


def evaluate(frame: DataFrame, rules: Sequence[Rule]) -> tuple[QualityResult, ...]:
    """Have Great Expectations check all rules at once; counts only, in the order of ``rules``."""
    try:
        found = {_rule_id(result): result for result in _validate(frame, rules)}
    except GreatExpectationsError as error:
        raise TopicopsError(f"Great Expectations failed: {error}") from error
    return tuple(_read_result(rule, found[rule.id]) for rule in rules)


def expectation_of(rule: Rule) -> ExpectRowsToMatch:
    return ExpectRowsToMatch(
        column=LAYOUTS[rule.kind].own,
        predicate=rule.holds,
        severity=FailureSeverity(rule.severity),
        description=rule.id.meaning,
        meta={"rule": rule.id, "runbook": rule.id.page},
    )


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
    failing, key = frame.filter(~_is_true(rule.holds)), LAYOUTS[rule.kind].key
    if earlier is None:
        return failing.withColumn(SO_BEFORE, F.lit(False))
    before = earlier.filter(~_is_true(rule.holds))
    if not key:
        return failing.crossJoin(before.agg((F.count(F.lit(1)) > 0).alias(SO_BEFORE)))
    keys = before.select(*key, F.lit(True).alias(SO_BEFORE))
    return failing.join(keys, on=list(key), how="left").withColumn(SO_BEFORE, F.coalesce(SO_BEFORE, F.lit(False)))


def _examples(failing: DataFrame, rule: Rule) -> DataFrame:
    """The first rows in the order of their keys; only of these the shown columns are made."""
    key = LAYOUTS[rule.kind].key
    first = failing.orderBy(SO_BEFORE, *key).limit(MOST_EXAMPLES)
    return first.select(
        F.lit(rule.id).alias("rule"), _as_json(key).alias("key"), _as_json(rule.shows).alias("shown"), SO_BEFORE
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


def _validate(frame: DataFrame, rules: Iterable[Rule]) -> Sequence[ExpectationValidationResult]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    # Caching a million rows costs more than counting them again.
    asset = context.data_sources.add_spark("spark", persist=False).add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
    suite = ExpectationSuite(name="rules", expectations=[expectation_of(rule) for rule in rules])
    return batch.validate(suite, result_format="BASIC").results


def _rule_id(result: ExpectationValidationResult) -> str:
    config = result.expectation_config
    return str(config.meta["rule"]) if config and config.meta else ""


def _read_result(rule: Rule, found: ExpectationValidationResult) -> QualityResult:
    if found.exception_info.get("raised_exception", any(_raised(found.exception_info))):
        raise TopicopsError(
            f"quality rule {rule.id} ({rule.id.meaning}) could not be evaluated: {found.exception_info}"
        )
    return QualityResult(
        rule=rule.id,
        title=rule.id.meaning,
        severity=rule.severity,
        success=bool(found.success),
        rows_checked=int(found.result["element_count"]) - int(found.result["missing_count"]),
        rows_failed=int(found.result["unexpected_count"]),
        runbook=rule.id.page,
    )


def _raised(exception_info: Mapping[str, Any]) -> list[bool]:
    """When some metrics fail, Great Expectations has one entry for each of them."""
    return [bool(entry.get("raised_exception")) for entry in exception_info.values() if isinstance(entry, Mapping)]
