"""How a command or a DAG ended for each of many environments: values, which are the JSON, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from topicops.model.errors import ClusterUnreachableError, ExitStatus, SpecError, TopicopsError, WrongTargetError
from topicops.model.json_types import FormatVersion
from topicops.model.printable import markdown
from topicops.steps.reporting.document import Section, as_text


class Standing(StrEnum):
    """What a person wants to know first about one environment; each has exactly one."""

    UNCHANGED = "without changes"
    CHANGES = "with changes"
    """All of them may run."""
    BLOCKED = "with blocked topics"
    """None is held."""
    HELD = "held"
    """The gate holds or skips changes."""
    WITHOUT_DRIFT = "without drift"
    DRIFT = "with drift"
    NO_MATCH = "without a match"
    """``--only`` matches no topic, so nothing was looked at."""
    HEALTHY = "healthy"
    UNHEALTHY = "not healthy"
    INVALID = "with invalid files"
    UNREACHABLE = "unreachable"
    WRONG_CLUSTER = "with a wrong cluster"
    """Another cluster, one that KRaft controls, or one that has lost its topics."""
    FAILED = "failed"


PENDING = frozenset({Standing.CHANGES, Standing.BLOCKED, Standing.HELD, Standing.DRIFT})
"""Standings that ``--detailed-exitcode`` shows."""
BROKEN = frozenset({Standing.INVALID, Standing.UNREACHABLE, Standing.WRONG_CLUSTER, Standing.FAILED})
"""Standings without a result."""
_OF_ERRORS: Mapping[type[Exception], Standing] = {
    SpecError: Standing.INVALID,
    ClusterUnreachableError: Standing.UNREACHABLE,
    WrongTargetError: Standing.WRONG_CLUSTER,
}
_RISING = (
    ExitStatus.SUCCESS, ExitStatus.CHANGES_PENDING, ExitStatus.NOT_VERIFIED, ExitStatus.ERROR,
    ExitStatus.WRONG_CLUSTER, ExitStatus.INTERRUPTED,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentResult:
    """One environment of a fleet."""

    environment: str
    result: Standing
    summary: str
    """Result in one line, or the reason why there is none."""
    code: str | None = None
    exit_status: int = ExitStatus.SUCCESS
    """Status with which the command would end for this environment alone."""
    counts: Mapping[str, int]
    """Numbers by what is counted: ``create``, ``held``, ``changed`` ..."""
    path: str | None = None
    """Path of the artifact; None means that there is none."""
    fingerprint: str | None = None
    """Fingerprint of the plan."""

    @property
    def line(self) -> str:
        """First line of what was found, with its code."""
        code = f"{self.code}: " if self.code else ""
        return f"{code}{self.summary.splitlines()[0] if self.summary else self.result.value}"

    @classmethod
    def failed(cls, environment: str, error: Exception) -> Self:
        if not isinstance(error, TopicopsError):
            error = TopicopsError(f"internal error: {type(error).__name__}: {error}")
        return cls(
            environment=environment,
            result=next((found for kind, found in _OF_ERRORS.items() if isinstance(error, kind)), Standing.FAILED),
            summary=str(error),
            counts={},
            code=error.code,
            exit_status=error.exit_status,
        )


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Return the exit status of several environments: a wrong cluster is worse than one that could not be read."""
    return max(statuses, key=lambda status: _RISING.index(status) if status in _RISING else len(_RISING))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """All environments of a fleet, in the order in which they were named: ``fleet.json``."""

    format_version: FormatVersion = "1.0"
    summary: str
    """``38 of 50 environments without changes, 2 held, 1 unreachable.``"""
    counts: Mapping[Standing, int]
    """Numbers of the standings that occur, in the order of ``Standing``."""
    exit_status: int
    """Worst status of all."""
    environments: tuple[EnvironmentResult, ...]

    @classmethod
    def of(cls, environments: Sequence[EnvironmentResult]) -> Self:
        found = Counter(each.result for each in environments)
        counts = {standing: found[standing] for standing in Standing if found[standing]}
        (first, number), *rest = counts.items()
        said = [f"{number} of {len(environments)} environments {first}", *(f"{count} {name}" for name, count in rest)]
        return cls(
            summary=f"{', '.join(said)}.",
            counts=counts,
            exit_status=int(worst(ExitStatus(result.exit_status) for result in environments)),
            environments=tuple(environments),
        )

    @property
    def broken(self) -> tuple[EnvironmentResult, ...]:
        return tuple(each for each in self.environments if each.result in BROKEN)


def fleet_text(report: FleetReport) -> str:
    """Give a line for each environment; the summary last."""
    rows = [(result.environment, result.line) for result in report.environments]
    return as_text([Section(head=("environment", "result"), rows=rows), Section(rows=[report.summary])]).rstrip("\n")


def fleet_markdown(report: FleetReport) -> str:
    rows = [f"| {markdown(result.environment)} | {markdown(result.line)} |" for result in report.environments]
    return "\n".join(["| environment | result |", "| --- | --- |", *rows, "", markdown(report.summary)])
