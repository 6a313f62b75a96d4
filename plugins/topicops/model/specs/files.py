"""The fields of topics, profiles, owners and exceptions, as people write them in files.

``EnvironmentSpec`` is in ``environment``, because later steps use it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from topicops.model.choices import Placement
from topicops.model.specs.environment import Configs, EnvironmentSpec, PolicyException, Written

MOST_PARTITIONS = 2**31 - 1
LARGEST_REPLICATION_FACTOR = 32_767
"""The protocol counts replicas in 16 bits."""


class AsWritten:
    """Marks a field with more than one form; a rule of its own reads the node."""


TopicId = Annotated[str, StringConstraints(pattern=r"[A-Za-z0-9_-]{22}")]
"""16 bytes in base64url without padding. Source: org.apache.kafka.common.Uuid#toString (3.9)."""
ShortText = Annotated[str, StringConstraints(max_length=200)]
LabelKey = Annotated[str, StringConstraints(pattern=r"[A-Za-z0-9._-]{1,63}")]
WrittenAssignment = Annotated[Mapping[int, tuple[int, ...]] | str, AsWritten()]
"""``{0: [1, 2, 3]}``, or Kafka's ``1:2:3,2:3:1``."""


class TopicMetadata(Written):
    name: str
    owner: ShortText
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    labels: Mapping[LabelKey, ShortText] = Field(default_factory=dict)
    environments: tuple[str, ...] | None = None
    """None: all."""


class Metadata(Written):
    name: str


class WrittenLifecycle(Written):
    state: Literal["absent", "paused"]
    reason: str | None = None
    not_before: datetime | None = None
    until: datetime | None = None
    topic_ids: Mapping[str, TopicId] = Field(default_factory=dict)
    """By environment."""


class SharedSpec(Written):
    """The values that every layer may give."""

    partitions: int | None = Field(default=None, ge=1, le=MOST_PARTITIONS)
    replication_factor: int | None = Field(default=None, ge=1, le=LARGEST_REPLICATION_FACTOR)
    configs: Configs = Field(default_factory=dict)


class TopicSpec(SharedSpec):
    profile: str | None = None
    keyed: bool = True
    placement: Placement = "balanced"
    rack_aware: bool = True
    assignment: WrittenAssignment | None = None


class ExceptionsSpec(Written):
    exceptions: tuple[PolicyException, ...] = ()


class OwnerEntry(Written):
    """What an owner may have."""

    owner: ShortText
    topics: tuple[str, ...] = ()
    """Glob patterns of names that only this owner's topics may have."""
    environments: tuple[str, ...] | None = None
    """None: all."""
    partitions: int | None = Field(default=None, ge=0)
    """Of all the owner's topics in one environment; None: no limit."""
    replicas: int | None = Field(default=None, ge=0)
    """As ``partitions``."""
    reviewers: tuple[str, ...] = ()
    """Logins and teams (``acme/payments``) on the forge, who may approve changes of the owner's topics in a review."""


class OwnersSpec(Written):
    owners: tuple[OwnerEntry, ...] = ()


class TopicFile(Written):
    api_version: str
    kind: str
    metadata: TopicMetadata
    spec: TopicSpec | None = None
    """Required, unless the lifecycle says absent."""
    lifecycle: WrittenLifecycle | None = None


class ProfileFile(Written):
    api_version: str
    kind: str
    metadata: Metadata
    spec: SharedSpec


class EnvironmentFile(Written):
    api_version: str
    kind: str
    metadata: Metadata
    spec: EnvironmentSpec


class OwnersFile(Written):
    api_version: str
    kind: str
    metadata: Metadata
    spec: OwnersSpec


class ExceptionsFile(Written):
    api_version: str
    kind: str
    metadata: Metadata
    spec: ExceptionsSpec
