"""Data quality on Spark with Great Expectations: may the inputs be trusted, and is the result healthy.

A new rule is one more ``Rule`` in ``RULES``, over columns of ``model/quality_rows.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

# At import it logs one INFO line for each function that it knows: more than two hundred in every task's log.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

import great_expectations as gx  # noqa: E402
from great_expectations.core import ExpectationSuite  # noqa: E402
from great_expectations.core.expectation_validation_result import ExpectationValidationResult  # noqa: E402
from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: E402
from great_expectations.exceptions.exceptions import GreatExpectationsError  # noqa: E402
from great_expectations.expectations.core.expect_column_pair_values_a_to_be_greater_than_b import (  # noqa: E402
    ExpectColumnPairValuesAToBeGreaterThanB,
)
from great_expectations.expectations.core.expect_column_values_to_be_in_set import (  # noqa: E402
    ExpectColumnValuesToBeInSet,
)
from great_expectations.expectations.core.expect_column_values_to_be_unique import (  # noqa: E402
    ExpectColumnValuesToBeUnique,
)
from great_expectations.expectations.expectation import Expectation  # noqa: E402

from topicops.edges.spark_session import arrow_frame, spark_errors  # noqa: E402
from topicops.model.errors import TopicopsError  # noqa: E402
from topicops.model.quality_rows import QualityInput  # noqa: E402
from topicops.model.results import FailingRow, QualityResult  # noqa: E402

Suite = Literal["before", "after"]
Severity = Literal["critical", "warning"]
Frame = Literal["specs", "listed", "world", "partitions", "deletions"]

MOST_EXAMPLES = 20

SPEC_SCHEMA = pa.schema([("topic", pa.string()), ("file", pa.string())])
LISTED_SCHEMA = pa.schema([("topic", pa.string()), ("is_accounted_for", pa.bool_())])
WORLD_SCHEMA = pa.schema([("topics", pa.int64()), ("topics_last_good", pa.int64()), ("topics_at_least", pa.int64())])
PARTITION_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        ("leader_is_live", pa.bool_()),
        ("replicas", pa.int32()),
        ("isr", pa.int32()),
        ("missing_replicas", pa.string()),
        ("min_insync_replicas", pa.int32()),
    ]
)
DELETION_SCHEMA = pa.schema([("topic", pa.string()), ("age_ms", pa.int64()), ("stuck_from_ms", pa.int64())])
SCHEMAS: Mapping[Frame, pa.Schema] = {
    "specs": SPEC_SCHEMA,
    "listed": LISTED_SCHEMA,
    "world": WORLD_SCHEMA,
    "partitions": PARTITION_SCHEMA,
    "deletions": DELETION_SCHEMA,
}
_NAMED_BY: Mapping[Frame, tuple[str, ...]] = {
    "specs": ("topic", "file"),
    "listed": ("topic",),
    "world": ("topics", "topics_last_good", "topics_at_least"),
    "partitions": ("topic", "partition", "leader", "missing_replicas"),
    "deletions": ("topic", "age_ms"),
}
"""The columns by which a failing row is named."""


class ExpectEachTopicOnce(ExpectColumnValuesToBeUnique):
    column: str = "topic"


class ExpectTopicsAccountedFor(ExpectColumnValuesToBeInSet):
    column: str = "is_accounted_for"
    value_set: list[bool] = [True]  # noqa: RUF012 - a field, as Great Expectations wants them


class ExpectWorldNotShrunken(ExpectColumnPairValuesAToBeGreaterThanB):
    column_A: str = "topics"  # noqa: N815
    column_B: str = "topics_at_least"  # noqa: N815
    or_equal: bool = True


class ExpectLiveLeader(ExpectColumnValuesToBeInSet):
    column: str = "leader_is_live"
    value_set: list[bool] = [True]  # noqa: RUF012


class ExpectCompleteIsr(ExpectColumnValuesToBeInSet):
    column: str = "missing_replicas"
    value_set: list[str] = [""]  # noqa: RUF012


class ExpectIsrNotBelowMinimum(ExpectColumnPairValuesAToBeGreaterThanB):
    column_A: str = "isr"  # noqa: N815
    column_B: str = "min_insync_replicas"  # noqa: N815
    or_equal: bool = True


class ExpectDeletionNotStuck(ExpectColumnPairValuesAToBeGreaterThanB):
    column_A: str = "stuck_from_ms"  # noqa: N815
    column_B: str = "age_ms"  # noqa: N815


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that must hold of every row of one frame."""

    id: str
    title: str
    severity: Severity
    """A failed critical rule fails its step; a warning is shown."""
    suite: Suite
    frame: Frame
    expectation: Callable[..., Expectation]

    def to_expectation(self) -> Expectation:
        return self.expectation(meta={"rule": self.id}, severity=self.severity, description=self.title)


RULES = (
    Rule(
        id="Q01",
        title="No topic is described twice",
        severity="critical",
        suite="before",
        frame="specs",
        expectation=ExpectEachTopicOnce,
    ),
    Rule(
        id="Q02",
        title="Every listed topic was decoded or is marked unstable",
        severity="critical",
        suite="before",
        frame="listed",
        expectation=ExpectTopicsAccountedFor,
    ),
    Rule(
        id="Q03",
        title="The snapshot has not shrunk past the limit",
        severity="critical",
        suite="before",
        frame="world",
        expectation=ExpectWorldNotShrunken,
    ),
    Rule(
        id="Q11",
        title="Every partition is led by a live broker",
        severity="critical",
        suite="after",
        frame="partitions",
        expectation=ExpectLiveLeader,
    ),
    Rule(
        id="Q12",
        title="Every ISR is complete",
        severity="warning",
        suite="after",
        frame="partitions",
        expectation=ExpectCompleteIsr,
    ),
    Rule(
        id="Q13",
        title="No ISR is below min.insync.replicas",
        severity="critical",
        suite="after",
        frame="partitions",
        expectation=ExpectIsrNotBelowMinimum,
    ),
    Rule(
        id="Q14",
        title="No deletion is stuck",
        severity="warning",
        suite="after",
        frame="deletions",
        expectation=ExpectDeletionNotStuck,
    ),
)


def check_quality(spark: SparkSession, suite: Suite, rows: QualityInput) -> tuple[QualityResult, ...]:
    """One result for each rule of the suite, in the order of ``RULES``.

    A rule over no row holds. Great Expectations caches the frame it is given.

    Raises:
        TopicopsError: Spark or Great Expectations failed; nothing was concluded.
    """
    rules = [rule for rule in RULES if rule.suite == suite]
    found: dict[str, QualityResult] = {}
    with spark_errors(f"quality {suite}"):
        for frame in dict.fromkeys(rule.frame for rule in rules):
            found |= _check_frame(spark, frame, [rule for rule in rules if rule.frame == frame], rows)
    return tuple(found[rule.id] for rule in rules)


def _check_frame(
    spark: SparkSession, frame: Frame, rules: Sequence[Rule], rows: QualityInput
) -> dict[str, QualityResult]:
    table = quality_table(frame, rows)
    if not table.num_rows:
        return {rule.id: _result(rule, success=True, checked=0, failed=0) for rule in rules}
    dataframe = arrow_frame(spark, table)
    try:
        found = _validate(dataframe, frame, rules)
    except GreatExpectationsError as error:
        raise TopicopsError(f"quality rules over {frame}: Great Expectations failed: {error}") from error
    finally:
        dataframe.unpersist()
    return {rule.id: _read_result(rule, found[rule.id]) for rule in rules}


def quality_table(frame: Frame, rows: QualityInput) -> pa.Table:
    """Lay the rows of one frame out as Arrow columns, by the names in its schema."""
    schema = SCHEMAS[frame]
    columns = {name: [getattr(row, name) for row in getattr(rows, frame)] for name in schema.names}
    return pa.table(columns, schema=schema)


def _validate(dataframe: DataFrame, frame: Frame, rules: Sequence[Rule]) -> dict[str, ExpectationValidationResult]:
    """Ask Great Expectations; by rule, since it orders its results in its own way."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_spark("spark").add_dataframe_asset(frame)
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": dataframe})
    wanted = {
        "result_format": "SUMMARY",
        "unexpected_index_column_names": list(_NAMED_BY[frame]),
        "partial_unexpected_count": MOST_EXAMPLES,
    }
    suite = ExpectationSuite(name=frame, expectations=[rule.to_expectation() for rule in rules])
    results = batch.validate(suite, result_format=wanted).results
    return {_rule_id(result): result for result in results}


def _rule_id(result: ExpectationValidationResult) -> str:
    config = result.expectation_config
    return str(config.meta["rule"]) if config and config.meta else ""


def _read_result(rule: Rule, found: ExpectationValidationResult) -> QualityResult:
    if found.exception_info.get("raised_exception", any(_raised(found.exception_info))):
        raise TopicopsError(f"quality rule {rule.id} ({rule.title}) could not be evaluated: {found.exception_info}")
    details: Mapping[str, Any] = found.result
    examples = details.get("partial_unexpected_index_list") or ()
    return _result(
        rule,
        success=bool(found.success),
        checked=int(details.get("element_count", 0)),
        failed=int(details.get("unexpected_count", 0)),
        examples=tuple(
            FailingRow(row={name: row[name] for name in _NAMED_BY[rule.frame]}) for row in examples[:MOST_EXAMPLES]
        ),
    )


def _raised(exception_info: Mapping[str, Any]) -> list[bool]:
    """Great Expectations nests one entry a metric when it failed to compute some."""
    return [bool(entry.get("raised_exception")) for entry in exception_info.values() if isinstance(entry, Mapping)]


def _result(
    rule: Rule, *, success: bool, checked: int, failed: int, examples: tuple[FailingRow, ...] = ()
) -> QualityResult:
    return QualityResult(
        rule=rule.id,
        title=rule.title,
        severity=rule.severity,
        success=success,
        rows_checked=checked,
        rows_failed=failed,
        examples=examples,
    )
