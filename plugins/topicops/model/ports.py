"""The ports: what the steps ask of the world. Edges fill them; fakes in ``testing/`` do too.

Every step that waits takes one ``Clock``; ``apply`` takes its other ports together, as ``ApplyPorts``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, TopicTraces
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange, TopicActivity
from topicops.model.runs.results import Mutation, Outcome


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

    def controller_id(self) -> int | None:
        """None while none is elected."""
        ...

    def require_describable(self, topics: Sequence[str]) -> None:
        """Raise ``ClusterError`` unless the reader may see each of these topics, whether it exists or not."""
        ...

    def catch_up_with(self, lease: Lease) -> None:
        """Refuse, from now on, a server that has not seen every change that the lease's session has seen.

        Such a server is cut off from the others. Only ZooKeeper's servers can be: another source ignores this.
        """
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
    left: bool = True
    """False: no request left for it."""


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
    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Without the topics to which the broker gives none; as in ``LiveTopic``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuestions:
    """What one broker is asked about logs, by topic."""

    held: Mapping[str, Collection[int]]
    """Partitions of which it should hold a replica, or shall hold none any more."""
    led: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    """Partitions that it should lead, with the leader epoch; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogs:
    """What lies on one broker's disks, and whether what it leads can be read; only of what was asked."""

    held: Mapping[str, frozenset[int]]
    """Partitions with a log that the broker serves; not on a failed disk, no copy that is still being made."""
    idle: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Partitions with a log that it does not serve."""
    unread: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Partitions of which it tells no end offset, with its error as ``NAME (code)``."""


class BrokerMetadata(Protocol):
    """The second side of verify: what the brokers themselves say. No answer within a deadline is a sentence."""

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        """Each broker's own view of these topics; of all that it knows where ``topics`` is None."""
        ...

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        """Each broker's own logs."""
        ...

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        """What is set on each topic itself, as one of the brokers writes it; for an unknown topic a sentence."""
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

    def zxid(self) -> int | None:
        """The newest ZooKeeper transaction that the lease's session has seen; None without ZooKeeper."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPorts:
    """All that ``apply`` needs of the world, beside a clock."""

    reader: LiveReader
    admin: TopicAdmin
    lease: Lease
    journal: Journal
    audit: AuditLog
    questions: ClusterQuestions | None
    """None: the brokers cannot be asked whether a topic is in use."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How a step tells the time and waits; by default the time of this machine."""

    now: Callable[[], float] = time.monotonic
    """Seconds that only grow, from any start."""
    sleep: Callable[[float], None] = time.sleep
    """Waits for so many seconds."""
