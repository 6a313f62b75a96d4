"""Spark's Java process for the tasks of one run: they are processes of one machine, and use it one after the other.

It starts as soon as the run is known to be no quiet one. A JVM ends when its stdin is closed, usually with the process
that started it; a ``sleep`` holds the stdin of this one. ``end_kept`` ends it, or else the end of that ``sleep``. Where
it is gone, or on another machine, a task starts its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from topicops.features.spark.edges.driver import (
    DRIVER_LOG,
    SparkDriver,
    archived_start,
    driver_java,
    joined,
    require_room,
)

KEPT_S = 1800
"""A run takes minutes."""
_PID = "pid"
_HELD_OPEN = 'exec "$@" < <(exec sleep "$0")'
"""For bash, which Spark's own scripts need too; so its process becomes the JVM."""


def keep_driver(folder: Path, memory: str) -> None:
    """Start a JVM that writes into this new folder, and return at once. Raises ``TopicopsError``."""
    end_kept(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_room(folder)
    start = archived_start(driver_java(), folder, memory)
    with (folder / DRIVER_LOG).open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", _HELD_OPEN, str(KEPT_S), *start.command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=start.environment,
            start_new_session=True,
        )
    (folder / _PID).write_text(str(process.pid), encoding="ascii")


def kept_driver(folder: Path) -> SparkDriver | None:
    """Connect to the JVM that was started for this folder, once it runs; None where there is none on this machine.

    An application that a killed task has left is stopped: a JVM has one at a time.
    """
    process = _process(folder)
    driver = process and joined(_OfAnotherTask(process), folder)
    if not driver:
        return None
    left = getattr(getattr(driver.gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
    if left.isDefined():
        left.get().stop()
    return driver


def end_kept(folder: Path) -> None:
    """Kill the JVM of this folder, and remove what it wrote."""
    if process := _process(folder):
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _process(folder: Path) -> psutil.Process | None:
    """Find the JVM of this folder. Another machine, or another process later, may have one of the same number."""
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int((folder / _PID).read_text(encoding="ascii")))
        if any(str(folder) in word for word in process.cmdline()):
            return process
    return None


class _OfAnotherTask:
    """What is asked of a ``subprocess.Popen``, of a process that another one has started."""

    stdin = None

    def __init__(self, process: psutil.Process) -> None:
        self._process = process

    def poll(self) -> int | None:
        with suppress(psutil.Error):
            if self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE:
                return None
        return 1

    def wait(self, timeout: float) -> int:
        try:
            self._process.wait(timeout)
        except psutil.TimeoutExpired as error:
            raise subprocess.TimeoutExpired("Spark", timeout) from error
        return 1
