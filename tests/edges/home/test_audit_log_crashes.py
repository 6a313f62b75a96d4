"""A process that dies at any step of an append leaves a log that the next one continues, with every line it counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from edges.home.test_audit_log import full_log_of, log_of, mutation, problems, topics
from topicops.edges.home.audit_log import FileAuditLog

STEPS: Mapping[str, tuple[str, ...]] = {
    "before": ("open", "write", "fsync", "ftruncate", "rename", "replace", "mkdir"),
    "half": ("write",),
}
"""The calls of ``os`` at which a process dies: before any that reaches the disk, or with half of its bytes written."""


def torn(folder: Path) -> None:
    with (folder / "local.jsonl").open("ab") as file:
        file.write(b'{"n":3,"previous":"')


def without_line_end(folder: Path) -> None:
    with (folder / "local.jsonl").open("rb+") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 1)


def damaged(log: FileAuditLog, folder: Path, damage: Callable[[Path], None]) -> FileAuditLog:
    damage(folder)
    return log


LOGS: dict[str, tuple[Callable[[Path], FileAuditLog], list[str]]] = {
    "new": (log_of, []),
    "small": (lambda folder: log_of(folder, "a", "b"), ["a", "b"]),
    "full": (lambda folder: full_log_of(folder, "a", "b"), ["a", "b"]),
    "torn": (lambda folder: damaged(log_of(folder, "a", "b"), folder, torn), ["a", "b"]),
    "full and torn": (lambda folder: damaged(full_log_of(folder, "a", "b"), folder, torn), ["a", "b"]),
    "without line end": (lambda folder: damaged(log_of(folder, "a", "b"), folder, without_line_end), ["a", "b"]),
}


def die_at(number: int, when: str) -> None:
    """Let this process end at the call of that number."""
    calls = count(1)

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            if next(calls) != number:
                return call(*arguments, **named)
            if when == "half":
                call(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            os._exit(9)

        return called

    for name in STEPS[when]:
        setattr(os, name, dying(getattr(os, name)))


def ends(work: Callable[[], object], number: int, when: str) -> int:
    """Do the work in a child that dies at a step; gives its exit status, 0 if the work has fewer steps."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            die_at(number, when)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def crashed(folder: Path, make: Callable[[Path], FileAuditLog], when: str) -> Iterator[Path]:
    """One log for each step at which the append of a line can die."""
    for number in count(1):
        at = folder / f"{number}"
        log = make(at)
        status = ends(lambda log=log: log.append([mutation("dying")]), number, when)  # type: ignore[misc]
        if status == 0:
            assert number > (5 if when == "before" else 1), "the steps were not counted"
            return
        assert status == 9
        yield at


@pytest.mark.parametrize("when", STEPS)
@pytest.mark.parametrize(
    "kind", ["full and torn", *(pytest.param(kind, marks=pytest.mark.soak) for kind in LOGS if kind != "full and torn")]
)
def test_a_crash_at_each_step_of_an_append_loses_no_line(fast_folder: Path, kind: str, when: str) -> None:
    make, before = LOGS[kind]
    for folder in crashed(fast_folder / f"{kind}-{when}", make, when):
        assert topics(folder)[: len(before)] == before
        assert all("torn" in problem for problem in problems(folder)), problems(folder)

        full_log_of(folder, "next")

        assert topics(folder) in ([*before, "next"], [*before, "dying", "next"])
        assert problems(folder) == []
