"""Lines of the audit log by topic or by run, and whether the log is whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems


def of_topic(files: Sequence[AuditFile], topic: str) -> list[AuditLine]:
    """Every mutation of topics with this name, oldest first; a topic that was created again has another topic id."""
    return _sorted(line for file in files for line in file.lines if line.topic == topic)


def of_run(files: Sequence[AuditFile], run: str) -> list[AuditLine]:
    """Every mutation of a run: ``<group>/<run id>``, or the run id alone."""
    return _sorted(line for file in files for line in file.lines if run in (line.run, line.run.partition("/")[2]))


def runs_of(files: Sequence[AuditFile]) -> list[list[AuditLine]]:
    """The mutations of each run in each environment, by the time of the first, oldest first."""
    found: dict[tuple[str, str], list[AuditLine]] = {}
    for line in _sorted(line for file in files for line in file.lines):
        found.setdefault((line.environment, line.run), []).append(line)
    return list(found.values())


def later_than(lines: Sequence[AuditLine], since: datetime | None) -> list[AuditLine]:
    """Those from this time on; None: all."""
    return [line for line in lines if since is None or line.at >= since]


def is_whole(files: Sequence[AuditFile], noted: AuditHead | None) -> bool:
    return not any(problem for file in files for problem in chain_problems(file, noted))


def _sorted(lines: Iterable[AuditLine]) -> list[AuditLine]:
    return sorted(lines, key=lambda line: (line.at, line.environment, line.n))
