"""Words that a spec may choose from, where each word has code of its own: placements, sources and leases.

A new placement, source or lease is one new file and one line here; what reads, checks and documents specs follows.
Code is named as ``module:name`` and imported when it is needed: reading a file needs neither Spark nor a Kafka client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Literal

from pydantic import AfterValidator

PLACEMENTS = {
    "balanced": "topicops.steps.planning.placement.balanced:place_balanced",
    "kafka": "topicops.steps.planning.placement.kafka:place_like_kafka",
}
"""How replicas are spread; each is a ``PlacementFunction`` of ``steps.planning.placement``."""

SOURCES = {
    "zookeeper": "topicops.flow.runs.access:zookeeper_reader",
    "kafka": "topicops.flow.runs.access:kafka_reader",
}
"""Where the live topics are read; each opens a ``LiveReader``."""

LEASES = {
    "zookeeper": "topicops.flow.runs.access:zookeeper_lease",
    "file": "topicops.flow.runs.access:file_lease",
    "none": "topicops.flow.runs.access:no_lease",
}
"""What keeps two runs from changing one cluster at the same time; each opens a ``Lease``."""


ForgeKind = Literal["github", "gitlab"]
"""Where the pull requests of a repository are."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Marks a text field: one of these words, as the list has them when a file is read."""

    words: Mapping[str, str]

    def check(self, word: str) -> str:
        """The word. Raises ``ValueError`` when the list does not have it."""
        if word not in self.words:
            raise ValueError(f"{word!r} is not one of {', '.join(self.words)}")
        return word


Placement = Annotated[str, OneOf(PLACEMENTS), AfterValidator(OneOf(PLACEMENTS).check)]
Source = Annotated[str, OneOf(SOURCES), AfterValidator(OneOf(SOURCES).check)]
Lease = Annotated[str, OneOf(LEASES), AfterValidator(OneOf(LEASES).check)]


def code_for(place: str) -> object:
    """The function that ``module:name`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
