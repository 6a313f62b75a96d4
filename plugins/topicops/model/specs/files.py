"""The fields of topics, profiles, owners and exceptions as people write them, and the kinds of value they have.

Editors show the sentence under each field. The reader of files, the JSON Schema and the formatter match on the kinds.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from topicops.model.choices import OneOf, Placement
from topicops.model.specs.environment import (
    Configs,
    Count,
    EnvironmentSpec,
    InBytes,
    PolicyException,
    SharedSpec,
    Written,
)


class AsWritten:
    """Marks a field with more than one form; a rule of its own reads the node."""


TopicId = Annotated[str, Meta(pattern=r"[A-Za-z0-9_-]{22}")]
"""16 bytes in base64url without padding. Source: org.apache.kafka.common.Uuid#toString (3.9)."""
ShortText = Annotated[str, Meta(max_length=200)]
LabelKey = Annotated[str, Meta(pattern=r"[A-Za-z0-9._-]{1,63}")]
WrittenAssignment = Annotated[Mapping[int, tuple[int, ...]] | str, AsWritten()]
"""``{0: [1, 2, 3]}``, or Kafka's ``1:2:3,2:3:1``."""


class TopicMetadata(Written):
    name: str
    """Name of the topic and of its file: letters, digits, `.`, `_`, `-`, at most 249; not a protected name, and not one
    that differs from another only by `.` and `_` or by case."""
    owner: ShortText
    """Team or person responsible for the topic, at most 200 characters; commands that write files refuse placeholders
    such as `todo`."""
    description: Annotated[str, Meta(max_length=2000)] = ""
    """What its records are, for people who may read them; at most 2,000 characters."""
    labels: Mapping[LabelKey, ShortText] = {}
    """Any pairs of key and text. Keys: letters, digits, `.`, `_`, `-`, at most 63; values: at most 200 characters."""
    environments: tuple[str, ...] | None = None
    """Environments that have the topic; others ignore the file. A name that no environment has is an error (TOP336);
    left out: all."""


class Metadata(Written):
    name: str
    """The same as the file's name without .yaml; for exceptions, the environment."""


class WrittenLifecycle(Written):
    state: Literal["absent", "paused"]
    """`absent`: a tombstone, the topic is to be deleted. `paused`: topicops leaves the topic alone."""
    reason: str | None = None
    """Why; required, and reviewers read it."""
    not_before: datetime | None = None
    """Time before which the topic is not deleted; with `absent` only."""
    until: datetime | None = None
    """End of the pause; required with `paused`."""
    topic_ids: Mapping[str, TopicId] = {}
    """By environment (TOP336), the id (22 characters) that the live topic must have to be deleted; with `absent`
    only."""


class TopicOverride(SharedSpec):
    """What one environment has in another way than the rest of the topic's file."""

    assignment: WrittenAssignment | None = None
    """Replicas chosen by hand, for this environment's brokers."""


class TopicSpec(SharedSpec):
    profile: str | None = None
    """Name of a file in `profiles/`; this file's own values win over its values."""
    keyed: bool = True
    """Whether records have keys, which new partitions would move: then more partitions are risky. `false` with
    compaction is an error (TOP323)."""
    placement: Placement = "balanced"
    """`balanced`: evenly for the topic, then for the cluster. `kafka`: as Kafka itself would."""
    rack_aware: bool = True
    """Whether replicas are spread over racks."""
    assignment: WrittenAssignment | None = None
    """Replicas chosen by hand, the preferred leader first: `{0: [1, 2, 3]}` or `1:2:3,2:3:1`."""
    overrides: Mapping[str, TopicOverride] = {}
    """Values of single environments (TOP336), which win over those above: `{prod: {partitions: 12}}`. Only the
    environment file's own `overrides` win over these."""


class ExceptionsSpec(Written):
    exceptions: tuple[PolicyException, ...] = ()
    """Each turns one error of one topic into a warning."""


class OwnerEntry(Written):
    """What an owner may have."""

    owner: ShortText
    """The owner, as `metadata.owner` of a topic names it."""
    topics: tuple[str, ...] = ()
    """Glob patterns: only this owner may have topics with such names (TOP332). `topicops import` takes the owner of
    each live topic from here."""
    environments: tuple[str, ...] | None = None
    """Environments (TOP336) where the owner may have topics (TOP331), and where the budgets of this entry count; left
    out: all."""
    partitions: Count | None = None
    """The most partitions of all the owner's topics in one environment (TOP321); left out: no limit."""
    replicas: Count | None = None
    """The most replicas of all the owner's topics in one environment, partitions times replication factor (TOP321);
    left out: no limit."""
    reviewers: tuple[str, ...] = ()
    """Logins and teams (`acme/payments`) on GitHub or GitLab whose review of a pull request can approve changes of the
    owner's topics."""


class OwnersSpec(Written):
    owners: tuple[OwnerEntry, ...] = ()
    """Everyone who may have topics, and what each may have."""


class WrittenFile(Written):
    api_version: str
    """Format of the file."""
    kind: str
    """What the file describes; it must fit the folder."""


class TopicFile(WrittenFile):
    metadata: TopicMetadata
    """Name, owner and labels of the topic."""
    spec: TopicSpec | None = None
    """Wanted state of the topic; left out in a tombstone only."""
    lifecycle: WrittenLifecycle | None = None
    """A tombstone or a pause; left out: the topic is managed as usual."""


class ProfileFile(WrittenFile):
    metadata: Metadata
    """Name of the profile."""
    spec: SharedSpec
    """Values that topics with this profile share."""


class EnvironmentFile(WrittenFile):
    metadata: Metadata
    """Name of the environment."""
    spec: EnvironmentSpec
    """The cluster, its limits and its policy."""


class OwnersFile(WrittenFile):
    metadata: Metadata
    """The name is owners."""
    spec: OwnersSpec
    """The owners."""


class ExceptionsFile(WrittenFile):
    metadata: Metadata
    """The environment that the exceptions are for."""
    spec: ExceptionsSpec
    """The exceptions."""


@dataclass(frozen=True, slots=True)
class TextKind:
    longest: int | None = None
    """Most characters."""
    pattern: str | None = None
    """Pattern that the whole text must match."""


@dataclass(frozen=True, slots=True)
class WordKind:
    words: Collection[str]
    """All that are allowed."""


@dataclass(frozen=True, slots=True)
class IntegerKind:
    lowest: int | None = None
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class SizeKind:
    """Bytes, such as ``50MiB``; a number without a unit is bytes."""

    lowest: int = 0


class PlainKind(Enum):
    """A kind of which there is no more to say."""

    BOOLEAN = auto()
    TIME = auto()
    DURATION = auto()
    CONFIGS = auto()
    """Kafka's topic configs by name; a value may be null."""
    AS_WRITTEN = auto()
    """More than one form is allowed: a rule of its own reads the node."""


@dataclass(frozen=True, slots=True)
class ListKind:
    item: Kind


@dataclass(frozen=True, slots=True)
class EntriesKind:
    """A mapping whose keys people choose."""

    key: TextKind
    value: Kind


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A mapping with the fields of ``model``."""

    model: type[Written]


Kind = TextKind | WordKind | IntegerKind | SizeKind | PlainKind | ListKind | EntriesKind | ModelKind


class FieldKind(NamedTuple):
    kind: Kind
    is_required: bool
    default: object


def fields_of(model: type[Written]) -> dict[str, FieldKind]:
    """Return the fields of ``model`` by their names in the file, in the model's order.

    Raises ``TypeError``: an annotation has no kind.
    """
    return {
        field.encode_name: FieldKind(_kind_of(field.type), field.required, field.default)
        for field in msgspec.structs.fields(model)
    }


def _kind_of(annotation: object, limits: Sequence[object] = ()) -> Kind:
    """Return the kind; ``limits`` are what the model says besides the type; null is left out of the kind."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if any(isinstance(limit, AsWritten) for limit in limits):
        return PlainKind.AS_WRITTEN
    if choice := next((limit for limit in limits if isinstance(limit, OneOf)), None):
        return WordKind(choice.words)
    if annotation == Configs:
        return PlainKind.CONFIGS
    if origin is Annotated:
        return _kind_of(arguments[0], (*limits, *arguments[1:]))
    if origin in (Union, types.UnionType):
        (kept,) = [argument for argument in arguments if argument is not type(None)]
        return _kind_of(kept, limits)
    if origin is Literal:
        return WordKind(tuple(map(str, arguments)))
    if origin is tuple:
        return ListKind(_kind_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return EntriesKind(_text(get_args(arguments[0])), _kind_of(arguments[1]))
    return _kind_of_class(annotation, limits)


def _kind_of_class(annotation: object, limits: Sequence[object]) -> Kind:
    simple: Mapping[object, Kind] = {bool: PlainKind.BOOLEAN, datetime: PlainKind.TIME, timedelta: PlainKind.DURATION}
    if annotation in simple:
        return simple[annotation]
    if annotation is int:
        limit = _limits(limits)
        lowest, highest = (None if end is None else int(end) for end in (limit.ge, limit.le))
        is_size = any(isinstance(each, InBytes) for each in limits)
        return SizeKind(lowest or 0) if is_size else IntegerKind(lowest, highest)
    if annotation is str:
        return _text(limits)
    if isinstance(annotation, type) and issubclass(annotation, Written):
        return ModelKind(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return WordKind(tuple(word.value for word in annotation))
    raise TypeError(f"no kind of value for {annotation!r}")


def _text(limits: Sequence[object]) -> TextKind:
    limit = _limits(limits)
    return TextKind(limit.max_length, limit.pattern)


def _limits(limits: Sequence[object]) -> Meta:
    return next((limit for limit in limits if isinstance(limit, Meta)), Meta())
