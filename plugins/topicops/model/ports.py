"""The ports: what the steps ask of the world. Edges fill them; fakes in ``testing/`` do too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from topicops.model.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plan import GatedChange, TopicActivity
from topicops.model.results import Mutation, Outcome
from topicops.model.snapshot import Broker, ClusterSnapshot, TopicTraces


class LiveReader(Protocol):
    """Reads the live cluster; never writes. Raises ``ClusterError``, never returns half a picture."""

    def snapshot(self, *, states: bool = False) -> ClusterSnapshot: ...

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        """Everything that stands under the names right now; an entry for each of them."""
        ...

    def brokers(self) -> Mapping[int, Broker]: ...

    def controller_epoch(self) -> int | None:
        """Changes with each controller; None where the source cannot tell."""
        ...


class AnswerKind(StrEnum):
    """What a broker's answer to one mutation means for the change."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    """This request did nothing, and another one would end the same way.

    The client may have sent it before, by itself and with effect: one look tells, no waiting.
    """
    UNCLEAR = "unclear"
    """It did happen, or may yet: read back until that is known, never send again blindly."""
    RETRY = "retry"
    """It did not happen; after a wait and a fresh look it may be sent again."""
    CONTROLLER_MOVED = "controller moved"
    """It went to a broker that is no longer the controller: read back; what is not in effect may be sent again."""


@dataclass(frozen=True, slots=True)
class Answer:
    kind: AnswerKind
    error: str = ""
    """``NAME (code): message``; empty when accepted."""
    wait_s: float = 0.0
    """How long a quota keeps these brokers from taking the next request."""


class TopicAdmin(Protocol):
    """The only way to mutate a cluster.

    One answer for each change, in the order given; one bad topic stops no other.
    """

    def cluster_id(self) -> str: ...

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """The brokers' own dry run; deletes have none and are accepted."""
        ...

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]: ...

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]: ...

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]: ...

    def delete(self, change: DeleteTopic) -> Answer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """What one broker believes of one partition."""

    leader: int
    """-1: none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """One broker's own metadata."""

    topics: Mapping[str, Mapping[int, PartitionView]]
    """Without the names it does not know."""
    brokers: frozenset[int]
    directories: Mapping[str, frozenset[int]] | str | None = None
    """Partitions with a log on one of this broker's disks; a sentence where it did not tell; None: not asked."""


class BrokerMetadata(Protocol):
    """The second side of verify: what the brokers themselves say."""

    def views(self, brokers: Sequence[int], topics: Sequence[str]) -> Mapping[int, BrokerView | str]:
        """Each broker's own view; a sentence instead of a view where it gave none within its deadline."""
        ...


class ClusterQuestions(Protocol):
    """What only brokers know and a plan may ask once, with a deadline."""

    def broker_defaults(self) -> Mapping[str, str] | None:
        """Effective default of each topic config; None when nobody answered."""
        ...

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]: ...


class Lease(Protocol):
    """The right to mutate one cluster, held by one process at a time."""

    def confirm(self) -> None:
        """Look again whether it is ours. Raises ``LeaseLostError``."""
        ...


class Journal(Protocol):
    """What this run is about to do, and what came of it; durable before it returns."""

    def intend(self, changes: Sequence[GatedChange]) -> None:
        """Before the request that carries them. Raises ``ArtifactError``: then it must not be sent."""
        ...

    def record(self, outcomes: Sequence[Outcome]) -> None: ...


class AuditLog(Protocol):
    """What was ever sent to one environment's cluster; nothing is taken out of it."""

    def append(self, mutations: Sequence[Mutation]) -> None:
        """Durable before it returns. Raises ``ArtifactError``: then none of them is in it."""
        ...
