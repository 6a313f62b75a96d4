"""Data quality on Spark with Great Expectations: may the inputs be trusted, and is the result healthy.

The rules are data (``model/runs/quality_rules.py``). All rows of a suite are in one frame: each kind has columns of its
own, and nulls in the columns of other kinds. One Spark job counts the rows, and one more the failures of all rules. For
rules that fail, further jobs read from the cached frame which rows fail, and whether these failed before the changes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, get_args, get_type_hints

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

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

from topicops.edges.spark.session import arrow_frame, spark_errors  # noqa: E402
from topicops.model.errors import TopicopsError  # noqa: E402
from topicops.model.runs.quality_rows import LAYOUTS, QualityInput, RowKind  # noqa: E402
from topicops.model.runs.quality_rules import Rule, rules_of  # noqa: E402
from topicops.model.runs.results import FailingRow, QualityResult, QualitySuite  # noqa: E402

# This module sets a level of its own, and logs each temporary folder.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)

MOST_EXAMPLES = 20
_ARROW_TYPES: Mapping[object, pa.DataType] = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    tuple[int, ...]: pa.list_(pa.int32()),
}
_SO_BEFORE = "_so_before"
_LITERALS_UP_TO = "spark.sql.execution.arrow.localRelationThreshold"


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
    rows: QualityInput,
    *,
    earlier: Callable[[], QualityInput] | None = None,
) -> tuple[QualityResult, ...]:
    """One result for each rule of the suite, in the order of ``RULES``. A rule without rows holds.

    Args:
        earlier: Gives the rows before the changes; called only when a rule fails. None: they are not known.

    Raises:
        TopicopsError: Spark or Great Expectations failed; there is no result.
    """
    rules = rules_of(suite)
    with spark_errors(f"quality {suite}"):
        frame = quality_frame(spark, suite, rows)
        results = evaluate(frame, rules)
        _check_complete(rules, results, rows)
        failed = [rule for rule, result in zip(rules, results, strict=True) if not result.success]
        if not failed:
            return results
        before = earlier() if earlier else {}
        with _cached(frame):
            named = name_rows(frame, failed, quality_frame(spark, suite, before) if before else None)
        both = zip(rules, results, strict=True)
        return tuple(_with_rows(result, named, is_known=rule.kind in before) for rule, result in both)


@contextmanager
def _cached(frame: DataFrame) -> Iterator[None]:
    """Keep the frame in Spark's cache. For counting alone, caching a million rows costs more than it saves."""
    frame.cache()
    try:
        yield
    finally:
        frame.unpersist()


def quality_frame(spark: SparkSession, suite: QualitySuite, rows: QualityInput) -> DataFrame:
    """All rows of a suite in one frame: each kind fills its own columns and the columns it shares with other kinds."""
    return frame_of(spark, kind_tables(suite, rows))


def kind_tables(suite: QualitySuite, rows: QualityInput) -> tuple[pa.Table, ...]:
    """One table for each kind of the suite, without the columns of other kinds."""
    kinds = dict.fromkeys(rule.kind for rule in rules_of(suite))
    return tuple(_kind_table(kind, rows.get(kind, ())) for kind in kinds)


def frame_of(spark: SparkSession, tables: Sequence[pa.Table]) -> DataFrame:
    """One frame of all tables. The largest goes to Spark alone: adding null columns to a million rows costs much."""
    *small, largest = sorted(tables, key=lambda table: table.num_rows)
    # As one chunk, because Spark stops reading at an empty chunk.
    rest = pa.concat_tables(small, promote_options="default").combine_chunks()
    # As partitions of the data, not as literals of the query, which the optimizer would visit many times.
    spark.conf.set(_LITERALS_UP_TO, "0")
    try:
        return arrow_frame(spark, largest).unionByName(arrow_frame(spark, rest), allowMissingColumns=True)
    finally:
        spark.conf.unset(_LITERALS_UP_TO)


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
        description=rule.title,
        meta={"rule": rule.id, "runbook": rule.runbook},
    )


def name_rows(frame: DataFrame, rules: Sequence[Rule], earlier: DataFrame | None) -> Mapping[str, FailingRows]:
    """The failing rows by rule; rows that did not fail in ``earlier`` come first."""
    failing = _failing_rows(frame, rules).withColumn(_SO_BEFORE, F.lit(None).cast("boolean"))
    if earlier is not None:
        failed_before = _failing_rows(earlier, rules).select("rule", "key", F.lit(True).alias(_SO_BEFORE))
        failing = failing.drop(_SO_BEFORE).join(failed_before, on=["rule", "key"], how="left")
    # Shorter keys first: partition 9 before partition 10.
    order = (F.coalesce(_SO_BEFORE, F.lit(False)), "topic", F.length("key"), "key")
    place = F.row_number().over(Window.partitionBy("rule").orderBy(*order))
    examples = (
        failing.withColumn("place", place).filter(F.col("place") <= MOST_EXAMPLES).orderBy("rule", "place").collect()
    )
    old = failing.groupBy("rule").agg(F.count(_SO_BEFORE).alias("old")).collect() if earlier is not None else []
    counts = {row["rule"]: row["old"] for row in old}
    examples_by_rule = {rule.id: [row for row in examples if row["rule"] == rule.id] for rule in rules}
    return {rule: FailingRows(counts.get(rule, 0), rows) for rule, rows in examples_by_rule.items()}


class FailingRows(NamedTuple):
    """The rows that fail one rule."""

    old: int
    """How many of them failed before the changes too."""
    examples: Sequence[Row]
    """``key``, ``shown``: JSON objects; ``_so_before``: true or null."""


def _failing_rows(frame: DataFrame, rules: Iterable[Rule]) -> DataFrame:
    """One row per rule and row that fails it: ``topic``, ``rule``, ``key``, ``shown``."""
    problems = F.array_compact(F.array(*(_problem(rule) for rule in rules)))
    return frame.select("topic", F.explode(problems).alias("problem")).select("topic", "problem.*")


def _problem(rule: Rule) -> Column:
    layout = LAYOUTS[rule.kind]
    named = F.struct(
        F.lit(rule.id).alias("rule"), _as_json(layout.key).alias("key"), _as_json(rule.shows).alias("shown")
    )
    return F.when(F.col(layout.own).isNotNull() & ~_is_true(rule.holds), named)


def _as_json(columns: Sequence[str]) -> Column:
    return F.to_json(F.struct(*map(F.expr, columns)), {"ignoreNullFields": "false"}) if columns else F.lit("{}")


def _check_complete(rules: Iterable[Rule], results: Iterable[QualityResult], rows: QualityInput) -> None:
    """Raise ``TopicopsError`` when Spark did not check every row: the result would be worthless."""
    for rule, result in zip(rules, results, strict=True):
        sent = len(rows.get(rule.kind, ()))
        if result.rows_checked != sent:
            raise TopicopsError(f"quality rule {rule.id}: Spark checked {result.rows_checked} of {sent} rows")


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
    return FailingRow(row=columns, was_so_before=bool(row[_SO_BEFORE]) if is_known else None)


def _kind_table(kind: RowKind, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    hints = get_type_hints(LAYOUTS[kind].row)
    columns = zip(*rows, strict=True) if rows else ((),) * len(hints)
    arrays = [
        pa.array(list(column), type=_arrow_type(hint)) for column, hint in zip(columns, hints.values(), strict=True)
    ]
    return pa.table(arrays, names=list(hints))


def _arrow_type(hint: object) -> pa.DataType:
    if hint in _ARROW_TYPES:
        return _ARROW_TYPES[hint]
    (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
    return _ARROW_TYPES[inner]


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
        raise TopicopsError(f"quality rule {rule.id} ({rule.title}) could not be evaluated: {found.exception_info}")
    return QualityResult(
        rule=rule.id,
        title=rule.title,
        severity=rule.severity,
        success=bool(found.success),
        rows_checked=int(found.result["element_count"]) - int(found.result["missing_count"]),
        rows_failed=int(found.result["unexpected_count"]),
        runbook=rule.runbook,
    )


def _raised(exception_info: Mapping[str, Any]) -> list[bool]:
    """When some metrics fail, Great Expectations has one entry for each of them."""
    return [bool(entry.get("raised_exception")) for entry in exception_info.values() if isinstance(entry, Mapping)]
