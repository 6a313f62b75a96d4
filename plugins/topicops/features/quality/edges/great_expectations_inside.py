"""Great Expectations counts the rows that break each rule: by its inner parts, which no other module uses.

It promises to keep few of them. A test names the release in which they were checked; the other tests of this module
evaluate each rule on Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

# ruff: noqa: E402 - at import it logs more than two hundred INFO lines, which would fill every task's log
logging.getLogger("great_expectations").setLevel(logging.WARNING)

import great_expectations as gx
from great_expectations.core import ExpectationSuite
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.exceptions.exceptions import GreatExpectationsError
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)
from great_expectations.expectations.metrics.map_metric_provider.column_map_metric_provider import (
    ColumnMapMetricProvider,
)
from great_expectations.validator.validator import ValidationDependencies

from topicops.features.quality.rules import LAYOUTS, Rule
from topicops.model.errors import TopicopsError
from topicops.model.runs.results import QualityResult

# This module sets a level of its own, and logs each temporary folder.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)


def is_true(predicate: str) -> Column:
    return F.coalesce(F.expr(predicate), F.lit(False))


class RowCondition(ColumnMapMetricProvider):
    """Great Expectations' metric for every rule: whether a predicate is true for a row."""

    condition_metric_name = "column_values.row_matches"
    condition_value_keys = ("predicate",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, _column: Column, predicate: str, **_: object) -> Column:  # noqa: N805 - a class method to be
        return is_true(predicate)


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


def evaluate(frame: DataFrame, rules: Sequence[Rule]) -> tuple[QualityResult, ...]:
    """Have Great Expectations check all rules at once; counts only, in the order of ``rules``."""
    try:
        results = _validate(frame, rules)
    except GreatExpectationsError as error:
        raise TopicopsError(f"Great Expectations failed: {error}") from error
    found = {config.meta["rule"]: result for result in results if (config := result.expectation_config) and config.meta}
    return tuple(_read_result(rule, found[rule.id]) for rule in rules)


def expectation_of(rule: Rule) -> ExpectRowsToMatch:
    return ExpectRowsToMatch(
        column=LAYOUTS[rule.kind].own,
        predicate=rule.holds,
        severity=FailureSeverity(rule.severity),
        description=rule.id.meaning,
        meta={"rule": rule.id, "runbook": rule.id.page},
    )


def _validate(frame: DataFrame, rules: Iterable[Rule]) -> Sequence[ExpectationValidationResult]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    # Caching a million rows costs more than counting them again.
    asset = context.data_sources.add_spark("spark", persist=False).add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": frame})
    suite = ExpectationSuite(name="rules", expectations=[expectation_of(rule) for rule in rules])
    return batch.validate(suite, result_format="BASIC").results


def _read_result(rule: Rule, found: ExpectationValidationResult) -> QualityResult:
    # When some metrics fail, Great Expectations has one entry for each of them.
    parts = (entry for entry in found.exception_info.values() if isinstance(entry, Mapping))
    if found.exception_info.get("raised_exception", any(part.get("raised_exception") for part in parts)):
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
