"""What the next run must know of the last good one, to say that nothing differs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from topicops.model.json_types import FormatVersion

QUIET_FILE = "quiet.json"
"""Holds a ``Quiet``; only quiet runs have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """All that decides what a run finds, as digests: the same state gives the same plan and the same rules."""

    mode: str
    """``apply``, ``plan`` or ``drift``."""
    program: str
    environment: str
    """Of the environment's file, with its policy and exceptions."""
    files: str
    """Of the topics of the files, and the warnings about them."""
    cluster: str | None
    """Of brokers, topics and partition states; None: something in it changes with the time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodRun:
    """A run in which nothing failed, was held or blocked, and no rule failed."""

    format_version: FormatVersion = "1.0"
    run: str
    """``<group>/<run id>``."""
    state: RunState
    """As the run left it, and as the rules judged it last."""
    has_empty_plan: bool
    """Whether the plan of this very state is known to have no change."""
    checked_at: datetime
    """When the rules were last evaluated, UTC."""
    holds_until: datetime | None = None
    """When time alone may change the plan, because a pause ends; UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Why a run ended after its snapshot: nothing differs from a good one."""

    format_version: FormatVersion = "1.0"
    sentence: str
    run: str
    """The good one."""
    full_check_at: datetime
    """When the next run makes every check again, UTC."""
    commit: str | None
    """Of the files of this run."""
