"""What the next run must know of the last good one, to say that nothing differs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from topicops.model.json_types import FormatVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """All that decides what a run finds, as digests: the same state gives the same plan and the same rules."""

    mode: str
    """``apply``, ``plan`` or ``drift``."""
    program: str
    environment: str
    """Digest of the environment's file, with its policy and exceptions."""
    files: str
    """Digest of the described topics and of their warnings."""
    cluster: str | None
    """Digest of brokers, topics and partition states; None means that something in it changes with the time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodRun:
    """A run in which nothing failed, was held or blocked, and no rule failed."""

    format_version: FormatVersion = "1.0"
    run: str
    """``<group>/<run id>``."""
    state: RunState
    """State that the run left, and that the rules judged last."""
    has_empty_plan: bool
    """Whether the plan of this very state is known to have no change."""
    checked_at: datetime
    """Time at which the rules were last evaluated, UTC."""
    holds_until: datetime | None = None
    """Time from which the plan may change because a pause ends, UTC; None means that none does."""
