"""When, where and how much a run has read of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from topicops.model.choices import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Facts of the run's first snapshot, as ``run.json`` has them."""

    read_at: datetime
    """Time after the last read, UTC."""
    source: Source
    cluster_id: str
    topics: int
    """Number of topics."""
    partitions: int
    """Number of partitions of all topics."""
    brokers: int
    """Number of live brokers."""
    topics_at_last_good_snapshot: int | None
    """Number of topics at the last good snapshot before this one; None means that there was none."""
    host: str
    """Name of the host that read."""
    home: str
    """Token of the home."""
    brokers_run: str | None = None
    """Releases of the brokers; None means that nobody asked, or no broker answered."""
