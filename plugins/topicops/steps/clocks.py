"""What this host's clock says beside a server's: a time that both have passed, and a difference that is too large."""

from __future__ import annotations

from datetime import datetime, timedelta

from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.ports import Clock, ServerTime
from topicops.model.release import KRAFT
from topicops.model.specs.environment import EnvironmentSpec
from topicops.model.specs.topic_config import ConfigValueError, read_duration_ms

NOTED_ABOVE = timedelta(seconds=10)
"""Difference from which a note is written. It is not measured if a server answers slowly: only certain ones count."""
PART_OF_REST = 10
"""The part of ``policy.restsFor`` by which two clocks may differ when a topic is deleted: the tenth."""
SECOND = timedelta(seconds=1)
NO_SERVER_TIME = (
    f"no server tells its time, so only this host's clock says how old the last record is ({Code.CLOCK_SKEW}); keep "
    f"the lease in ZooKeeper (cluster.lease: zookeeper), or use KRaft controllers of Kafka {KRAFT} or later; "
    "policy.restsFor: 0s compares the end offsets alone"
)


def ahead_of(server: ServerTime | None, clock: Clock) -> timedelta:
    """Return how far this host's clock is surely ahead of the server's; negative: behind; zero: no sure difference."""
    if server is None:
        return timedelta(0)
    ours, now = clock.utc(), clock.now()
    earliest = server.at + timedelta(seconds=now - server.answered_at)
    latest = server.at + timedelta(seconds=now - server.asked_at)
    return max(ours - latest, timedelta(0)) + min(ours - earliest, timedelta(0))


def passed_by_both(server: ServerTime | None, clock: Clock) -> datetime:
    """Return the earlier of both clocks' times: what waits for a time may run only when each clock has passed it."""
    return clock.utc() - max(ahead_of(server, clock), timedelta(0))


def reached_by_either(server: ServerTime | None, clock: Clock) -> datetime:
    """Return a time that neither clock has passed, whichever clock a compared time comes from."""
    return clock.utc() + abs(ahead_of(server, clock))


def difference_text(server: ServerTime | None, clock: Clock) -> str:
    """Return both clocks' times, where they differ by more than ``NOTED_ABOVE``; else an empty text."""
    ahead = ahead_of(server, clock)
    return _text(server, clock, ahead) if server and abs(ahead) > NOTED_ABOVE else ""


def rest_objection(server: ServerTime | None, clock: Clock, environment: EnvironmentSpec) -> str | None:
    """Return why the age of a record may not be judged by this host's clock; None where it may.

    Production needs a server that tells its time; else this host's clock alone may do.
    """
    rests_for = environment.rests_for
    if not rests_for:
        return None
    if server is None:
        return NO_SERVER_TIME if environment.cluster.cluster_class == "production" else None
    ahead = ahead_of(server, clock)
    if abs(ahead) * PART_OF_REST <= rests_for:
        return None
    return f"{_text(server, clock, ahead)}; repair time synchronisation, then run again"


def _text(server: ServerTime, clock: Clock, ahead: timedelta) -> str:
    ours, word = clock.utc(), "ahead of" if ahead > timedelta(0) else "behind"
    times = f"{ours:%Y-%m-%dT%H:%M:%SZ} here, {ours - ahead:%Y-%m-%dT%H:%M:%SZ} there"
    difference = f"{abs(ahead) // SECOND * SECOND} {word} that of {server.server}"
    return f"this host's clock is {difference}: {times} ({Code.CLOCK_SKEW})"


def since_time(text: str, at: datetime) -> datetime:
    """Return the time that ``7d`` before ``at`` is, or the time itself. Raises ``UsageError``."""
    try:
        return at - timedelta(milliseconds=read_duration_ms(text))
    except (ConfigValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--since {text}: write 36h, 7d, 2026-01-31 or 2026-01-31T08:00:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=at.tzinfo)
