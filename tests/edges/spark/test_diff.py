from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from fixtures.diff_worlds import RANDOM_WORLDS, all_worlds, deltas_on_spark, desired_row, live_row, plain_deltas
from fixtures.spark_rows import diff_of_rows
from topicops.edges.tables.schemas import DESIRED, TOPICS
from topicops.model.errors import DiffError
from topicops.model.plans.delta import DesiredRow, Field, LiveRow, TopicClass
from topicops.steps.planning.diff import check_conserved

FEW = 40
"""Topics of each random world; with all of them the comparison belongs to the long tests."""


@contextmanager
def adaptive(spark: SparkSession, word: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", word)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", before or "false")


@pytest.mark.parametrize("word", ["false", "true"])
def test_spark_and_plain_python_find_the_same_deltas_of_many_worlds_in_one_frame(
    spark: SparkSession, word: str
) -> None:
    worlds = all_worlds(FEW)
    assert len(worlds) > RANDOM_WORLDS
    with adaptive(spark, word):
        assert deltas_on_spark(spark, worlds) == plain_deltas(worlds)


def test_a_topic_that_one_world_of_many_has_twice_is_refused(spark: SparkSession) -> None:
    worlds = {"good": ([desired_row("orders")], [live_row("orders")]), "bad": ([desired_row("orders")] * 2, [])}
    with pytest.raises(DiffError, match="1 distinct topics were compared and 2 came back"):
        deltas_on_spark(spark, worlds)


CASES: dict[str, tuple[DesiredRow | None, LiveRow | None, TopicClass, set[Field]]] = {
    "same": (desired_row("t"), live_row("t"), TopicClass.SAME, set()),
    "missing": (desired_row("t"), None, TopicClass.MISSING, set()),
    "unmanaged": (None, live_row("t"), TopicClass.UNMANAGED, set()),
    "partitions": (desired_row("t", partitions=4), live_row("t"), TopicClass.DIFFERENT, {"partitions"}),
    "uneven-factor": (
        desired_row("t"), live_row("t", replication_factor_max=3), TopicClass.DIFFERENT, {"replication_factor"},
    ),
    "by-hand-same": (desired_row("t", assignment_digest="a"), live_row("t"), TopicClass.SAME, set()),
    "by-hand-other": (desired_row("t", assignment_digest="b"), live_row("t"), TopicClass.DIFFERENT, {"assignment"}),
    "configs": (desired_row("t", configs='{"a":"1"}'), live_row("t"), TopicClass.DIFFERENT, {"configs"}),
    "everything": (
        desired_row("t", partitions=9, replication_factor=3, assignment_digest="b", configs="{1}"), live_row("t"),
        TopicClass.DIFFERENT, {"partitions", "replication_factor", "assignment", "configs"},
    ),
    "tombstoned": (desired_row("t", "absent", partitions=0), live_row("t"), TopicClass.TOMBSTONED, set()),
    "retired": (desired_row("t", "absent"), None, TopicClass.RETIRED, set()),
    "paused-live": (desired_row("t", "paused", partitions=9), live_row("t"), TopicClass.PAUSED, set()),
    "paused-gone": (desired_row("t", "paused"), None, TopicClass.PAUSED, set()),
}  # fmt: skip


def test_each_class_and_each_field_is_told_apart(spark: SparkSession) -> None:
    desired = [row._replace(topic=case) for case, (row, *_) in CASES.items() if row]
    live = [row._replace(topic=case) for case, (_, row, *_) in CASES.items() if row]
    delta = diff_of_rows(spark, desired, live)
    silent = (TopicClass.SAME, TopicClass.RETIRED)
    assert [(topic.topic, topic.topic_class, topic.changed) for topic in delta.topics] == sorted(
        (case, topic_class, changed)
        for case, (_, _, topic_class, changed) in CASES.items()
        if topic_class not in silent
    )
    assert dict(delta.counts) == {
        topic_class: sum(found is topic_class for _, _, found, _ in CASES.values()) for topic_class in TopicClass
    }


def test_two_empty_sides_have_a_count_of_nought_for_each_class(spark: SparkSession) -> None:
    delta = diff_of_rows(spark, [], [])
    assert delta.topics == ()
    assert dict(delta.counts) == dict.fromkeys(TopicClass, 0)


@pytest.mark.parametrize("side", ["desired", "live"])
def test_a_key_that_stands_twice_is_refused(spark: SparkSession, side: str) -> None:
    desired = [desired_row("orders")] * (2 if side == "desired" else 1)
    live = [live_row("orders")] * (2 if side == "live" else 1)
    delta = diff_of_rows(spark, desired, live)
    with pytest.raises(DiffError, match="1 distinct topics were compared and 2 came back"):
        check_conserved(delta, ["orders"], ["orders"])


def test_the_tables_have_the_columns_of_the_rows() -> None:
    assert set(DesiredRow._fields) < set(DESIRED.names)
    assert set(LiveRow._fields) < set(TOPICS.names)
