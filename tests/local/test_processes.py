"""Processes are known by pid and start time, and their whole session is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from topicops_local.processes import (
    ProcessMark,
    kill,
    mark_of,
    members_of_session,
    pause,
    send_signal,
    spawn,
    wait_gone,
)


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[ProcessMark]:
    """A shell in a session of its own with a child; all of it is gone afterwards."""
    process = spawn(["sh", "-c", "sleep 60 & wait"], log=tmp_path / "log", folder=tmp_path, environment=os.environ)
    yield process
    kill(members_of_session(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the form is Linux's")
def test_a_mark_of_an_earlier_version_is_still_recognised(parent: ProcessMark) -> None:
    """It holds the boot id and field 22 of proc_pid_stat(5)."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    ticks = Path(f"/proc/{parent.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert ProcessMark(parent.pid, f"{boot}:{ticks}").alive


def test_a_signal_reaches_no_process_that_only_has_the_pid(parent: ProcessMark) -> None:
    assert not send_signal(ProcessMark(parent.pid, "another time"), signal.SIGKILL)
    assert parent.alive


def test_a_zombie_is_gone(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
    assert mark_of(child.pid) is None
    child.wait()


def test_the_session_of_a_process_is_found_after_its_first_process_has_ended(parent: ProcessMark) -> None:
    while len(members_of_session(parent.pid)) < 2:
        assert parent.alive
    kill([parent])
    [child] = members_of_session(parent.pid)
    kill([child])
    assert wait_gone([parent, child], timeout_s=0) == []


def test_all_threads_of_a_paused_process_have_stopped(tmp_path: Path) -> None:
    counts = (
        "import threading\nfor _ in range(8): threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()"
    )
    process = spawn([sys.executable, "-c", counts], log=tmp_path / "log", folder=tmp_path, environment=os.environ)
    pause(process)
    try:
        used = sum(psutil.Process(process.pid).cpu_times()[:2])
        time.sleep(0.2)
        assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
        assert sum(psutil.Process(process.pid).cpu_times()[:2]) == used
    finally:
        kill([process])
