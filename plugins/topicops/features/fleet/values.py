"""How a command or a DAG ended for each of many environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from topicops.model.errors import ClusterUnreachableError, ExitStatus, SpecError, TopicopsError, WrongTargetError

FORMAT_VERSION = "1.0"


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
    HEALTHY = "healthy"
    UNHEALTHY = "not healthy"
    INVALID = "with invalid files"
    UNREACHABLE = "unreachable"
    WRONG_CLUSTER = "with a wrong cluster"
    """Another cluster, one that KRaft controls, or one that has lost its topics."""
    FAILED = "failed"


PENDING = frozenset({Standing.CHANGES, Standing.BLOCKED, Standing.HELD, Standing.DRIFT})
"""What ``--detailed-exitcode`` shows."""


def _standing_of(error: TopicopsError) -> Standing:
    match error:
        case SpecError():
            return Standing.INVALID
        case ClusterUnreachableError():
            return Standing.UNREACHABLE
        case WrongTargetError():
            return Standing.WRONG_CLUSTER
        case _:
            return Standing.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentResult:
    """One environment of a fleet."""

    environment: str
    result: Standing
    summary: str
    """What was found, in one line, or why nothing was."""
    code: str | None = None
    exit_status: int = ExitStatus.SUCCESS
    """As the command would end for this environment alone."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By what is counted: ``create``, ``held``, ``changed`` ..."""
    path: str | None = None
    """The artifact; None where there is none."""
    fingerprint: str | None = None
    """Of the plan."""

    @classmethod
    def failed(cls, environment: str, error: Exception) -> Self:
        if not isinstance(error, TopicopsError):
            said = f"internal error: {type(error).__name__}: {error}"
            return cls(environment=environment, result=Standing.FAILED, summary=said, exit_status=ExitStatus.ERROR)
        return cls(
            environment=environment,
            result=_standing_of(error),
            summary=str(error),
            code=error.code,
            exit_status=error.exit_status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """All environments of a fleet, in the order in which they were named."""

    environments: tuple[EnvironmentResult, ...]

    @property
    def counts(self) -> Mapping[Standing, int]:
        """Of the standings that occur, in the order of ``Standing``."""
        found = Counter(each.result for each in self.environments)
        return {standing: found[standing] for standing in Standing if found[standing]}

    @property
    def broken(self) -> tuple[EnvironmentResult, ...]:
        """Those without a result."""
        return tuple(each for each in self.environments if each.result in BROKEN)

    @property
    def is_pending(self) -> bool:
        return any(each.result in PENDING for each in self.environments)

    @property
    def exit_status(self) -> ExitStatus:
        """The worst of all."""
        return worst(ExitStatus(result.exit_status) for result in self.environments)


BROKEN = frozenset({Standing.INVALID, Standing.UNREACHABLE, Standing.WRONG_CLUSTER, Standing.FAILED})

_RISING = (
    ExitStatus.SUCCESS,
    ExitStatus.CHANGES_PENDING,
    ExitStatus.NOT_VERIFIED,
    ExitStatus.ERROR,
    ExitStatus.WRONG_CLUSTER,
    ExitStatus.INTERRUPTED,
)


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """The exit status of several environments: a wrong cluster is worse than one that could not be read."""
    return max(statuses, key=lambda status: _RISING.index(status) if status in _RISING else len(_RISING))
