"""What somebody is told about an environment: one event for each thing that happened, or began, or is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from topicops.model.json_types import FormatVersion

EventKind = Literal[
    "held",
    "approved",
    "rejected",
    "withdrawn",
    "blocked",
    "applied",
    "failed",
    "outdated",
    "unhealthy",
    "drift",
    "recovered",
]

LASTING: tuple[EventKind, ...] = ("held", "blocked", "failed", "outdated", "unhealthy", "drift")
"""Kinds that stay as they are from run to run, until their cause is gone."""
TROUBLE: frozenset[EventKind] = frozenset(("blocked", "failed", "outdated", "unhealthy", "drift"))
"""When one of these is over, that is told as ``recovered``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: EventKind
    environment: str
    verdict: str
    """One sentence for a person."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """``changes``, ``topics``, ``partitions`` and the like; only what the kind has."""
    cause: str
    """What makes it distinct: the same kind with the same cause is told once. Not for people."""
    run: str
    """``<DAG>/<run id>``."""
    format_version: FormatVersion = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What each receiver was told last, of what may still last: cause by kind."""

    format_version: FormatVersion = "1.0"
    causes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By receiver."""
