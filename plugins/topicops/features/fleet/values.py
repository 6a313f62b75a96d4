"""How a command or a DAG ended for each of many environments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from topicops.model.codes import Code
from topicops.model.errors import ClusterUnreachableError, SpecError, TopicopsError, WrongTargetError
from topicops.model.exit_status import ExitStatus

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an environment has no result: an error, as a value that can travel between processes."""

    standing: Standing
    message: str
    code: Code | None = None
    exit_status: int = ExitStatus.ERROR

    @classmethod
    def of(cls, error: Exception) -> Self:
        if not isinstance(error, TopicopsError):
            return cls(standing=Standing.FAILED, message=f"internal error: {type(error).__name__}: {error}")
        return cls(
            standing=_standing_of(error), message=str(error), code=error.code, exit_status=int(error.exit_status)
        )


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
    standing: Standing
    summary: str
    """One line: what was found, or the first line of why nothing was."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By what is counted: ``create``, ``held``, ``changed`` ..."""
    path: str | None = None
    """The artifact; None where there is none."""
    fingerprint: str | None = None
    """Of the plan."""
    code: Code | None = None
    exit_status: int = ExitStatus.SUCCESS
    """As the command would end for this environment alone."""

    @classmethod
    def failed(cls, environment: str, failure: Failure) -> Self:
        return cls(
            environment=environment,
            standing=failure.standing,
            summary=failure.message,
            code=failure.code,
            exit_status=failure.exit_status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """All environments of a fleet, in the order in which they were named."""

    environments: tuple[EnvironmentResult, ...]

    @property
    def counts(self) -> Mapping[Standing, int]:
        """Of the standings that occur, in the order of ``Standing``."""
        found = Counter(result.standing for result in self.environments)
        return {standing: found[standing] for standing in Standing if found[standing]}

    @property
    def broken(self) -> tuple[EnvironmentResult, ...]:
        """Those without a result."""
        return tuple(result for result in self.environments if result.standing in BROKEN)

    @property
    def is_pending(self) -> bool:
        return any(result.standing in PENDING for result in self.environments)

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
