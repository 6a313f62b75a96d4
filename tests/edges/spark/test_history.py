"""Spans of time by Spark: as they were planted, and as the plain meaning has them."""

from __future__ import annotations

import os
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fixtures.planted_history import PlantedHistory, planted_history
from topicops.edges.history.append import append_tables
from topicops.edges.history.compaction import compact
from topicops.edges.history.reading import History
from topicops.edges.spark.history import _numbered, _span, spans, spark_spans
from topicops.edges.spark.session import arrow_frame
from topicops.model.runs.history import DIFFERENCES, FAILING_RULES, LaneRun, Sighting, Span, SpanQuestion
from topicops.steps.history.spans import Lanes, ordered_lanes, span_order
from topicops.steps.history.spans import spans as plain_spans
from topicops.steps.history.table_rows import RUN_COLUMNS, lane_runs, sighting_columns, sightings


def lanes_of(history: History, question: SpanQuestion) -> Lanes:
    return ordered_lanes(lane_runs(question, history.rows("runs", RUN_COLUMNS)))


def plain(history: History, question: SpanQuestion, since: datetime | None = None) -> list[Span]:
    rows = history.rows(question.table, sighting_columns(question))
    return list(plain_spans(lanes_of(history, question), sightings(question, rows), since=since))


def by_spark(
    spark: SparkSession, history: History, question: SpanQuestion, since: datetime | None = None
) -> list[Span]:
    return sorted(spark_spans(spark, history, question, lanes_of(history, question), since=since), key=span_order)


@pytest.fixture(scope="module")
def planted() -> PlantedHistory:
    return planted_history(200, seed=20)


@pytest.fixture(scope="module")
def home(planted: PlantedHistory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 runs: those of the first days are compacted, the others have a file of their own."""
    folder = tmp_path_factory.mktemp("home {with} odd [name]")
    for number, entry in enumerate(planted.entries):
        append_tables(folder, entry)
        if number == 100:
            assert compact(folder, entry.recorded_at.date())
    return folder


def test_drift_planted_over_200_runs_is_found_exactly_by_both_engines(
    spark: SparkSession, planted: PlantedHistory, home: Path
) -> None:
    history = History(home, "prod")

    found = by_spark(spark, history, DIFFERENCES)

    assert sorted(found, key=lambda span: (*map(str, span.key), span.began.at)) == planted.spans
    assert found == plain(history, DIFFERENCES)
    assert len(found) >= 100
    assert history.warnings == []


def test_since_leaves_out_what_ended_before(spark: SparkSession, planted: PlantedHistory, home: Path) -> None:
    history, since = History(home, "prod"), planted.entries[150].recorded_at

    found = by_spark(spark, history, DIFFERENCES, since)

    assert found == plain(history, DIFFERENCES, since)
    assert {*found} == {span for span in planted.spans if span.ended is None or span.ended.at >= since}
    assert 0 < len(found) < len(planted.spans)


def test_failing_rules_are_the_same_by_both_engines(spark: SparkSession, home: Path) -> None:
    history = History(home, "prod")

    found = by_spark(spark, history, FAILING_RULES)

    assert found == plain(history, FAILING_RULES)
    assert {span.lane for span in found} == {"before"}
    assert {span.detail for span in found} == {"3"}


def test_a_compacted_file_whose_pages_are_damaged_is_named_and_the_rest_is_found(
    spark: SparkSession, planted: PlantedHistory, home: Path, tmp_path: Path
) -> None:
    for entry in planted.entries[:12]:
        append_tables(tmp_path, entry)
    compact(tmp_path, date(2027, 1, 1))
    [path] = (tmp_path / "history" / "deltas").rglob("+*.parquet")
    content = bytearray(path.read_bytes())
    content[100:400] = os.urandom(300)
    path.write_bytes(content)
    history, other = History(tmp_path, "prod"), History(tmp_path, "prod")

    assert by_spark(spark, history, DIFFERENCES) == plain(other, DIFFERENCES) == []
    assert [warning.partition(":")[0] for warning in history.warnings] == [str(path)]
    assert history.warnings == other.warnings


Rows = tuple[list[LaneRun], list[Sighting]]


def random_rows(seed: int) -> Rows:
    """Few runs, keys and lanes, tries of runs that replace each other, and sightings of runs that nobody knows."""
    chance = random.Random(seed)
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def at() -> datetime:
        return begin + timedelta(hours=chance.randrange(12))

    names = [f"run {number}" for number in range(chance.randrange(1, 14))]
    runs = [
        LaneRun(chance.choice(("", "before")), chance.choice(names), at(), at(), chance.choice(("c1", None)))
        for _ in range(20)
    ]
    keys = [(f"t{number}", chance.choice(("x", None, ""))) for number in range(3)]
    seen = [
        Sighting(
            lane=chance.choice(("", "before", "after")),
            run=chance.choice([*names, "unknown"]),
            recorded_at=at(),
            key=chance.choice(keys),
            detail=chance.choice(("a", "b", None)),
        )
        for _ in range(chance.randrange(60))
    ]
    return runs, seen


SEEN = pa.schema(
    [
        ("lane", pa.string()),
        ("run", pa.string()),
        ("row_at", pa.timestamp("us", tz="UTC")),
        ("key", pa.list_(pa.string())),
        ("detail", pa.string()),
    ]
)


def test_spans_of_random_rows_are_the_same_by_both_engines(spark: SparkSession) -> None:
    """Many worlds in one frame: the lane's name tells them apart."""
    lanes: dict[str, list[LaneRun]] = {}
    every: list[tuple[object, ...]] = []
    expected: list[Span] = []
    for seed in range(200):
        runs, seen = random_rows(seed)
        own = {f"{seed} {lane}": list(rows) for lane, rows in ordered_lanes(runs).items()}
        moved = [row._replace(lane=f"{seed} {row.lane}") for row in seen]
        since = None
        lanes |= own
        every += moved
        expected += plain_spans(own, moved, since=since)
    columns = list(zip(*every, strict=True))
    arrays = [pa.array([*map(listed, column)], type=field.type) for column, field in zip(columns, SEEN, strict=True)]
    frame = arrow_frame(spark, pa.Table.from_arrays(arrays, schema=SEEN))

    found = spans(arrow_frame(spark, _numbered(lanes, None)), frame).toArrow().to_pylist()

    assert sorted((_span(row, lanes[row["lane"]]) for row in found), key=span_order) == sorted(expected, key=span_order)
    assert len(expected) > 500


def listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
