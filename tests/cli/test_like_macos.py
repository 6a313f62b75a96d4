"""The base commands, and a whole plan with its locks and files, in a Python that has no more than that of macOS."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.killable import with_tests_on_path
from fixtures.plan_bytes import write_topics

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def like_macos(*words: str, folder: Path, status: int = 0) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "fixtures.like_macos", *words],
        cwd=folder,
        env=with_tests_on_path() | {"TOPICOPS_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("--help", 0, "Change"),
        ("plan --help", 0, "--engine"),
        ("validate", 0, "0 errors"),
        ("fmt --check", 0, ""),
        ("explain payments.orders --environment local", 0, "partitions"),
        ("explain TOP501", 0, "TOP501"),
        ("schema topic", 0, '"$schema"'),
        ("list --environment local", 1, "AIRFLOW_CONN_KAFKA_ZOOKEEPER_LOCAL"),
        ("plan --environment local", 1, "AIRFLOW_CONN_KAFKA_LOCAL"),
        ("apply --environment local --yes", 1, "AIRFLOW_CONN_KAFKA_LOCAL"),
        ("audit runs", 0, ""),
    ],
)
def test_the_base_commands_do_what_they_do_on_linux(words: str, status: int, said: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "topics", tmp_path / "topics")
    shown = like_macos("topicops", *words.split(), folder=tmp_path, status=status)
    assert said in shown
    assert "Traceback" not in shown


def test_a_plan_is_the_same_to_the_byte(tmp_path: Path) -> None:
    write_topics(tmp_path)
    program = ("fixtures.plan_bytes", str(tmp_path))
    there = json.loads(like_macos(*program, "macos", "python", folder=tmp_path))
    words = [sys.executable, "-m", *program, "linux", "python"]
    here = json.loads(subprocess.run(words, env=with_tests_on_path(), capture_output=True, check=True).stdout)
    assert there["plans"] == here["plans"]


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("import os; os.sched_getaffinity(0)", "sched_getaffinity"),
        ("import select; select.epoll()", "epoll"),
        ("import signal; signal.SIGRTMIN", "SIGRTMIN"),
        ("open('/proc/self/stat')", "/proc/self/stat"),
    ],
)
def test_what_only_linux_has_fails_there(program: str, missing: str, tmp_path: Path) -> None:
    (tmp_path / "needs_linux.py").write_text(program, encoding="utf-8")
    assert missing in like_macos("needs_linux", folder=tmp_path, status=1).splitlines()[-1]
