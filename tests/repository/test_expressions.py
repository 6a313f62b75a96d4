"""No regular expression of the package backtracks: its work grows with the length of a text, and no faster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from typing import Any

import pytest

from fixtures.expressions import Dynamic, Expression, expressions, slow_text
from topicops.model.specs.topic_config import TOPIC_CONFIGS

OF_TABLES = {form.constraint.pattern for config in TOPIC_CONFIGS.values() for form in config.forms} - {None}


@pytest.fixture(scope="module")
def found() -> list[Expression | Dynamic]:
    return list(expressions())


def test_every_expression_is_in_the_source_but_five(found: Sequence[Expression | Dynamic]) -> None:
    assert {one.place.partition(":")[0] for one in found if isinstance(one, Dynamic)} == {
        "edges/kafka/questions/consumer_groups.py",  # from brokers, of few repetitions: `MOST_REPEATS`
        "steps/specs/rules/ownership.py",  # from environment files, for an engine that never backtracks
        "model/specs/config_checks.py",  # from the tables of Kafka's configs: `OF_TABLES`
        "steps/specs/fields.py",  # from the models: `StringConstraints` is in the source
        "steps/specs/rules/names.py",  # made from globs
    }


def test_each_expression_is_linear(found: Sequence[Expression | Dynamic]) -> None:
    fixed = [one for one in found if isinstance(one, Expression)]
    assert len(fixed) > 50
    texts = ((one.place, slow_text(one.pattern, is_searched=one.is_searched)) for one in fixed)
    assert [(place, text) for place, text in texts if text is not None] == []


def test_each_expression_from_a_table_or_a_glob_is_linear() -> None:
    patterns = [*sorted(OF_TABLES), translate("*a*b*"), f"{translate('a*')}|{translate('*.*b')}"]
    assert [pattern for pattern in patterns if slow_text(re.compile(pattern), is_searched=False) is not None] == []


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        pytest.param(r"[0-9]+\.?[0-9]*x", False, id="two repetitions beside each other"),
        pytest.param(r"([0-9]+)+x", False, id="a repetition in a repetition"),
        pytest.param(r"v[0-9]+[0-9a-f]*x", False, id="behind a first character"),
        pytest.param(r"\s*,\s*", True, id="searched, and it begins with a repetition"),
        pytest.param(r"<a [^)]*>", True, id="searched, and its own beginning may follow"),
        pytest.param(rb"[a-z]*[a-z0-9]*!", False, id="of bytes"),
    ],
)
def test_an_expression_that_backtracks_is_found(pattern: str | bytes, is_searched: bool) -> None:
    expression: re.Pattern[Any] = re.compile(pattern)

    assert slow_text(expression, is_searched=is_searched) is not None
