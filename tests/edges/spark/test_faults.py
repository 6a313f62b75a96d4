"""Whatever of Spark dies in the middle: the right answer, or one sentence within seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fixtures.killable import with_tests_on_path
from fixtures.spark_servers import SparkServer, connect_server, master_with_workers

pytestmark = pytest.mark.soak
TIMES = 3
SECONDS = 60.0
"""The longest that anything may take, on a busy machine; Spark's own limits are minutes."""
Line = Mapping[str, Any]


@contextmanager
def diffs(server: SparkServer | str) -> Iterator[subprocess.Popen[str]]:
    where = {"TOPICOPS_SPARK": server} if isinstance(server, str) else server.variables
    process = subprocess.Popen(
        [sys.executable, "-m", "fixtures.spark_faults", str(TIMES)],
        env=with_tests_on_path() | {"SPARK_LOCAL_IP": "127.0.0.1"} | where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def with_fault(server: SparkServer | str, fault: Callable[[Line], object]) -> list[Line]:
    """The lines after the first diff; ``fault`` happens in the second one, and gets the line with the pid of Java."""
    with diffs(server) as process:
        assert process.stdout is not None
        begun, first = (json.loads(process.stdout.readline()) for _ in range(2))
        assert first["same"] is True
        time.sleep(first["seconds"] / 10)
        fault(begun)
        out, err = process.communicate(timeout=5 * SECONDS)
    assert (process.returncode, err) == (0, ""), err[-3000:]
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(line["seconds"] < SECONDS for line in lines if "seconds" in line), lines
    return lines


def kill_java(begun: Line) -> None:
    os.kill(begun["jvm"], signal.SIGKILL)


def test_a_java_process_that_is_killed_is_one_sentence_and_so_is_the_next_session() -> None:
    failed, refused = with_fault("local[2]", kill_java)
    assert failed["error"].startswith("diff: Spark failed: Spark's Java process has ended; ")
    assert refused["error"] == "Spark's Java process has ended; start this command or task again"


def test_a_connect_server_that_goes_away_is_one_sentence(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server:
        failed, refused = with_fault(server, lambda _: server.kill())
    assert "diff: Spark failed: " in failed["error"]
    assert "no server answers there" in refused["error"]


def test_a_master_that_dies_leaves_the_running_session_its_executors_and_is_refused_by_the_next(tmp_path: Path) -> None:
    with master_with_workers(tmp_path) as server:
        *rest, refused = with_fault(server, lambda _: server.kill())
    assert [line["same"] for line in rest] == [True] * (TIMES - 1)
    assert "no server answers there" in refused["error"]


def test_a_worker_that_dies_with_its_executor_leaves_the_answer_as_it_is(tmp_path: Path) -> None:
    with master_with_workers(tmp_path) as server:
        lines = with_fault(server, lambda _: server.kill_worker())
    assert [line["same"] for line in lines if "same" in line] == [True] * (2 * TIMES - 1)
