"""The history on a disk: runs that are added, compacted, killed in the middle and read back, and files that are odd."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.planted_history import PlantedHistory, planted_history
from topicops.edges.history.append import append, append_tables
from topicops.edges.history.compaction import compact, is_due, period_of
from topicops.edges.history.files import counted_files
from topicops.edges.history.places import table_folder
from topicops.edges.history.reading import History
from topicops.edges.history.spool import SpooledHistory, spooled
from topicops.model.errors import MissingExtraError
from topicops.model.runs.history import DIFFERENCES, DeltaRow, HistoryEntry, RunRow, Span
from topicops.steps.history.spans import ordered_lanes, spans
from topicops.steps.history.table_rows import RUN_COLUMNS, lane_runs, sighting_columns, sightings

AFTER = date(2027, 1, 1)


def found(home: Path) -> tuple[list[Span], list[str]]:
    """Plain spans of all differences, and the warnings."""
    history = History(home, "prod")
    lanes = ordered_lanes(lane_runs(DIFFERENCES, history.rows("runs", RUN_COLUMNS)))
    rows = history.rows("deltas", sighting_columns(DIFFERENCES))
    every = spans(lanes, sightings(DIFFERENCES, rows))
    return sorted(every, key=lambda span: (*map(str, span.key), span.began.at)), history.warnings


def add(home: Path, history: PlantedHistory) -> None:
    for entry in history.entries:
        append_tables(home, entry)


def as_old(home: Path) -> None:
    """Have the compacted files be so old that their inputs can go."""
    for path in home.rglob("+*.parquet"):
        os.utime(path, (1, 1))


def parquet_files(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*.parquet") if not path.name.startswith("."))


def test_planted_differences_are_found_before_and_after_each_compaction(tmp_path: Path) -> None:
    history = planted_history(30, seed=1, every=timedelta(hours=19))
    add(tmp_path, history)
    assert found(tmp_path) == (history.spans, [])

    in_the_middle = history.entries[-1].recorded_at.date()
    for today in (in_the_middle, AFTER, AFTER + timedelta(days=1)):
        assert compact(tmp_path, today)
        assert found(tmp_path) == (history.spans, [])
        as_old(tmp_path)
    # A file a month and table is left, of the three tables that have rows.
    assert len(parquet_files(tmp_path)) == 3 * len({f"{entry.recorded_at:%Y-%m}" for entry in history.entries})


def test_a_run_that_is_tried_again_counts_as_it_was_recorded_last(tmp_path: Path) -> None:
    history = planted_history(24, seed=2)
    add(tmp_path, history)
    compact(tmp_path, AFTER)
    tried = history.compared[10]
    healed = replace(tried, recorded_at=tried.recorded_at + timedelta(days=40), deltas=())
    append_tables(tmp_path, healed)

    expected = [planted for planted in history.planted if not planted.first <= 10 <= planted.last]
    seen, _ = found(tmp_path)
    assert [span for span in seen if span.began.run == tried.run] == []
    assert len(seen) >= len(expected)
    assert all(span.ended and span.ended.run == tried.run for span in seen if span.last.run == history.compared[9].run)

    as_old(tmp_path)
    compact(tmp_path, AFTER + timedelta(days=1))
    compact(tmp_path, AFTER + timedelta(days=2))
    assert found(tmp_path)[0] == seen


def test_a_second_try_on_the_same_day_replaces_the_file_that_is_compacted_already(tmp_path: Path) -> None:
    [entry, other] = planted_history(2, seed=3).entries
    for each in (entry, other):
        append_tables(tmp_path, replace(each, runs=(RunRow(mode="plan", compared=True),), deltas=(delta("a"),)))
    compact(tmp_path, AFTER)
    again = replace(entry, runs=(RunRow(mode="plan", compared=True),), deltas=(delta("b"),))
    append_tables(tmp_path, replace(again, recorded_at=entry.recorded_at + timedelta(minutes=1)))

    assert {span.key[0] for span in found(tmp_path)[0]} == {"a", "b"}
    assert [span.runs for span in found(tmp_path)[0]] == [1, 1]


def test_a_home_that_was_copied_without_its_times_gives_the_same_answer(tmp_path: Path) -> None:
    history = planted_history(20, seed=4)
    add(tmp_path, history)
    compact(tmp_path, AFTER)
    for path in parquet_files(tmp_path):
        os.utime(path, (5, 5))

    assert found(tmp_path) == (history.spans, [])
    compact(tmp_path, AFTER + timedelta(days=1))
    assert found(tmp_path) == (history.spans, [])


def test_runs_without_pyarrow_wait_in_the_spool_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = planted_history(16, seed=5)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "pyarrow")
        for entry in history.entries:
            append(tmp_path, entry)
    assert parquet_files(tmp_path) == []
    assert found(tmp_path) == (history.spans, [])

    compact(tmp_path, AFTER)
    assert [*tmp_path.rglob("*.json")] == []
    assert found(tmp_path) == (history.spans, [])


def test_an_install_without_pyarrow_answers_from_what_waits_in_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = planted_history(16, seed=5)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "pyarrow")
        for entry in history.entries:
            append(tmp_path, entry)
    waiting, tables = SpooledHistory(tmp_path, "prod"), History(tmp_path, "prod")
    topic = str(history.spans[0].key[0])
    for table, columns in (("runs", RUN_COLUMNS), ("deltas", sighting_columns(DIFFERENCES))):
        assert waiting.rows(table, columns) == tables.rows(table, columns)
    columns = ("run", "recorded_at", "topic", "live")
    assert waiting.rows("deltas", columns, topic=topic) == tables.rows("deltas", columns, topic=topic) != []


def test_tables_that_an_install_without_pyarrow_cannot_read_are_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, planted_history(2, seed=5))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"topicops\[spark\]"):
        SpooledHistory(tmp_path, "prod").rows("runs", RUN_COLUMNS)


def test_files_that_are_damaged_foreign_or_of_a_later_format_are_named_and_left_out(tmp_path: Path) -> None:
    history = planted_history(12, seed=6)
    add(tmp_path, history)
    expected, _ = found(tmp_path)
    folder = table_folder(tmp_path, "deltas", "prod") / "day=2026-09-20"
    later = pa.schema([("run", pa.string())], metadata={"topicops.history.format_version": "2.0"})
    pq.write_table(pa.table({"run": ["x"]}).cast(later), folder / "later.parquet")
    pq.write_table(pa.table({"run": ["x"]}), folder / "foreign.parquet")
    (folder / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    (folder / "notes.txt").write_text("not ours")
    (folder / ".topicops-0123").write_bytes(b"half a file of a killed writer")

    seen, warnings = found(tmp_path)

    assert seen == expected
    assert sorted(Path(warning.partition(":")[0]).name for warning in warnings) == [
        "foreign.parquet",
        "later.parquet",
        "torn.parquet",
    ]
    compact(tmp_path, AFTER)
    as_old(tmp_path)
    compact(tmp_path, AFTER + timedelta(days=1))
    assert found(tmp_path) == (expected, warnings), "a compaction left them where they were"


def test_a_file_whose_pages_are_damaged_is_named(tmp_path: Path) -> None:
    history = planted_history(8, seed=7)
    add(tmp_path, history)
    path = next(path for path in parquet_files(table_folder(tmp_path, "deltas", "prod")))
    content = bytearray(path.read_bytes())
    content[60:140] = bytes(80)
    path.write_bytes(content)

    _, warnings = found(tmp_path)

    assert [warning.partition(":")[0] for warning in warnings] == [str(path)]


def test_a_damaged_file_in_the_spool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = planted_history(10, seed=8)
    add(tmp_path, history)
    path = tmp_path / "history" / "spool" / "environment=prod" / "cli%2Fx.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"environment": "prod", ')

    assert found(tmp_path) == (history.spans, [f"{path}: left out: Input data was truncated; move it away"])
    assert compact(tmp_path, AFTER)
    assert path.exists()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"topics": 2**70}, id="a number of no width"),
        pytest.param({"topics": 2**63}, id="a number that JSON has and no column"),
        pytest.param({"read_at": "0001-01-01T00:00:00+14:00"}, id="a time before all calendars"),
        pytest.param({"read_at": "2026-05-01T00:00:00"}, id="a time without a zone"),
    ],
)
def test_a_value_that_no_table_holds_costs_its_own_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    history = planted_history(10, seed=8)
    add(tmp_path, history)
    [entry] = planted_history(1, seed=9).entries
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "pyarrow")
        append(tmp_path, entry)
    [path] = tmp_path.rglob("spool/*/*.json")
    content = json.loads(path.read_text())
    content["runs"][0] |= change
    path.write_text(json.dumps(content))

    spans, [warning] = found(tmp_path)
    assert spans == history.spans
    assert warning.startswith(f"{path}: left out: ")
    assert compact(tmp_path, AFTER)
    seen: list[str] = []
    assert list(spooled(tmp_path, "prod", seen.append)) == []
    assert seen == [warning]
    assert path.exists()


# ---- kills ----


def in_child(work: Callable[[], object]) -> int:
    """Run it in a process of its own, which shares nothing; gives the signal that ended the process, or 0."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def killed_at(number: int) -> None:
    """Kill this process right before its n-th operation that changes a folder: a file made, renamed or removed."""
    left = number

    def operation(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir") or (event == "open" and _makes(arguments)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(operation)


def _makes(arguments: Sequence[object]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & os.O_CREAT)


@pytest.mark.parametrize(
    "stride",
    [pytest.param(1, marks=pytest.mark.soak, id="each step"), pytest.param(6, id="each sixth step")],
)
def test_a_compaction_that_is_killed_before_any_of_its_steps_changes_no_answer(tmp_path: Path, stride: int) -> None:
    history = planted_history(24, seed=9, every=timedelta(hours=29))
    for entry in history.entries[:16]:
        append_tables(tmp_path, entry)
    compact(tmp_path, history.entries[16].recorded_at.date())
    as_old(tmp_path)
    for entry in history.entries[16:]:
        append_tables(tmp_path, entry)

    def one_compaction(number: int) -> None:
        killed_at(number)
        compact(tmp_path, AFTER + timedelta(days=number))

    number = 1
    while in_child(partial(one_compaction, number)) == signal.SIGKILL:
        assert found(tmp_path) == (history.spans, []), f"killed before step {number}"
        if number // stride % 3 == 0:
            as_old(tmp_path)
        number += stride
    assert number > 20
    assert found(tmp_path) == (history.spans, [])
    as_old(tmp_path)
    compact(tmp_path, AFTER + timedelta(days=500))
    assert found(tmp_path) == (history.spans, [])
    assert [*tmp_path.rglob(".topicops-*")] == [] or all(
        path.stat().st_mtime > time.time() - 3600 for path in tmp_path.rglob(".topicops-*")
    )


@pytest.mark.parametrize(
    "runs", [pytest.param(200, marks=pytest.mark.soak, id="200 runs"), pytest.param(24, id="24 runs")]
)
def test_four_writers_with_kills_lose_no_run_and_leave_no_torn_file(tmp_path: Path, runs: int) -> None:
    history = planted_history(runs, seed=10)
    chance = random.Random(10)

    def writer(number: int) -> None:
        for entry in history.entries[number::4]:
            # A killed try is tried again, as Airflow does it.
            while in_child(partial(killed_or_not, entry, chance.choice((0, 0, 0, 1, 2, 3, 5, 8)))):
                pass

    def killed_or_not(entry: HistoryEntry, step: int) -> None:
        if step:
            killed_at(step)
        append_tables(tmp_path, entry)
        if entry.recorded_at.hour == 3:
            compact(tmp_path, entry.recorded_at.date())

    writers = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            chance.seed(number)
            status = 1
            try:
                writer(number)
                status = 0
            finally:
                os._exit(status)
        writers.append(child)
    assert [os.waitpid(child, 0)[1] for child in writers] == [0, 0, 0, 0]

    assert found(tmp_path) == (history.spans, [])
    for path in parquet_files(tmp_path):
        pq.read_table(path, partitioning=None)


# ---- compaction ----


@pytest.mark.parametrize(
    ("day", "period"),
    [
        pytest.param("2026-10-31", "2026-10", id="a month that is over"),
        pytest.param("2026-11-21", "2026-11-21", id="a day that is over"),
        pytest.param("2026-11-22", None, id="today"),
        pytest.param("2026-11-23", None, id="a day of another time zone"),
        pytest.param("2025-11-22", "2025-11", id="the same month of another year"),
    ],
)
def test_files_of_a_month_become_one_once_it_is_over_and_those_of_a_day_before(day: str, period: str | None) -> None:
    assert period_of(day, date(2026, 11, 22)) == period


def test_a_compaction_is_due_once_a_day_and_goes_on_where_time_ran_out(tmp_path: Path) -> None:
    add(tmp_path, planted_history(12, seed=11))
    assert is_due(tmp_path, AFTER)

    files, asked = len(parquet_files(tmp_path)), iter([False, True, True])
    assert not compact(tmp_path, AFTER, is_late=lambda: next(asked))
    assert len(parquet_files(tmp_path)) == files + 1
    assert is_due(tmp_path, AFTER)

    assert compact(tmp_path, AFTER)
    assert not is_due(tmp_path, AFTER)
    assert is_due(tmp_path, AFTER + timedelta(days=1))


def test_a_compaction_does_nothing_beside_another_one(tmp_path: Path) -> None:
    import fcntl

    history = planted_history(6, seed=12)
    add(tmp_path, history)
    before = parquet_files(tmp_path)
    with (tmp_path / "history" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not compact(tmp_path, AFTER)
    assert parquet_files(tmp_path) == before


def test_inputs_stay_for_an_hour_because_a_reader_may_have_listed_them(tmp_path: Path) -> None:
    add(tmp_path, planted_history(8, seed=13))
    before = parquet_files(tmp_path)
    compact(tmp_path, AFTER)
    compact(tmp_path, AFTER + timedelta(days=1))
    assert set(before) < set(parquet_files(tmp_path))

    covered = counted_files(table_folder(tmp_path, "runs", "prod")).covered
    assert sum(map(len, covered.values())) == 8


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    from topicops.model.errors import ArtifactError

    (tmp_path / "history").write_text("not a folder")
    [entry] = planted_history(1, seed=14).entries
    with pytest.raises(ArtifactError, match=r"environment=prod.*cannot be written"):
        append_tables(tmp_path, entry)


def delta(topic: str) -> DeltaRow:
    return DeltaRow(topic=topic, topic_class="different", field="partitions", desired="6", live="12")


def test_rows_read_back_as_they_were_added(tmp_path: Path) -> None:
    at = datetime(2026, 11, 22, 9, 30, 1, 123456, tzinfo=UTC)
    row = RunRow(mode="apply", read_at=at, commit="c", compared=True, topics=3, different=1)
    entry = HistoryEntry(environment="prod", run="cli/ü: x", recorded_at=at, runs=(row,), deltas=(delta("t"),))
    append_tables(tmp_path, entry)

    history = History(tmp_path, "prod")
    columns = ("run", "recorded_at", "mode", "read_at", "commit", "compared", "topics", "different", "missing")
    assert history.rows("runs", columns) == [("cli/ü: x", at, "apply", at, "c", True, 3, 1, None)]
    assert history.rows("deltas", ("topic", "field", "owner"), topic="t") == [("t", "partitions", None)]
    assert history.rows("deltas", ("topic",), topic="other") == []
    assert history.rows("outcomes", ("topic",)) == []
