"""Processes that outlive the command that started them, and are found again by pid and start time."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from topicops.model.errors import LocalClusterError

_POLL_S = 0.02
# Below the range from which systems take ports for outgoing connections, so that a stopped server's port stays free.
_PORTS = range(20_000, 32_000)

# This process must reap its children, or they stay zombies. A child of a command that has ended belongs to init.
_children: dict[int, psutil.Popen] = {}


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process and no later one: the system uses a pid again."""

    pid: int
    started: str
    """Start time as opaque text; every process reads the same text for the same process."""

    @property
    def alive(self) -> bool:
        return mark_of(self.pid) == self


def spawn(command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str]) -> ProcessMark:
    """Start a process in a session of its own; its output is appended to ``log``."""
    with log.open("ab") as output:
        try:
            child = psutil.Popen(
                command, cwd=folder, env=dict(environment), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise LocalClusterError(f"{command[0]} cannot be started: {error.strerror}") from error
    _children[child.pid] = child
    return ProcessMark(child.pid, _started(child))  # not reaped yet: even a dead child has its start time


def mark_of(pid: int) -> ProcessMark | None:
    """Return the running process with that pid; None when there is none, or only its zombie."""
    if (child := _children.get(pid)) and child.poll() is not None:
        del _children[pid]
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else ProcessMark(pid, _started(process))
    except psutil.NoSuchProcess:
        return None


def _started(process: psutil.Process) -> str:
    """Return the boot and the clock ticks since it on Linux (the same after the clock is set); else the time."""
    if not psutil.LINUX:
        return str(process.create_time())
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}:{round((process.create_time() - psutil.boot_time()) * os.sysconf('SC_CLK_TCK'))}"


def members_of_session(session: int) -> list[ProcessMark]:
    """Return the running processes of a session: what a process from ``spawn`` has started, and itself."""
    return [mark for pid in psutil.pids() if _session_of(pid) == session and (mark := mark_of(pid))]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def send_signal(process: ProcessMark, number: signal.Signals) -> bool:
    """Signal exactly that process; False when it has ended."""
    if not process.alive:
        return False
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False


def pause(process: ProcessMark, *, timeout_s: float = 10.0) -> None:
    """Pause a process (SIGSTOP), and wait until all its threads have stopped: on a busy machine some still run on."""
    deadline = time.monotonic() + timeout_s
    if send_signal(process, signal.SIGSTOP):
        while not _is_paused(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)


def _is_paused(pid: int) -> bool:
    """Return whether it is paused; True also if the system does not show threads."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat") if psutil.LINUX else ()
    try:
        states = [stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] for stat in threads]
    except OSError:
        return False  # a thread has just ended
    return set(states) <= {"T"}


def stop(processes: Sequence[ProcessMark], *, grace_s: float) -> list[ProcessMark]:
    """Ask the processes to end, kill those that still run after ``grace_s``, and return those that were killed.

    A paused process is resumed, because it could not handle the request otherwise.
    """
    for process in processes:
        if send_signal(process, signal.SIGTERM):
            send_signal(process, signal.SIGCONT)
    stubborn = wait_gone(processes, timeout_s=grace_s)
    kill(stubborn)
    return stubborn


def kill(processes: Sequence[ProcessMark]) -> None:
    """Kill the processes, and wait until they are gone."""
    for process in processes:
        send_signal(process, signal.SIGKILL)
    if survivors := wait_gone(processes, timeout_s=10.0):
        pids = ", ".join(str(process.pid) for process in survivors)
        raise LocalClusterError(f"process {pids} still runs after SIGKILL; check it with ps")


def wait_gone(processes: Sequence[ProcessMark], *, timeout_s: float) -> list[ProcessMark]:
    """Wait until the processes have ended, and return those that still run after ``timeout_s``.

    Not ``psutil.wait_procs``, which waits for a zombie until its parent reaps it.
    """
    deadline = time.monotonic() + timeout_s
    remaining = [process for process in processes if process.alive]
    while remaining and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        remaining = [process for process in remaining if process.alive]
    return remaining


def port_is_free(port: int) -> bool:
    """Return whether a server can listen on that port of 127.0.0.1."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As servers do, so that closed connections of an earlier server do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_port_free(port: int, *, timeout_s: float) -> bool:
    """Return whether the port is free within ``timeout_s``. A killed server may keep its port for a moment."""
    deadline = time.monotonic() + timeout_s
    while not port_is_free(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def free_port(taken: frozenset[int] = frozenset()) -> int:
    """Return a free port of 127.0.0.1 that is not in ``taken``."""
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        if port not in taken and port_is_free(port):
            return port
    raise LocalClusterError(f"no free port between {_PORTS.start} and {_PORTS.stop} on 127.0.0.1; give the ports")
