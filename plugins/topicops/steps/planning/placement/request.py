"""What a placement is asked for and what it may answer; rows that a spec gives by hand are checked here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.snapshot import Assignment
from topicops.model.errors import TopicopsError
from topicops.model.printable import plural


class PlacementError(TopicopsError):
    """These replicas cannot be placed on these brokers."""


class TooFewBrokersError(PlacementError):
    """The replication factor is below 1, or above the number of live brokers (Kafka's error 38)."""


class BadPartitionCountError(PlacementError):
    """There is nothing to add (Kafka's error 37), or partition 0, which an expansion follows, is missing."""


class MixedRacksError(PlacementError):
    """Some brokers have a rack and some have none (Kafka's AdminOperationException)."""


class BadAssignmentError(PlacementError):
    """Replicas given by hand break Kafka's rules (Kafka's error 39)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many replicas and first replicas each broker holds; a broker without any may be left out."""

    replicas: Mapping[int, int] = field(default_factory=dict)
    leaders: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, assignments: Iterable[Assignment]) -> Load:
        replicas: Counter[int] = Counter()
        leaders: Counter[int] = Counter()
        for assignment in assignments:
            _count(assignment, replicas, leaders)
        return cls(replicas=replicas, leaders=leaders)

    def plus(self, assignment: Assignment) -> Load:
        replicas, leaders = Counter(self.replicas), Counter(self.leaders)
        _count(assignment, replicas, leaders)
        return Load(replicas=replicas, leaders=leaders)

    def minus(self, assignment: Assignment) -> Load:
        """Return the load without these replicas, each of which it has counted."""
        less = Load.of([assignment])
        replicas, leaders = Counter(self.replicas), Counter(self.leaders)
        replicas.subtract(less.replicas)
        leaders.subtract(less.leaders)
        return Load(replicas=replicas, leaders=leaders)


def _count(assignment: Assignment, replicas: Counter[int], leaders: Counter[int]) -> None:
    replicas.update(chain.from_iterable(assignment.values()))
    leaders.update(row[0] for row in assignment.values() if row)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """One topic that needs new partitions, and the cluster that gets them."""

    topic: str
    partitions: int
    """The total after the change."""
    replication_factor: int
    racks: Mapping[int, str | None]
    """Rack by live broker."""
    existing: Assignment = field(default_factory=dict)
    """Rows that are live already; empty for a create."""
    rack_aware: bool = True
    load: Load = field(default_factory=Load)
    """The cluster's load with all changes planned so far; includes the topic's own rows."""
    manual: Assignment | None = None
    """The rows that the spec gives, of all partitions."""

    @property
    def new_partitions(self) -> range:
        return range(len(self.existing), self.partitions)


PlacementFunction = Callable[[PlacementRequest], Assignment]


def known_racks(racks: Mapping[int, str | None]) -> Mapping[int, str] | None:
    """Rack by broker; None when no broker has one. Raises ``MixedRacksError`` when only some have one."""
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    if not known:
        return None
    if len(known) < len(racks):
        raise MixedRacksError(f"others have a rack, but not {brokers_text(set(racks) - set(known))}")
    return known


def check_numbers(brokers: Sequence[int], partitions: int, replication_factor: int) -> None:
    """Kafka's own first checks, in its order.

    Raises:
        BadPartitionCountError: ``partitions`` is not positive.
        TooFewBrokersError: ``replication_factor`` is not positive, or above the number of brokers.
    """
    if partitions <= 0:
        raise BadPartitionCountError(f"{partitions} partitions cannot be placed; at least 1 is needed")
    if not 0 < replication_factor <= len(brokers):
        raise TooFewBrokersError(f"replication factor {replication_factor} on {plural(len(brokers), 'live broker')}")


def place_by_hand(request: PlacementRequest) -> Assignment:
    """Return the rows of the new partitions, as given.

    Raises:
        BadAssignmentError: With every problem of the rows.
        MixedRacksError: On an expansion, which the broker refuses while only some brokers have a rack.
    """
    rows = request.manual or {}
    if problems := list(assignment_problems(rows, request)):
        raise BadAssignmentError(f"{request.topic}: " + "; ".join(problems))
    if request.existing:
        known_racks(request.racks)
    return {partition: tuple(rows[partition]) for partition in request.new_partitions}


def assignment_problems(rows: Assignment, request: PlacementRequest) -> Iterator[str]:
    """Yield a sentence for each rule that the rows break. On a create, Kafka itself checks only some of them."""
    if not rows:
        yield "there is no row"
    elif sorted(rows) != list(range(request.partitions)):
        yield f"partition ids must be 0 to {request.partitions - 1}"
    for partition in sorted(rows):
        for problem in _row_problems(tuple(rows[partition]), request.existing.get(partition), request):
            yield f"partition {partition} {problem}"


def _row_problems(row: Sequence[int], live: Sequence[int] | None, request: PlacementRequest) -> Iterator[str]:
    if not row:
        yield "has no replica"
    elif len(row) != request.replication_factor:
        yield f"has {plural(len(row), 'replica')} instead of {request.replication_factor}"
    if len(set(row)) < len(row):
        yield "names a broker twice"
    if live is None and (unknown := sorted(set(row) - request.racks.keys())):
        yield f"names {brokers_text(unknown)}, not live"
    if live is not None and tuple(live) != tuple(row):
        yield f"is on {list(live)}, and no expansion moves it"
