import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from fixtures.spark_rows import diff_of_rows
from topicops.edges.tables.schemas import DESIRED, TOPICS
from topicops.model.errors import DiffError
from topicops.model.plans.delta import DesiredRow, Field, LiveRow, TopicClass
from topicops.steps.planning.diff import check_conserved, diff

TOPICS_PER_WORLD = 200
World = tuple[list[DesiredRow], list[LiveRow]]


def desired_row(topic: str, lifecycle: str = "present", **fields: object) -> DesiredRow:
    row = DesiredRow(topic, lifecycle, partitions=3, replication_factor=2, assignment_digest=None, configs="{}")
    return row._replace(**fields)


def live_row(topic: str, **fields: object) -> LiveRow:
    row = LiveRow(
        topic, partitions=3, replication_factor_min=2, replication_factor_max=2, assignment_digest="a", configs="{}"
    )
    return row._replace(**fields)


def random_world(seed: int) -> World:
    """Many topics, few values: equal and different fields, and topics of one side only, come about by chance."""
    chance = random.Random(seed)
    desired, live = [], []
    for number in range(TOPICS_PER_WORLD):
        topic = chance.choice(("orders", "Ünicode", "a.b", "A-b")) + f".{number}"
        side = chance.choice(("desired", "live", "both", "both", "both", "both"))
        if side != "live":
            lifecycle = chance.choice(("present", "present", "present", "present", "absent", "paused"))
            desired.append(
                desired_row(
                    topic,
                    lifecycle,
                    partitions=chance.randint(2, 3),
                    replication_factor=chance.randint(1, 2),
                    assignment_digest=chance.choice((None, None, "a", "b")),
                    configs=chance.choice(("{}", '{"retention.ms":"1"}')),
                )
            )
        if side != "desired":
            smallest = chance.randint(1, 2)
            live.append(
                live_row(
                    topic,
                    partitions=chance.randint(2, 3),
                    replication_factor_min=smallest,
                    replication_factor_max=smallest + (chance.random() < 0.2),
                    assignment_digest=chance.choice("ab"),
                    configs=chance.choice(("{}", '{"retention.ms":"1"}')),
                )
            )
    chance.shuffle(desired)
    chance.shuffle(live)
    return desired, live


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(world=st.integers(min_value=0, max_value=2**32).map(random_world))
def test_spark_and_plain_python_find_the_same_delta_on_random_worlds(spark: SparkSession, world: World) -> None:
    desired, live = world
    assert diff_of_rows(spark, desired, live) == diff(desired, live)


def test_the_order_of_the_rows_does_not_matter(spark: SparkSession) -> None:
    desired, live = random_world(1)
    assert diff_of_rows(spark, desired[::-1], live[::-1]) == diff_of_rows(spark, desired, live)


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
