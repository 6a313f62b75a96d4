"""Conditions of quality rules: what a rule may say, and that nothing else reaches Spark."""

from __future__ import annotations

from topicops.model.errors import UsageError
from topicops.model.specs.environment import RowLevel
from topicops.steps.specs.conditions import LONGEST, read_condition

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
    "partitions >": "no condition: Required keyword",
    "": "not one condition",
    "true; DROP TABLE topics": "not one condition",
    "(SELECT count(1)) = 1": "subquery is not one of the parts",
    "topic IN (values ('a'))": "values is not",
    "partitions > ?": "placeholder is not",
    "concat_ws(',', *) = ''": "star is not",
    "ai_generate('x') = ''": "aigenerate is not",
    "reflect('java.lang.System', 'exit', 1) = ''": "the function reflect is not",
    "java_method('java.lang.System', 'exit', 1) = ''": "the function java_method is not",
    "arraysize(configs) > 1": "the function arraysize is not",
    "db.`pmod`(partitions, 2) = 0": "dot is not",
    "partition > 1": "no column partition; it has topic, is_managed",
    "partitions + 1": "of type INT",
    "is_managed AND topic": "topic is of type STRING",
    "cast(topic AS json) IS NULL": "the type JSON is not",
    "topic = 'it''s'": "write a quote in a text as",
    "map(topic) USING 'ls'": "no condition: IndexError",
    "topic <> '" + "x" * (LONGEST - 10) + "'": "2,001 characters",
    "(" * 900 + "is_managed" + ")" * 900: "no condition: RecursionError",
    "topic" + "[0]" * 200 + " = 1": "nested too deep",
}


def test_a_condition_is_read_with_its_columns() -> None:
    for text, level in GOOD.items():
        assert read_condition(text, level).sql, text
    assert read_condition(list(GOOD)[2], "spec").columns == ("owner", "configs")
    hidden = "topic = 'a' /* OR reflect('x') */ OR topic <=> 'it\\'s' -- reflect('y')"
    assert read_condition(hidden, "topic").sql == "topic = 'a' OR topic IS NOT DISTINCT FROM 'it\\'s'"


def test_what_is_no_condition_on_one_row_is_refused_with_its_reason() -> None:
    said = {}
    for text in BAD:
        try:
            read_condition(text, "topic")
        except UsageError as error:
            said[text] = str(error)
    assert {text: said.get(text) for text, words in BAD.items() if words not in said.get(text, "")} == {}
