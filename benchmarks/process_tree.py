"""What one command costs: seconds, CPU seconds and the largest memory of it and of all processes that it starts."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import BenchmarkError

EVERY_S = 0.2
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Places in ``/proc/<pid>/stat`` after the name; see proc(5)."""


@dataclass(slots=True)
class Usage:
    """Of a command that has ended. What a process used after it was last seen, at most ``EVERY_S`` before, is lost."""

    seconds: float = 0.0
    cpu_by_pid: dict[int, float] = field(default_factory=dict)
    peak_by_pid: dict[int, tuple[str, float]] = field(default_factory=dict)
    """The program's name, and the most MiB of memory that it had at once (``VmHWM``)."""
    printed: str = ""

    @property
    def cpu_s(self) -> float:
        return sum(self.cpu_by_pid.values())

    @property
    def peak_of_programs(self) -> float:
        """The most of one Java process, and the most of one other process."""
        java = (mib for name, mib in self.peak_by_pid.values() if name == "java")
        others = (mib for name, mib in self.peak_by_pid.values() if name != "java")
        return max(java, default=0.0) + max(others, default=0.0)

    def peak_of(self, program: str) -> float:
        """The most of one process of that program.

        Raises:
            BenchmarkError: No process of it was seen, so that any allowance would be kept.
        """
        if not (peaks := [mib for name, mib in self.peak_by_pid.values() if name.startswith(program)]):
            seen = ", ".join(sorted({name for name, _ in self.peak_by_pid.values()}))
            raise BenchmarkError(f"no process of {program} was seen, but {seen or 'none'}")
        return max(peaks)


def run_measured(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], also: Sequence[int] = ()
) -> Usage:
    """Run a command to its end.

    Args:
        also: Processes that ran before and work for it; only what they use meanwhile counts, and their largest memory.

    Raises:
        BenchmarkError: It failed; with its words.
    """
    before = {pid: _cpu_s(pid) for pid in also}
    usage, started = Usage(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, cwd=cwd, env=dict(environment), stdout=printed, stderr=subprocess.STDOUT)
        while process.poll() is None:
            _look(usage, {process.pid, *also})
            time.sleep(EVERY_S)
        usage.seconds = time.perf_counter() - started
        printed.seek(0)
        usage.printed = printed.read()
    for pid, cpu_s in before.items():
        usage.cpu_by_pid[pid] = _cpu_s(pid) - cpu_s
    if process.returncode:
        raise BenchmarkError(f"{' '.join(command)} ended with {process.returncode}:\n{usage.printed[-2000:]}")
    return usage


def _look(usage: Usage, roots: set[int]) -> None:
    for pid in _with_descendants(roots):
        try:
            usage.cpu_by_pid[pid] = _cpu_s(pid)
            usage.peak_by_pid[pid] = _peak(pid)
        except (OSError, KeyError, ValueError):
            continue  # it has ended


def _with_descendants(roots: set[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[_PARENT]), []).append(int(entry.name))
            except (OSError, IndexError):
                continue
    found, ahead = set(roots), list(roots)
    while ahead:
        for child in children.get(ahead.pop(), ()):
            found.add(child)
            ahead.append(child)
    return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _cpu_s(pid: int) -> float:
    stat = _stat(pid)
    return (int(stat[_USER]) + int(stat[_SYSTEM])) * _TICK_S


def _peak(pid: int) -> tuple[str, float]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return status["Name"].strip(), int(status["VmHWM"].split()[0]) / 1024
