"""The Java process that the tasks of a run share: each task is a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from topicops.features.spark.edges.kept_driver import end_kept, keep_driver
from topicops.features.spark.settings import DEFAULT_MEMORY

pytestmark = pytest.mark.edges

TASK = """
import os, sys
from functools import partial
from pathlib import Path
from topicops.features.spark.edges.kept_driver import kept_driver
from topicops.features.spark.edges.session import spark_application, spark_session

os.environ["TOPICOPS_SPARK"] = "local[1]"
with spark_application(kept=partial(kept_driver, Path(sys.argv[1]))), spark_session() as spark:
    jvm = spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    print(pid, spark.range(4).count(), flush=True)
    if "dies" in sys.argv:
        os._exit(1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A JVM starts for this folder."""
    folder = tmp_path / "spark"
    keep_driver(folder, DEFAULT_MEMORY)
    yield folder
    end_kept(folder)


def task(folder: Path, *words: str) -> tuple[int, int]:
    """Run a task; gives the pid of its JVM, and what it counted."""
    command = [sys.executable, "-c", TASK, str(folder), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.stdout, ended.stderr[-3000:]
    pid, rows = ended.stdout.split()
    return int(pid), int(rows)


def kept_pid(folder: Path) -> int:
    return int((folder / "pid").read_text())


def test_tasks_one_after_the_other_have_one_jvm_also_after_one_that_was_killed(folder: Path) -> None:
    pid = kept_pid(folder)
    assert [task(folder), task(folder, "dies"), task(folder)] == [(pid, 4)] * 3

    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    names = sorted(each.name() for each in processes)
    end_kept(folder)

    # A third is sometimes there: the shell with which Hadoop asks what the machine can do.
    assert set(names) - {"bash"} == {"java", "sleep"}, names
    assert names.count("java") == 1, names
    assert not psutil.wait_procs(processes, timeout=20)[1]
    assert not folder.exists()


def test_a_task_starts_its_own_jvm_where_the_kept_one_has_ended(folder: Path) -> None:
    pid = kept_pid(folder)
    os.killpg(pid, signal.SIGKILL)
    other, rows = task(folder)
    assert (other != pid, rows) == (True, 4)


def test_a_process_that_only_has_the_number_is_left_alone(folder: Path) -> None:
    end_kept(folder)
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        (folder / "pid").write_text(str(other.pid))
        end_kept(folder)
        assert other.poll() is None
        other.kill()
