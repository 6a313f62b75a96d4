"""The file of the history: lines that are added at once, torn, damaged or of another format."""

from __future__ import annotations

import json
import os
import random
from itertools import count
from pathlib import Path

import pytest

from edges.home.test_audit_log_crashes import STEPS, ends
from features.ask.history.test_spans import run, saw, wrong
from topicops.features.ask.history.file import append, history_path, read_history
from topicops.features.ask.history.lines import spans_of
from topicops.features.ask.history.recording import with_moves
from topicops.model.errors import ArtifactError, UsageError


def add(home: Path, number: int) -> None:
    line = run(number)
    append(home, "prod", lambda before: with_moves(line, saw(wrong(f"topic-{number // 3}")), before))


def runs(home: Path) -> list[str]:
    return [line.run for line in read_history(home, "prod")[0]]


def test_lines_read_back_as_they_were_added(tmp_path: Path) -> None:
    line = run(0, run="cli/ü: x\n", opened=(wrong("t"),), commit=None)
    append(tmp_path, "prod", lambda before: line)
    append(tmp_path, "prod", lambda before: run(len(before)))

    assert read_history(tmp_path, "prod") == ([line, run(1)], [])


@pytest.mark.parametrize("when", STEPS)
def test_a_crash_at_each_step_of_an_append_loses_no_line_and_leaves_no_damage(tmp_path: Path, when: str) -> None:
    for number in count(1):
        home = tmp_path / str(number)
        add(home, 0)
        status = ends(lambda home=home: add(home, 1), number, when)  # type: ignore[misc]
        assert runs(home)[:1] == ["dag/0"]
        add(home, 2)
        lines, left_out = read_history(home, "prod")
        assert left_out == []
        assert [line.run for line in lines] in (["dag/0", "dag/2"], ["dag/0", "dag/1", "dag/2"])
        if status == 0:
            assert number > 1, "the steps were not counted"
            return


@pytest.mark.parametrize("lines", [24, pytest.param(200, marks=pytest.mark.soak)])
def test_four_writers_with_kills_lose_no_run_and_agree_on_what_is_open(tmp_path: Path, lines: int) -> None:
    def writer(first: int) -> None:
        chance = random.Random(first)
        for number in range(first, lines, 4):
            # A killed try is tried again, as Airflow does it.
            while ends(lambda number=number: add(tmp_path, number), chance.choice((0, 0, 1, 2, 3)), "half"):  # type: ignore[misc]
                pass

    writers = []
    for first in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                writer(first)
                status = 0
            finally:
                os._exit(status)
        writers.append(child)
    assert [os.waitpid(child, 0)[1] for child in writers] == [0, 0, 0, 0]

    found, left_out = read_history(tmp_path, "prod")
    assert ({line.run for line in found}, left_out) == ({f"dag/{number}" for number in range(lines)}, [])
    for place, line in enumerate(found):
        is_open = {span.what for span in spans_of(found[:place]).open.values()}
        assert not is_open.intersection(line.opened)
        assert is_open.issuperset(line.closed)


def test_a_torn_last_line_is_left_out_with_a_word_and_removed_by_the_next_run(tmp_path: Path) -> None:
    add(tmp_path, 0)
    path = history_path(tmp_path, "prod")
    with path.open("ab") as file:
        file.write(b'{"environment":"prod","run":"dag/1')

    lines, left_out = read_history(tmp_path, "prod")
    assert ([line.run for line in lines], left_out) == (["dag/0"], [f"{path}:2: left out: Input data was truncated"])

    add(tmp_path, 2)
    assert (runs(tmp_path), read_history(tmp_path, "prod")[1]) == (["dag/0", "dag/2"], [])


def test_a_last_line_that_lacks_only_its_end_stays(tmp_path: Path) -> None:
    add(tmp_path, 0)
    path = history_path(tmp_path, "prod")
    path.write_bytes(path.read_bytes().rstrip())
    assert runs(tmp_path) == ["dag/0"]
    add(tmp_path, 1)
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == ["dag/0", "dag/1"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"format_version": "2.0"}, id="a later format"),
        pytest.param({"read_at": "0001-01-01T00:00:00+14:00"}, id="a time before all calendars"),
        pytest.param({"recorded_at": "2026-05-01T00:00:00"}, id="a time without a zone"),
        pytest.param({"opened": [{"kind": "else"}]}, id="an unknown trouble"),
        pytest.param({"rules": None}, id="no rules"),
    ],
)
def test_a_line_that_cannot_be_read_costs_itself_alone(tmp_path: Path, change: dict[str, object]) -> None:
    for number in range(3):
        add(tmp_path, number)
    path = history_path(tmp_path, "prod")
    first, second, third = path.read_text().splitlines()
    path.write_text("\n".join([first, json.dumps(json.loads(second) | change), third, "no line", ""]))

    lines, left_out = read_history(tmp_path, "prod")

    assert [line.run for line in lines] == ["dag/0", "dag/2"]
    assert [text.partition(": left out: ")[0] for text in left_out] == [f"{path}:2", f"{path}:4"]
    add(tmp_path, 3)
    assert runs(tmp_path) == ["dag/0", "dag/2", "dag/3"]


def test_owners_of_a_line_that_counted_only_their_topics_are_still_read(tmp_path: Path) -> None:
    add(tmp_path, 0)
    path = history_path(tmp_path, "prod")
    owner = {"owner": "billing", "domain": "", "missing": 1, "different": 0, "tombstoned": 0}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"owners": [owner]}))

    [line], left_out = read_history(tmp_path, "prod")

    assert not left_out
    assert (line.owners[0].missing, line.owners[0].partitions, line.unhealthy) == (1, None, None)


def test_fields_of_a_later_minor_version_are_ignored(tmp_path: Path) -> None:
    add(tmp_path, 0)
    path = history_path(tmp_path, "prod")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": "1.7", "novelty": 1}))
    assert runs(tmp_path) == ["dag/0"]


def test_a_disk_that_refuses_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("not a folder")
    with pytest.raises(ArtifactError, match=r"prod\.jsonl: cannot be written"):
        add(tmp_path, 0)
    with pytest.raises(ArtifactError, match=r"prod\.jsonl: cannot be read"):
        read_history(tmp_path, "prod")


def test_an_environment_without_history_is_an_error_that_names_those_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no history of test; no run of this TOPICOPS_HOME has left one"):
        read_history(tmp_path, "test")
    add(tmp_path, 0)
    with pytest.raises(UsageError, match="no history of test; there is one of prod"):
        read_history(tmp_path, "test")
