"""The ports: what steps ask of outside systems. Edges implement them, and fakes in ``testing/`` do.

Every step that waits takes one ``Clock``; ``apply`` takes its other ports together, as ``ApplyPorts``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import (
    Broker,
    ClusterSnapshot,
    DirectoriesByBroker,
    LiveTopic,
    LogDirectories,
    TopicTraces,
)
from topicops.model.errors import OldBrokersError
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange, TopicActivity
from topicops.model.release import OLDEST, MissingRequests, Releases
from topicops.model.runs.results import Mutation, Outcome, OutcomeStatus

BROKER_PATIENCE = "TOPICOPS_BROKER_PATIENCE"
"""The variable that gives brokers more time for each question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFields:
    """The fields of a connection; ``repr`` leaves out those that may hold secrets."""

    conn_type: str
    host: str = ""
    port: int | None = None
    login: str = ""
    password: str = field(default="", repr=False)
    schema: str = ""
    """The path of a URI, without its first slash; a ZooKeeper's chroot."""
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)
    callbacks: str = ""
    """Dotted paths of the functions that a connection may name, with commas; they do not come from the connection."""


ConnectionSource = Callable[[str], ConnectionFields]
"""Function that finds a connection by id. Raises ``UsageError`` if there is none; the text shows no value."""


class TopicSink(Protocol):
    """Takes the topics of a snapshot while they are read, so that no code has to hold all of them."""

    def begin(self) -> None:
        """Forget what came before: the reading begins, or begins again."""
        ...

    def take(self, topics: Sequence[LiveTopic]) -> None:
        """More topics; each topic comes once. Most of them come by name, those created meanwhile at the end."""
        ...

    def finish(self) -> Mapping[str, LiveTopic]:
        """Return all that were taken since the last ``begin``, by name."""
        ...


class LiveReader(Protocol):
    """Reads the live cluster; never writes. Raises ``ClusterError`` rather than return a part."""

    @property
    def chroot(self) -> str:
        """The path of the cluster's root in ZooKeeper; empty without one."""
        ...

    @property
    def lag_s(self) -> float:
        """How long a change may take until this reader sees it."""
        ...

    def cluster_id(self) -> str: ...

    def snapshot(self, *, states: bool = False, into: TopicSink | None = None) -> ClusterSnapshot:
        """Return the whole cluster. Its topics are what the sink makes of them; None means a mapping in memory."""
        ...

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        """Return everything that exists now under these names; one entry for each name."""
        ...

    def brokers(self) -> Mapping[int, Broker]: ...

    def controller_epoch(self) -> int | None:
        """Rises with each new controller; None if the source does not know it."""
        ...

    def controller_id(self) -> int | None:
        """Return None while none is elected."""
        ...

    def require_describable(self, topics: Sequence[str]) -> None:
        """Raise ``ClusterError`` unless the reader may see each of these topics, whether it exists or not."""
        ...

    def server_time(self) -> ServerTime | None:
        """Return the time of day by a server's own clock; None where no answer of the source tells it."""
        ...

    def catch_up_with(self, lease: Lease) -> None:
        """Refuse, from now on, a server that has not seen every change that the lease's session has seen.

        Such a server is cut off from the others. Only ZooKeeper's servers can be: another source ignores this.
        """
        ...


class AnswerKind(StrEnum):
    """What the answer to one request means for its change."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    """This request had no effect, and a second one would fail the same way.

    The client itself may have sent it before, with effect: one reading shows that, without a wait.
    """
    UNCLEAR = "unclear"
    """The request had an effect, or may have: read back until that is known, and do not send it again before."""
    RETRY = "retry"
    """The request had no effect; after a wait and a new reading it may be sent again."""
    CONTROLLER_MOVED = "controller moved"
    """The request went to a former controller: read back; without effect, it may be sent again."""
    SEND_ALONE = "send alone"
    """The client refused a request of several changes, because of one of them, and sent nothing: send each alone."""


@dataclass(frozen=True, slots=True)
class Answer:
    kind: AnswerKind
    error: str = ""
    """``NAME (code): message``; empty when accepted."""
    wait_s: float = 0.0
    """Seconds for which a quota makes these brokers delay the next request."""
    left: bool = True
    """Whether a request was sent for it."""

    @property
    def name(self) -> str:
        """Kafka's name of the error; empty when accepted."""
        return self.error.partition(" ")[0]


class TopicAdmin(Protocol):
    """The only way to change a cluster.

    One answer for each change, in the given order; a topic that fails does not stop the others.
    """

    def cluster_id(self) -> str: ...

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Ask the brokers for a dry run; deletes have none and count as accepted."""
        ...

    def get_ready(self, change: Change) -> None:
        """Connect and wait, at most 20 s, until the brokers have a controller: a request of this kind may follow.

        It then goes out without such a wait, or is answered ``RETRY`` because there is no controller.
        """
        ...

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]: ...

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]: ...

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]: ...

    def delete(self, change: DeleteTopic) -> Answer: ...


class Unoffered(str):
    """A sentence: the broker offers no such request, so that it will never answer it. Other sentences are refusals."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition in one broker's metadata."""

    leader: int
    """Id of the leader; -1 means none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """One broker's own metadata."""

    topics: Mapping[str, Mapping[int, PartitionView]]
    """Views by topic, without topics that the broker does not know."""
    brokers: frozenset[int]
    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids as in ``LiveTopic``, without topics for which the broker gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuestions:
    """The questions to one broker about logs, by topic."""

    held: Mapping[str, Collection[int]]
    """Partitions of which a broker must have a replica, or must have none any more."""
    led: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    """Partitions that it must lead, with the leader epoch; None means not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogs(LogDirectories):
    """The logs on one broker's disks, and whether its leaders can be read; only the partitions asked for."""

    idle: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Partitions with a log that is not in use."""
    unread: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Partitions without an end offset, with the broker's error as ``NAME (code)``."""
    unoffered: str = ""
    """The sentence of a broker that offers no request about its disks: what it holds is not known."""


class BrokerMetadata(Protocol):
    """Each broker's own metadata and logs, for verify. A broker without an answer in time gives a sentence."""

    def views(self, brokers: Sequence[int], topics: Sequence[str] | None) -> Mapping[int, BrokerView | str]:
        """Return each broker's metadata of these topics; of all its topics if ``topics`` is None."""
        ...

    def logs(self, questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        """Return each broker's own logs."""
        ...

    def overrides(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | str]:
        """Return the configs set on each topic, from one of the brokers; for an unknown topic a sentence."""
        ...


class ClusterQuestions(Protocol):
    """Questions that only brokers can answer; a plan asks them once, with a deadline."""

    def broker_defaults(self) -> BrokerDefaults:
        """Default of each topic config by broker, or a sentence why it gave none; empty if no broker answers."""
        ...

    def releases(self) -> Releases | None:
        """Return the releases of the brokers that answer, or None. Raises ``OldBrokersError`` below ``OLDEST``."""
        ...

    def missing_requests(self) -> MissingRequests:
        """Return what brokers do not offer, as far as they answer."""
        ...

    def activity(self, topics: Sequence[str]) -> Mapping[str, TopicActivity]: ...

    def log_directories(self, topics: Mapping[str, Collection[int]]) -> DirectoriesByBroker:
        """Return the log directories of every broker, and where it has a log of these partitions, by topic."""
        ...


def supported(releases: Releases) -> Releases:
    """Return the same releases. Raises ``OldBrokersError`` if one is below ``OLDEST``."""
    if releases.oldest < OLDEST:
        raise OldBrokersError(f"brokers run Kafka {releases.oldest}; topicops supports {OLDEST} and later")
    return releases


class Lease(Protocol):
    """The right to change one cluster; one process at a time has it."""

    def confirm(self) -> None:
        """Check that this process still has the lease. Raises ``LeaseLostError``."""
        ...

    def zxid(self) -> int | None:
        """Return the newest ZooKeeper transaction that the lease's session has seen; None without ZooKeeper."""
        ...

    def server_time(self) -> ServerTime | None:
        """Return when the lease was written, by the clock of the server that keeps it; None without one."""
        ...


class Journal(Protocol):
    """What this run will send, and the outcomes; durable before each call returns."""

    def intend(self, changes: Sequence[GatedChange]) -> None:
        """Note changes before their request. Raises ``ArtifactError``: then it must not be sent."""
        ...

    def record(self, outcomes: Sequence[Outcome]) -> None: ...


class AuditLog(Protocol):
    """Everything that was ever sent to one environment's cluster; no line is ever removed."""

    def append(self, mutations: Sequence[Mutation]) -> None:
        """Add a line for each; durable when it returns. Raises ``ArtifactError``: then none was added."""
        ...


@dataclass(frozen=True, slots=True)
class Begun:
    """What became of one change of ``Mover.begin``."""

    status: OutcomeStatus
    """``MOVING``, ``DONE`` if it needed no copy, ``REFUSED`` or ``FAILED``."""
    message: str = ""
    sent: bool = False
    """Whether a request was sent for it."""


class Mover(Protocol):
    """Moves replicas: accepts approved changes, and makes the first step. Later steps carry them on."""

    def begin(self, changes: Sequence[GatedChange]) -> Mapping[str, Begun]:
        """Record the changes, durably, then make one step of a few seconds. Gives what became of each, by digest.

        Raises ``TopicopsError`` before anything was recorded; what fails later is in the answers.
        """
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
    """Questions to the brokers; None means that they cannot be asked whether a topic is in use."""
    mover: Mover | None = None
    """What moves replicas; None means that this installation moves none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """Time of day by a server's own clock, as one answer gave it."""

    server: str
    """Name of the server, as it ends a sentence: ``ZooKeeper``."""
    at: datetime
    asked_at: float
    """Time when the request left, by ``Clock.now``."""
    answered_at: float
    """Time when its answer came, by ``Clock.now``; the server's clock showed ``at`` in between."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and waiting for a step; by default the time of this machine."""

    now: Callable[[], float] = time.monotonic
    """Seconds that only grow, from any start."""
    sleep: Callable[[float], None] = time.sleep
    """Waits for so many seconds."""
    utc: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The time of day, to compare with times of others."""
