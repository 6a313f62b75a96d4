"""Desired topics: what git says, resolved for one environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from topicops.model.choices import Placement
from topicops.model.cluster.snapshot import Assignment
from topicops.model.specs.diagnostics import Diagnostic, Location

API_VERSION = "topicops/v1"


class Lifecycle(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"
    """A tombstone: the only way in which a topic is deleted."""
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredTopic:
    """One topic of one environment, all layers merged, every value parsed."""

    name: str
    owner: str
    location: Location
    """The name in the topic's own file."""
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    lifecycle: Lifecycle = Lifecycle.PRESENT
    reason: str = ""
    """Reason why the topic is deleted or paused; empty while present."""
    not_before: datetime | None = None
    """A tombstone's earliest time of deletion, UTC."""
    until: datetime | None = None
    """Time when a pause ends, UTC."""
    topic_id: str | None = None
    """The topic id that a tombstone names for this environment."""
    partitions: int = 0
    """0 only for a tombstone."""
    replication_factor: int = 0
    keyed: bool = True
    placement: Placement = "balanced"
    rack_aware: bool = True
    assignment: Assignment | None = None
    """Replicas given by hand."""
    configs: Mapping[str, str | None] = field(default_factory=dict)
    """Overrides in canonical text; None means that no override may be live."""
    locations: Mapping[str, Location] = field(default_factory=dict)
    """Places where each value was written: ``partitions``, ``replicationFactor``, ``configs.<key>``."""

    @property
    def domain(self) -> str:
        """The folder of the topic's file."""
        return self.location.file.rpartition("/")[0].rpartition("/")[2]

    def location_of(self, field_name: str) -> Location:
        return self.locations.get(field_name, self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """All topics of one environment, and the warnings about their files."""

    environment: str
    topics: Mapping[str, DesiredTopic]
    """Topics of this environment by name."""
    files: int
    """Number of files that were read."""
    warnings: tuple[Diagnostic, ...] = ()
    commit: str | None = None
    """The git commit of the files; None outside a work tree or when they differ from it."""
    digest: str = ""
    """SHA-256 of the topics' values; the order of files and keys does not matter."""
    left_out: frozenset[str] = frozenset()
    """Names of topics whose files have errors, where these do not stop the command."""
    prefix: str = ""
    """What the names have before those of the files: ``cluster.topics.prefix``."""

    @property
    def has_files(self) -> bool:
        """Whether any file describes a topic here, valid or not."""
        return bool(self.topics) or bool(self.left_out)
