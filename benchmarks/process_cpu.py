"""CPU seconds, processes and JVMs of services that are running, while something happens.

Every ``EVERY_S`` the tree below the services is looked at. A process that has ended is counted in its parent, to the
tick, once that has waited for it; one whose parent ended first, as the JVM of a task, is counted as it was last seen.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

EVERY_S = 0.1
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Places in ``/proc/<pid>/stat`` after the name: own user and system time, then those of children; see proc(5)."""


@dataclass(slots=True)
class Seen:
    """One process."""

    parent: int
    name: str
    cpu_s: float
    """With its children that have ended."""


@dataclass(slots=True)
class Tree:
    """All processes that were seen below the roots."""

    roots: Sequence[int]
    alive: dict[int, Seen] = field(default_factory=dict)
    orphans_cpu_s: float = 0.0
    """Of processes that have ended and that no process of the tree waited for."""
    started: int = 0
    jvms: int = 0
    _java: set[int] = field(default_factory=set)

    @property
    def cpu_s(self) -> float:
        return self.orphans_cpu_s + sum(seen.cpu_s for seen in self.alive.values())

    def look(self) -> None:
        every = dict(_processes())
        found, ahead = set[int](), [pid for pid in (*self.roots, *self.alive) if pid in every]
        children: dict[int, list[int]] = {}
        for pid, seen in every.items():
            children.setdefault(seen.parent, []).append(pid)
        while ahead:
            if (pid := ahead.pop()) not in found:
                found.add(pid)
                ahead += children.get(pid, ())
        for pid in self.alive.keys() - found:
            if (ended := self.alive[pid]).parent not in self.alive:
                self.orphans_cpu_s += ended.cpu_s
        self.started += len(found - self.alive.keys())
        self.alive = {pid: every[pid] for pid in found}
        java = {pid for pid in found if every[pid].name == "java"}
        self.jvms += len(java - self._java)
        self._java = java


@dataclass(slots=True)
class Cost:
    """Of what happened inside a block."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    processes: int = 0
    """That were seen to start."""
    jvms: int = 0


@contextmanager
def counted(roots: Sequence[int]) -> Iterator[Cost]:
    """The cost is complete after the block."""
    tree, cost, over = Tree(roots), Cost(), threading.Event()
    tree.look()
    before, known, began = tree.cpu_s, tree.started, time.monotonic()

    def watch() -> None:
        while not over.wait(EVERY_S):
            tree.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield cost
    finally:
        over.set()
        thread.join()
        tree.look()
        cost.seconds = time.monotonic() - began
        cost.cpu_s, cost.processes, cost.jvms = tree.cpu_s - before, tree.started - known, tree.jvms


def _processes() -> Iterator[tuple[int, Seen]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                text = Path(f"/proc/{entry.name}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it has ended
            head, _, rest = text.rpartition(")")
            values = rest.split()
            cpu_s = sum(map(int, values[_TIMES])) * _TICK_S
            yield int(entry.name), Seen(int(values[_PARENT]), head.partition("(")[2], cpu_s)
