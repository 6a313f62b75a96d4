from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from topicops.edges.gx_quality import MOST_EXAMPLES, RULES, SCHEMAS, check_quality, quality_table
from topicops.model.quality_rows import (
    DeletionRow,
    ListedTopicRow,
    PartitionRow,
    QualityInput,
    SpecRow,
    world_row,
)
from topicops.model.results import QualityResult

HEALTHY_PARTITIONS = tuple(
    PartitionRow(topic, partition, 1, True, 3, 3, "", 2) for topic in ("orders", "payments") for partition in range(4)
)
HEALTHY_BEFORE = QualityInput(
    specs=(SpecRow("orders", "topics/shop/orders.yaml"), SpecRow("payments", "topics/shop/payments.yaml")),
    listed=(ListedTopicRow("orders", True, False), ListedTopicRow("payments", False, True)),
    world=(world_row(90, 100, shrink_percent=10),),
)
HEALTHY_AFTER = QualityInput(partitions=HEALTHY_PARTITIONS, deletions=(DeletionRow("old", 2_000, 300_000),))


def failed(results: tuple[QualityResult, ...]) -> dict[str, list[Mapping[str, object]]]:
    return {result.rule: [example.row for example in result.examples] for result in results if not result.success}


@pytest.mark.parametrize(
    ("suite", "rows", "checked"),
    [
        pytest.param("before", HEALTHY_BEFORE, {"Q01": 2, "Q02": 2, "Q03": 1}, id="before"),
        pytest.param("after", HEALTHY_AFTER, {"Q11": 8, "Q12": 8, "Q13": 8, "Q14": 1}, id="after"),
    ],
)
def test_every_rule_holds_in_a_healthy_world(
    spark: SparkSession, suite: str, rows: QualityInput, checked: dict[str, int]
) -> None:
    results = check_quality(spark, suite, rows)
    assert failed(results) == {}
    assert {result.rule: result.rows_checked for result in results} == checked
    assert [result.rule for result in results] == [rule.id for rule in RULES if rule.suite == suite]
    assert [(result.title, result.severity) for result in results] == [
        (rule.title, rule.severity) for rule in RULES if rule.suite == suite
    ]


def partition(number: int, leader: int, missing: str) -> dict[str, object]:
    return {"topic": "sick", "partition": number, "leader": leader, "missing_replicas": missing}


FAULTS_BEFORE = {
    "Q01": (
        QualityInput(specs=(SpecRow("orders", "a.yaml"), SpecRow("orders", "b.yaml"), SpecRow("payments", "c.yaml"))),
        {"Q01": [{"topic": "orders", "file": "a.yaml"}, {"topic": "orders", "file": "b.yaml"}]},
    ),
    "Q02": (
        QualityInput(listed=(ListedTopicRow("lost", False, False), ListedTopicRow("orders", True, False))),
        {"Q02": [{"topic": "lost"}]},
    ),
    "Q03": (
        QualityInput(world=(world_row(89, 100, shrink_percent=10),)),
        {"Q03": [{"topics": 89, "topics_last_good": 100, "topics_at_least": 90}]},
    ),
}
FAULTS_AFTER = {
    "Q11": (
        QualityInput(partitions=(*HEALTHY_PARTITIONS, PartitionRow("sick", 7, 9, False, 3, 3, "", 2))),
        {"Q11": [partition(7, 9, "")]},
    ),
    "Q12": (
        QualityInput(partitions=(*HEALTHY_PARTITIONS, PartitionRow("sick", 5, 1, True, 3, 2, "3", 2))),
        {"Q12": [partition(5, 1, "3")]},
    ),
    "Q13": (
        QualityInput(partitions=(*HEALTHY_PARTITIONS, PartitionRow("sick", 5, 1, True, 3, 1, "2,3", 2))),
        {"Q12": [partition(5, 1, "2,3")], "Q13": [partition(5, 1, "2,3")]},
    ),
    "Q14": (
        QualityInput(
            deletions=(DeletionRow("old", 300_001, 300_000), DeletionRow("own", 0, 0), DeletionRow("new", 1, 9))
        ),
        {"Q14": [{"topic": "old", "age_ms": 300_001}, {"topic": "own", "age_ms": 0}]},
    ),
}


@pytest.mark.parametrize("rule", FAULTS_BEFORE)
def test_a_fault_in_the_inputs_fails_its_rule_and_names_the_row(spark: SparkSession, rule: str) -> None:
    rows, expected = FAULTS_BEFORE[rule]
    assert failed(check_quality(spark, "before", rows)) == expected


@pytest.mark.parametrize("rule", FAULTS_AFTER)
def test_a_fault_in_the_result_fails_its_rule_and_names_the_row(spark: SparkSession, rule: str) -> None:
    rows, expected = FAULTS_AFTER[rule]
    assert failed(check_quality(spark, "after", rows)) == expected


def test_every_rule_has_a_fault_that_it_finds() -> None:
    assert [rule.id for rule in RULES] == [*FAULTS_BEFORE, *FAULTS_AFTER]


def test_at_most_twenty_rows_are_named_and_all_are_counted(spark: SparkSession) -> None:
    rows = QualityInput(listed=tuple(ListedTopicRow(f"lost.{number}", False, False) for number in range(30)))
    [lost] = [result for result in check_quality(spark, "before", rows) if not result.success]
    assert (lost.rows_failed, lost.rows_checked, len(lost.examples)) == (30, 30, MOST_EXAMPLES)


@pytest.mark.parametrize("suite", ["before", "after"])
def test_a_cluster_without_any_topic_passes(spark: SparkSession, suite: str) -> None:
    rows = QualityInput(world=(world_row(0, None, shrink_percent=10),))
    assert failed(check_quality(spark, suite, rows)) == {}


@pytest.mark.parametrize("frame", SCHEMAS)
def test_every_frame_has_its_columns_even_without_rows(frame: str) -> None:
    assert quality_table(frame, QualityInput()).num_rows == 0
    assert quality_table(frame, QualityInput()).schema == SCHEMAS[frame]
