"""Ends or pauses this process at a named step of the journal protocol. Only this module reads these variables:

``TOPICOPS_KILL_POINT``
    ``before`` or ``after``, a step, and its subject if it has one; then, with ``#``, at which occurrence:
    ``before intent``, ``after request delete``, ``before outcome #2``, ``after write report.txt``. ``during request``
    is a moment after the request left; an answer that is quicker waits for that moment.
``TOPICOPS_KILL_ACTION``
    ``kill`` (the default), ``stop``, ``term``, ``int`` or ``hup``: the signal that the process sends itself.
``TOPICOPS_KILL_TRACE``
    A file to which every point is added, a line each, when it is reached.

The steps, in the order of one request: ``lease`` (taken), ``snapshot``, ``validate``, ``recheck``, ``intent``,
``confirm``, ``request`` with its action, ``audit``, ``outcome``; at the end ``release``. ``write`` has the name of the
artifact. Before all these, in a run that recovers an earlier one: ``earlier audit``, ``earlier outcome``.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from topicops.edges.home.artifacts import ArtifactStore
from topicops.flow.runs.access import PortWrappers
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, TopicTraces
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Answer, AuditLog, Journal, Lease, LiveReader, TopicAdmin
from topicops.model.runs.results import Mutation, Outcome

T = TypeVar("T")

POINT, ACTION, TRACE = "TOPICOPS_KILL_POINT", "TOPICOPS_KILL_ACTION", "TOPICOPS_KILL_TRACE"
SIGNALS: Mapping[str, signal.Signals] = {
    "kill": signal.SIGKILL,
    "stop": signal.SIGSTOP,
    "term": signal.SIGTERM,
    "int": signal.SIGINT,
    "hup": signal.SIGHUP,
}
MOMENT_S = 0.02
"""How long after a request ``during`` strikes."""


class KillPoints:
    """Counts the points that are reached; acts at the wanted one.

    Args:
        wanted: ``before request create #2``; empty: none.
        trace: A file for each point that is reached; None: no file.
        strike: Called at the wanted point.

    """

    def __init__(self, wanted: str, *, trace: Path | None, strike: Callable[[], None]) -> None:
        name, _, number = wanted.partition("#")
        self._wanted = name.split()
        self._number = int(number or 1)
        self._trace = trace
        self._strike = strike
        self._reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        self._note(point)
        if self._is_wanted(point):
            self._strike()

    def around(self, step: str, work: Callable[[], T]) -> T:
        self.reach(f"before {step}")
        result = work()
        self.reach(f"after {step}")
        return result

    def around_request(self, step: str, work: Callable[[], T]) -> T:
        """Like ``around``, with a point in between."""
        self.reach(f"before {step}")
        point = f"during {step}"
        self._note(point)
        wanted = self._is_wanted(point)
        moment = threading.Timer(MOMENT_S, self._strike)
        if wanted:
            moment.start()
        result = work()
        if wanted:
            moment.join()
        self.reach(f"after {step}")
        return result

    def _note(self, point: str) -> None:
        if self._trace is not None:
            with self._trace.open("a", encoding="utf-8") as file:
                file.write(f"{point}\n")

    def _is_wanted(self, point: str) -> bool:
        words = point.split()
        if not self._wanted or words[: len(self._wanted)] != self._wanted:
            return False
        self._reached[" ".join(self._wanted)] += 1
        return self._reached.total() == self._number


def from_environment() -> KillPoints:
    """The kill points of the variables. Raises ``KeyError`` for an unknown action."""
    number = SIGNALS[os.environ.get(ACTION, "kill")]
    trace = os.environ.get(TRACE)
    return KillPoints(
        os.environ.get(POINT, ""),
        trace=Path(trace) if trace else None,
        strike=lambda: os.kill(os.getpid(), number),
    )


class KillPointWrappers(PortWrappers):
    """Every port, with a kill point before and after each call."""

    def __init__(self, points: KillPoints) -> None:
        self._points = points

    def store(self, store: ArtifactStore) -> ArtifactStore:
        return _Store(store.folder, self._points)

    def lease(self, lease: AbstractContextManager[Lease]) -> AbstractContextManager[Lease]:
        return _leased(lease, self._points)

    def reader(self, reader: LiveReader) -> LiveReader:
        return _Reader(reader, self._points)

    def admin(self, admin: TopicAdmin) -> TopicAdmin:
        return _Admin(admin, self._points)

    def journal(self, journal: Journal) -> Journal:
        return _Journal(journal, self._points)

    def audit(self, audit: AuditLog) -> AuditLog:
        return _Audit(audit, self._points)

    def earlier_journal(self, journal: Journal) -> Journal:
        return _Journal(journal, self._points, "earlier ")

    def earlier_audit(self, audit: AuditLog) -> AuditLog:
        return _Audit(audit, self._points, "earlier ")


class _Store(ArtifactStore):
    def __init__(self, folder: Path, points: KillPoints) -> None:
        super().__init__(folder)
        object.__setattr__(self, "points", points)  # the class is frozen

    points: KillPoints

    def _write(self, name: str, content: bytes) -> Path:
        return self.points.around(f"write {name}", lambda: super(_Store, self)._write(name, content))


@contextmanager
def _leased(lease: AbstractContextManager[Lease], points: KillPoints) -> Iterator[Lease]:
    points.reach("before lease")
    with _LeaseContext(lease, points) as held:
        points.reach("after lease")
        yield _Lease(held, points)


class _LeaseContext:
    def __init__(self, lease: AbstractContextManager[Lease], points: KillPoints) -> None:
        self._lease, self._points = lease, points

    def __enter__(self) -> Lease:
        return self._lease.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._points.around("release", lambda: self._lease.__exit__(kind, error, trace))


class _Lease:
    def __init__(self, lease: Lease, points: KillPoints) -> None:
        self._lease, self._points = lease, points

    def confirm(self) -> None:
        self._points.around("confirm", self._lease.confirm)

    def zxid(self) -> int | None:
        return self._lease.zxid()


class _Reader:
    def __init__(self, reader: LiveReader, points: KillPoints) -> None:
        self._reader, self._points = reader, points

    def snapshot(self, *, states: bool = False) -> ClusterSnapshot:
        return self._points.around("snapshot", lambda: self._reader.snapshot(states=states))

    def traces(self, topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        return self._points.around("recheck", lambda: self._reader.traces(topics, states=states))

    def brokers(self) -> Mapping[int, Broker]:
        return self._reader.brokers()

    def controller_epoch(self) -> int | None:
        return self._reader.controller_epoch()

    def controller_id(self) -> int | None:
        return self._reader.controller_id()

    def require_describable(self, topics: Sequence[str]) -> None:
        self._reader.require_describable(topics)

    def catch_up_with(self, lease: Lease) -> None:
        self._reader.catch_up_with(lease)


class _Admin:
    def __init__(self, admin: TopicAdmin, points: KillPoints) -> None:
        self._admin, self._points = admin, points

    def cluster_id(self) -> str:
        return self._admin.cluster_id()

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        return self._points.around("validate", lambda: self._admin.validate(changes))

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]:
        return self._points.around_request("request create", lambda: self._admin.create(changes))

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]:
        return self._points.around_request("request expand", lambda: self._admin.expand(changes))

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]:
        return self._points.around_request("request configure", lambda: self._admin.configure(changes))

    def delete(self, change: DeleteTopic) -> Answer:
        return self._points.around_request("request delete", lambda: self._admin.delete(change))


class _Journal:
    def __init__(self, journal: Journal, points: KillPoints, prefix: str = "") -> None:
        self._journal, self._points, self._prefix = journal, points, prefix

    def intend(self, changes: Sequence[GatedChange]) -> None:
        self._points.around(f"{self._prefix}intent", lambda: self._journal.intend(changes))

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self._points.around(f"{self._prefix}outcome", lambda: self._journal.record(outcomes))


class _Audit:
    def __init__(self, audit: AuditLog, points: KillPoints, prefix: str = "") -> None:
        self._audit, self._points, self._prefix = audit, points, prefix

    def append(self, mutations: Sequence[Mutation]) -> None:
        self._points.around(f"{self._prefix}audit", lambda: self._audit.append(mutations))
