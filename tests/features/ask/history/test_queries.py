"""The queries of the page of the history, on a history of runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from features.ask.history.test_spans import planted, spans_of
from topicops.features.ask.history.file import append

pytestmark = pytest.mark.edges
PAGE = Path(__file__).parents[4] / "docs/reference/artifacts.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    for line in planted(1)[0]:
        append(folder, "prod", lambda _, line=line: line)  # type: ignore[misc]
    return folder


def answer(query: str, **known: object) -> Any:
    """Return what the example gives that begins with this word."""
    [text] = re.findall(rf"```python\n({query}.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(text, known)
    return known["found"]


def opened() -> dict[str, int]:
    """Return how often each topic began to differ."""
    known = spans_of(planted(1)[0])
    topics = [span.what.topic for span in (*known.ended, *known.open.values())]  # type: ignore[union-attr]
    return {topic: topics.count(topic) for topic in topics}


def test_spark_reads_the_file_as_it_is(spark: SparkSession, home: Path) -> None:
    found = answer("history = spark", spark=spark, home=home)
    assert {row["topic"]: row["count"] for row in found.collect()} == opened()


def test_pandas_reads_the_file_as_it_is(home: Path) -> None:
    assert answer("import pandas", home=home).to_dict() == opened()
