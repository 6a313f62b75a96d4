"""What ``topicops audit`` prints, as values: lines, runs, and whether the logs are whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from topicops.model.json_types import FormatVersion
from topicops.model.runs.audit import AuditFile, AuditHead, AuditLine, chain_problems, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedLines:
    """Lines that were asked for, oldest first."""

    format_version: FormatVersion = "1.0"
    lines: Sequence[AuditLine]

    @classmethod
    def of(cls, files: Sequence[AuditFile], is_asked: Callable[[AuditLine], bool]) -> AuditedLines:
        return cls(lines=[line for line in in_order(files) if is_asked(line)])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRun:
    """A run that sent changes to one environment."""

    environment: str
    run: str
    at: datetime
    """Time when its first change was sent."""
    plan: str
    commit: str | None
    approver: str | None
    """Everybody who approved one of its changes, with commas."""
    principal: str
    outcomes: Mapping[str, int]
    """Number of its changes with each outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedRuns:
    """Runs that were asked for, by their first change, oldest first."""

    format_version: FormatVersion = "1.0"
    runs: Sequence[AuditedRun]

    @classmethod
    def of(cls, files: Sequence[AuditFile], since: datetime | None) -> AuditedRuns:
        """Read the runs; those whose last change was sent before ``since`` are left out."""
        found: dict[tuple[str, str], list[AuditLine]] = {}
        for line in in_order(files):
            found.setdefault((line.environment, line.run), []).append(line)
        return cls(runs=[_run_of(lines) for lines in found.values() if since is None or lines[-1].at >= since])


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLog:
    """One environment's log."""

    environment: str
    path: str
    lines: int
    end: str
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLogs:
    """Whether the logs are whole."""

    format_version: FormatVersion = "1.0"
    whole: bool
    logs: Sequence[CheckedLog]

    @classmethod
    def of(cls, files: Sequence[AuditFile], noted: AuditHead | None) -> CheckedLogs:
        """Check the logs; ``noted`` is an end that was kept elsewhere."""
        logs = [
            CheckedLog(
                environment=file.environment,
                path=file.path,
                lines=len(file.entries),
                end=str(file.end),
                problems=[*chain_problems(file, noted)],
            )
            for file in files
        ]
        return cls(whole=not any(log.problems for log in logs), logs=logs)


def _run_of(lines: Sequence[AuditLine]) -> AuditedRun:
    first = lines[0]
    return AuditedRun(
        environment=first.environment,
        run=first.run,
        at=first.at,
        plan=first.plan,
        commit=first.commit,
        approver=", ".join(dict.fromkeys(line.approver for line in lines if line.approver)) or None,
        principal=first.principal,
        outcomes=dict(sorted(Counter(str(line.outcome) for line in lines).items())),
    )
