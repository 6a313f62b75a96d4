"""The questions of the page about the history, in three engines, on 90 days of three environments."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from fakes.builders import owner_counts
from topicops.features.ask.history.export import SCHEMAS, export
from topicops.features.ask.history.file import append
from topicops.features.ask.history.lines import Difference, HistoryLine, PlanCounts, TopicOutcome

pytestmark = pytest.mark.edges
PAGE = Path(__file__).parents[4] / "docs/reference/artifacts.md"
START = datetime(2025, 12, 15, tzinfo=UTC)
"""In 90 days from here two months and a year begin."""
ENVIRONMENTS = ("dev", "prod", "stage")


def runs_of(environment: str, days: int = 90) -> Iterator[HistoryLine]:
    """A run every six hours, the last of a day at 23:30; some are recorded twice, and some count no partitions."""
    place = ENVIRONMENTS.index(environment)
    wrong: list[Difference] = []
    for number in range(days * 4):
        day, quarter = divmod(number, 4)
        at = START + timedelta(days=day, hours=6 * quarter, minutes=30 * (1 + (quarter == 3) * 10))
        sick = (number * (place + 2)) % 7 // 5 * (number % 3 + 1)
        here = [Difference(topic=f"t{number * (place + 3) % 11}", topic_class="missing")] if number % 5 else []
        line = HistoryLine(
            environment=environment,
            run=f"dag/{number}",
            mode="plan",
            recorded_at=at + timedelta(minutes=1),
            read_at=at,
            cluster_id="c" * 22,
            has_looked=True,
            partitions=100 + number,
            owners=(
                owner_counts("billing", topics=9, partitions=100 + number, unhealthy=sick),
                owner_counts("billing", domain="old", topics=1, partitions=number % 4, unhealthy=0),
                *([owner_counts(None, topics=1, partitions=2, unhealthy=0)] if quarter != 3 else []),
            )
            if number % 9
            else (),
            rules={},
            opened=tuple(each for each in here if each not in wrong),
            closed=tuple(each for each in wrong if each not in here),
        )
        wrong = here
        if number % 10 == 3:
            early = replace(line, recorded_at=at, owners=(owner_counts("billing", partitions=7_000, unhealthy=7),))
            yield replace(early, opened=(), closed=())
        yield line


@pytest.fixture(scope="module")
def lines() -> list[HistoryLine]:
    return [line for environment in ENVIRONMENTS for line in runs_of(environment)]


@pytest.fixture(scope="module")
def folder(lines: list[HistoryLine], tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write(home, lines)
    rows, _ = export(home, ENVIRONMENTS, str(home / "exported"))
    assert rows["runs"] == 3 * 90 * 4
    return home / "exported"


def write(home: Path, lines: list[HistoryLine]) -> None:
    for line in lines:
        append(home, line.environment, lambda _, line=line: line)  # type: ignore[misc]


def last_lines(lines: list[HistoryLine]) -> list[HistoryLine]:
    return list({(line.environment, line.run): line for line in lines}.values())


Asked = Callable[[int], Any]


@pytest.fixture(params=["duckdb", "spark", "pandas"])
def asked(request: pytest.FixtureRequest, folder: Path) -> Asked:
    """Return the answer of one engine to a question of the page, by its number: a frame of pandas."""
    blocks = re.findall(r"```(sql|python)\n(.*?)```", PAGE.read_text().partition("### Your own queries")[2], re.DOTALL)
    texts = {
        engine: [text.replace("history/", f"{folder}/") for language, text in blocks[:9] if is_of(language, text)]
        for engine, is_of in (
            ("duckdb", lambda language, _: language == "sql"),
            ("spark", lambda _, text: "spark.read" in text),
            ("pandas", lambda _, text: "pandas.read" in text),
        )
    }[request.param]
    assert len(texts) == 3
    assert all(len(text.splitlines()) <= 3 for text in texts)

    def by_python(text: str) -> Any:
        known: dict[str, Any] = {"pandas": pd, "F": F}
        if request.param == "spark":
            known["spark"] = request.getfixturevalue("spark")
        exec(text, known)
        found = known["found"]
        return found.toPandas() if request.param == "spark" else found.reset_index()

    return lambda number: duckdb.sql(texts[number]).df() if request.param == "duckdb" else by_python(texts[number])


def table(found: Any) -> dict[Any, float]:
    """Return the last column by the others; a day is a date, and null is None."""

    def plain(value: Any) -> Any:
        return value.date() if isinstance(value, datetime) else None if pd.isna(value) else value

    return {
        tuple(plain(value) for value in row[:-1]): float(row[-1]) for row in found.itertuples(index=False, name=None)
    }


def test_which_topics_differed_most_often(lines: list[HistoryLine], asked: Asked) -> None:
    times = Counter(trouble.topic for line in lines for trouble in line.opened if isinstance(trouble, Difference))
    found = table(asked(0))

    assert sorted(found.values()) == sorted(times.values())[-10:]
    assert all(times[topic] == count for (topic,), count in found.items())
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_how_many_partitions_an_owner_has_day_by_day(lines: list[HistoryLine], asked: Asked) -> None:
    last = {(run.environment, run.at.date()): run for run in last_lines(lines) if run.owners}
    counts: Counter[tuple[date, str | None]] = Counter()
    for (_, day), line in last.items():
        for of in line.owners:
            counts[day, of.owner] += of.partitions or 0

    found = table(asked(1))

    assert found == counts
    assert {day for day, _ in found} == {START.date() + timedelta(days=number) for number in range(90)}
    assert max(found.values()) < 3 * 7_000, "a line that a later try replaced counts"


def test_which_environment_was_unhealthy_longest(lines: list[HistoryLine], asked: Asked) -> None:
    seconds: Counter[str] = Counter()
    for environment in ENVIRONMENTS:
        runs = [run for run in last_lines(lines) if run.environment == environment and run.owners]
        for run, after in pairwise(runs):
            is_sick = any(of.unhealthy for of in run.owners)
            seconds[environment] += int((after.at - run.at).total_seconds()) if is_sick else 0

    found = table(asked(2))

    assert {name: pytest.approx(hours) for (name,), hours in found.items()} == {
        name: total / 3_600 for name, total in seconds.items()
    }
    assert [name for (name,) in found] == [name for name, _ in seconds.most_common()]
    assert len(set(seconds.values())) == 3


def test_a_run_s_outcomes_and_numbers_are_in_the_tables(tmp_path: Path) -> None:
    line = next(runs_of("prod"))
    outcome = TopicOutcome(topic="t", action="create", status="done", message="")
    plan = PlanCounts(changes=4, held=3, skipped=2, blocked=1)
    write(tmp_path, [replace(line, outcomes=(outcome,), plan=plan, in_place=1, classes={"missing": 2, "same": 5})])
    to = tmp_path / "out"

    export(tmp_path, ["prod"], to.as_uri())

    tables = {name: pq.read_table(to / f"{name}.parquet").to_pylist() for name in SCHEMAS}
    [run], [found] = tables["runs"], tables["outcomes"]
    assert (found["topic"], found["status"], found["read_at"], found["day"]) == ("t", "done", line.at, START.date())
    assert [run[name] for name in ("changes", "held", "skipped", "blocked", "in_place", "differing")] == [
        4,
        3,
        2,
        1,
        1,
        2,
    ]
    assert (run["unhealthy"], run["lasted_s"], run["cluster_id"]) == (None, None, line.cluster_id)


def test_who_reads_while_the_tables_are_written_has_whole_tables(tmp_path: Path) -> None:
    lines = list(runs_of("prod", days=9))
    write(tmp_path, lines)
    export(tmp_path, ["prod"], str(tmp_path / "out"))
    counts, is_over = Counter[int](), threading.Event()

    def read() -> None:
        while not is_over.is_set():
            with (tmp_path / "out" / "owners.parquet").open("rb") as file:
                counts[pq.read_table(file).num_rows] += 1

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        more = replace(lines[-1], run=f"again/{len(lines)}", owners=(owner_counts("billing", unhealthy=0),))
        lines.append(more)
        write(tmp_path, [more])
        export(tmp_path, ["prod"], str(tmp_path / "out"))
    is_over.set()
    reader.join()

    first = sum(len(run.owners) for run in last_lines(list(runs_of("prod", days=9))))
    assert set(counts) <= {first + number for number in range(6)}
    assert counts
