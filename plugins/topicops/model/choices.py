"""Words that a spec may choose from, where each word has code of its own: placements, sources and leases.

A new placement, source or lease is one new file, one line here, and one line in the list of functions:
``steps.planning.placement.PLACING``, ``flow.runs.access.READERS`` or ``LEASES``. What reads, checks and documents specs
follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

PLACEMENTS = {
    "balanced": "to the brokers that have the fewest replicas and leaders",
    "kafka": "as Kafka itself places the replicas of a new topic",
}
"""Ways to spread replicas."""

SOURCES = {"zookeeper": "from the znodes of ZooKeeper", "kafka": "from the brokers"}
"""Places from which the live topics are read."""

LEASES = {
    "zookeeper": "a znode of the cluster",
    "home": "a file or an object of ``TOPICOPS_HOME``",
    "file": "a file below ``TOPICOPS_HOME``",
    "none": "nothing",
}
"""Ways to keep two runs from changing one cluster at the same time."""


Engine = Literal["spark", "python"]
"""What compares files and cluster, and judges quality rules."""
EngineChoice = Literal["auto", "spark", "python"]

ForgeKind = Literal["github", "gitlab"]
"""Kind of server that has a repository's pull requests."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text field: one of these words, as the list has them when a file is read."""

    words: Mapping[str, str]


Placement = Annotated[str, OneOf(PLACEMENTS)]
Source = Annotated[str, OneOf(SOURCES)]
Lease = Annotated[str, OneOf(LEASES)]
