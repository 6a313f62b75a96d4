"""Processes that outlive the command that started them, and are known again by pid and start time."""

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

from topicops.model.errors import LocalClusterError

_POLL_S = 0.02
# Below the range from which systems take ports for outgoing connections, so that a stopped server's port stays free.
_PORTS = range(20_000, 32_000)

# Children of this very process must be reaped, or they stay zombies; a child of another command has been left to init.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process, for good: a pid alone is used again by the system."""

    pid: int
    started: str
    """Opaque: the same text for the same process, whoever asks."""

    @property
    def alive(self) -> bool:
        return start_time(self.pid) == self.started


def spawn(command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str]) -> ProcessMark:
    """Start a process in a session of its own; what it says is appended to ``log``."""
    with log.open("ab") as output:
        try:
            child = subprocess.Popen(
                command, cwd=folder, env=dict(environment), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise LocalClusterError(f"{command[0]} cannot be started: {error.strerror}") from error
    _children[child.pid] = child
    # Not reaped yet, so that even a process that died at once still has its start time.
    return ProcessMark(child.pid, _started(child.pid) or "gone")


def start_time(pid: int) -> str | None:
    """When the process of that pid was started; None when there is none, or only its zombie."""
    if (child := _children.get(pid)) and child.poll() is not None:
        del _children[pid]
    return _started(pid)


def _started(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return _started_linux(pid)
    return _started_elsewhere(pid)


def _started_linux(pid: int) -> str | None:
    """Boot and clock ticks since it: field 22 of proc_pid_stat(5). The name, field 2, may hold spaces and brackets."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}:{ticks}"


def _started_elsewhere(pid: int) -> str | None:
    """The same from ps(1), for macOS: a date to the second."""
    result = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    state, _, started = result.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else " ".join(started.split())


def send_signal(process: ProcessMark, number: signal.Signals) -> bool:
    """Signal exactly that process; False when it is no more."""
    if not process.alive:
        return False
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False


def stop(processes: Sequence[ProcessMark], *, grace_s: float) -> list[ProcessMark]:
    """End the processes, and return those that had to be killed since they did not go within the grace.

    A paused process is woken, or it could not hear that it should go.
    """
    for process in processes:
        if send_signal(process, signal.SIGTERM):
            send_signal(process, signal.SIGCONT)
    stubborn = wait_gone(processes, timeout_s=grace_s)
    kill(stubborn)
    return stubborn


def kill(processes: Sequence[ProcessMark]) -> None:
    """End the processes without a word, and wait until they are gone."""
    for process in processes:
        send_signal(process, signal.SIGKILL)
    if survivors := wait_gone(processes, timeout_s=10.0):
        pids = ", ".join(str(process.pid) for process in survivors)
        raise LocalClusterError(f"process {pids} did not go after SIGKILL; look at it with ps")


def wait_gone(processes: Sequence[ProcessMark], *, timeout_s: float) -> list[ProcessMark]:
    """The processes that are still there at the end of the time."""
    deadline = time.monotonic() + timeout_s
    remaining = [process for process in processes if process.alive]
    while remaining and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        remaining = [process for process in remaining if process.alive]
    return remaining


def port_is_free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As servers do: connections of an earlier server that only wait for their end do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_port_free(port: int, *, timeout_s: float) -> bool:
    """Whether it is free by then. The last threads of a server that was killed may keep it a moment longer."""
    deadline = time.monotonic() + timeout_s
    while not port_is_free(port):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def free_port(taken: frozenset[int] = frozenset()) -> int:
    """A port of 127.0.0.1 that nothing listens on, and that is not in ``taken``."""
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        if port not in taken and port_is_free(port):
            return port
    raise LocalClusterError(f"no free port between {_PORTS.start} and {_PORTS.stop} on 127.0.0.1; give the ports")


def last_lines(log: Path, lines: int = 15) -> str:
    """The end of a log, indented; a sentence when there is none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except OSError:
        return "  (no log was written)"
    return "\n".join(f"  {line}" for line in text) or "  (the log is empty)"
