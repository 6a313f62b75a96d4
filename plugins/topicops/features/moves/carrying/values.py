"""Settings of a step, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from topicops.features.moves.record import MovesRecord, TopicPartition
from topicops.model.ports import Begun


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSettings:
    """Limits of the environment for moves."""

    at_once: int = 50
    """Most partitions that move at the same time."""
    per_broker: int = 5
    """Most partitions that one broker receives at the same time."""
    throttle: int | None = None
    """Bytes a second and broker; None means that moves have no throttle."""
    stuck_after: timedelta = timedelta(hours=1)
    """A partition that copied nothing for so long is cancelled where that is safe, and else reported."""


SentWhat = Literal["start", "cancel", "end", "entries", "rate", "elect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request of a step, after its answer; a line of the audit log."""

    what: SentWhat
    topic: str = ""
    """Topic of the request; empty for a rate."""
    partitions: tuple[int, ...] = ()
    broker: int | None = None
    """Broker of a rate."""
    before: Mapping[str, object] = field(default_factory=dict)
    """Values before, such as rows by partition, a rate, or entries of the lists."""
    after: Mapping[str, object] = field(default_factory=dict)
    answer: str = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What one step did."""

    record: MovesRecord
    """Record as it was last kept."""
    notes: tuple[str, ...] = ()
    """Sentences: what waits for what, what is owed, what was dropped and why."""
    became: Mapping[str, Begun] = field(default_factory=dict)
    """What became of each topic's change that the record had before the step, by digest."""
    moved: frozenset[TopicPartition] = frozenset()
    """Partitions whose move has ended as planned in this step."""
