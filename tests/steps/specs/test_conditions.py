"""Conditions of quality rules: what a rule may say, and that nothing else reaches Spark."""

from __future__ import annotations

import pytest

from topicops.model.specs.environment import RowLevel
from topicops.steps.specs.conditions import LONGEST, ConditionError, columns_of, read_condition, spark_sql

GOOD: dict[str, RowLevel] = {
    "is_managed": "topic",
    "NOT is_throttled OR partitions > 3": "topic",
    "owner <> 'payments' OR try_cast(configs['retention.ms'] AS bigint) >= 604800000": "spec",
    "topic RLIKE '^[a-z.]+$' AND substring_index(topic, '.', 1) = domain": "spec",
    "size(isr) >= 2 OR exists(replicas, broker -> broker > 100)": "partition",
    "forall(replicas, broker -> broker < 100)": "partition",
    "led BETWEEN 1 AND preferred": "broker",
    "CASE WHEN Partitions > 3 THEN true ELSE lifecycle IN ('paused', 'absent') END": "spec",
}
BAD: dict[str, str] = {
    "partitions >": "no condition in SQL",
    "": "not one condition",
    "true; DROP TABLE topics": "not one condition",
    "SELECT 1": "not one condition",
    "partitions > 1 AS good": "not one condition",
    "(SELECT count(1)) = 1": "a query",
    "exists(SELECT 1)": "a query",
    "partitions > ?": "a parameter",
    "count(1) > 0": "the function count is not",
    "reflect('java.lang.System', 'exit', 1) = ''": "the function reflect is not",
    "java_method('java.lang.System', 'exit', 1) = ''": "the function java_method is not",
    "is_managed OR raise_error('x')": "the function raise_error is not",
    "ai_generate('x') = ''": "the function aigenerate is not",
    "rand() > 0.5": "the function rand is not",
    "partition > 1": "no column partition; it has topic, is_managed",
    "topic.x = 1": "no column topic.x",
    "partitions + 1": "of type INT",
    "topic": "of type STRING",
    "configs": "of type MAP",
    "(" * 5_000: "5,000 characters",
    "(" * 900 + "is_managed" + ")" * 900: "no condition in SQL: RecursionError",
}


def test_a_condition_is_read_with_its_columns() -> None:
    for text, level in GOOD.items():
        assert read_condition(text, level).sql(dialect="spark"), text
    condition = read_condition(list(GOOD)[2], "spec")
    assert columns_of(condition) == ["owner", "configs"]


def test_what_is_no_condition_on_one_row_is_refused_with_its_reason() -> None:
    said = {}
    for text in BAD:
        try:
            read_condition(text, "topic")
        except ConditionError as error:
            said[text] = str(error)
    assert {text: said.get(text) for text, words in BAD.items() if words not in said.get(text, "")} == {}


def test_spark_gets_what_was_checked_and_no_comment() -> None:
    condition = read_condition("topic = 'a' /* OR reflect('x') */ OR topic <=> 'it\\'s' -- reflect('y')", "topic")
    assert spark_sql(condition) == "topic = 'a' OR topic IS NOT DISTINCT FROM 'it\\'s'"


def test_a_condition_has_a_longest_length() -> None:
    text = f"topic <> '{'x' * (LONGEST - 11)}'"
    read_condition(text, "topic")
    with pytest.raises(ConditionError, match="2,001 characters"):
        read_condition(f"{text} ", "topic")
