"""Is a topic still as the plan saw it, already as the change would make it, or something else?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from typing import assert_never

from topicops.model.cluster.snapshot import Assignment, LiveTopic, TopicTraces
from topicops.model.codes import Code
from topicops.model.json_types import assignment_digest
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.plans.plan import ActivityOfHiddenGroups, GatedChange, Plan, TopicActivity
from topicops.model.ports import BROKER_PATIENCE, Clock, ClusterQuestions, ServerTime
from topicops.model.printable import or_not_set
from topicops.model.release import NEWEST_RECORDS
from topicops.model.specs.environment import EnvironmentSpec
from topicops.model.specs.topic_config import canonical_overrides
from topicops.steps.before_deletes import CHECK_BY_HAND, HIDDEN_GROUPS, STOP_CLIENTS, recent_record, use_by_groups
from topicops.steps.clocks import passed_by_both, rest_objection

ROWS_SHOWN = 10
"""Most rows of an assignment that are shown; a topic may have thousands of partitions."""


class Match(StrEnum):
    BEFORE = "before"
    """The precondition holds: the change may be sent."""
    AFTER = "after"
    """The live topic is as the change would make it."""
    CHANGED = "changed"
    """The topic is in neither state; another program changed it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the live topic compares with a change."""

    match: Match
    differences: tuple[str, ...] = ()
    """Differences of a changed topic: one ``field: planned x, live y`` for each field that is not as planned."""

    @property
    def refusal(self) -> str:
        """Only when changed: why the change is not sent."""
        return f"the topic changed since the plan ({Code.STALE_PLAN}): {'; '.join(self.differences)}; plan again"


def compare(change: Change, traces: TopicTraces) -> Comparison:
    """Compare one change with what the cluster has under the topic's name right now."""
    if _is_after(change, traces):
        return Comparison(Match.AFTER)
    differences = tuple(_differences(change, traces))
    return Comparison(Match.CHANGED, differences) if differences else Comparison(Match.BEFORE)


def _is_after(change: Change, traces: TopicTraces) -> bool:
    live = traces.live
    match change:
        case CreateTopic():
            return live is not None and not any(_created_differences(change, traces, live))
        case ExpandTopic():
            return live is not None and not any(_expanded_differences(change, traces, live))
        case ConfigureTopic():
            return live is not None and not any(_config_differences(change, traces, live, change.configs))
        case ReassignTopic():
            return live is not None and not any(_placed_differences(change, traces, live, change.assignment))
        case DeleteTopic():
            return _is_deleted(change, traces)
    assert_never(change)


def _differences(change: Change, traces: TopicTraces) -> Iterator[str]:
    live = traces.live
    if isinstance(change, CreateTopic):
        return _absence_differences(change, traces)
    if live is None:
        return iter(["topic: planned present, live absent"])
    match change:
        case ExpandTopic():
            return _unexpanded_differences(change, traces, live)
        case ConfigureTopic():
            return _unconfigured_differences(change, traces, live)
        case ReassignTopic():
            return _placed_differences(change, traces, live, change.assignment_before)
        case DeleteTopic():
            return _undeleted_differences(change, traces, live)
    assert_never(change)


def _absence_differences(change: CreateTopic, traces: TopicTraces) -> Iterator[str]:
    if traces.is_deleting:
        yield "topic: planned absent, live marked for deletion"
    elif traces.live is not None:
        yield "topic: planned absent, live present"
        yield from _created_differences(change, traces, traces.live)


def _created_differences(change: CreateTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    yield from _movement_differences(traces, live)
    yield from _unequal("partitions", change.partitions, live.partitions)
    if not change.assignment:
        yield from _unequal("replication factors", [change.replication_factor], sorted(live.replication_factors))
    yield from _row_differences(change.assignment, live.assignment)
    yield from _override_differences(canonical_overrides(change.configs), live, exact=True)


def _expanded_differences(change: ExpandTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    yield from _existence_differences(change, traces, live)
    yield from _unequal("partitions", change.partitions, live.partitions)
    yield from _row_differences(change.assignment, live.target_assignment)
    yield from _digest_differences(change, live, partitions=change.partitions_before)


def _unexpanded_differences(change: ExpandTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    yield from _existence_differences(change, traces, live)
    if live.partitions != change.partitions_before:
        yield f"partitions: planned {change.partitions_before}, live {live.partitions}"
        return
    yield from _digest_differences(change, live, partitions=change.partitions_before)


def _config_differences(
    change: ConfigureTopic, traces: TopicTraces, live: LiveTopic, configs: Mapping[str, str | None]
) -> Iterator[str]:
    if traces.is_deleting:
        yield "topic: planned present, live marked for deletion"
    yield from _another_topic(change.precondition.identity, live)
    yield from _override_differences(configs, live, exact=False)


def _unconfigured_differences(change: ConfigureTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    expected = change.precondition
    if not expected.all_overrides:
        yield from _config_differences(change, traces, live, expected.overrides or change.configs_before)
        return
    # The request would put back the throttles of a reassignment, or take them away.
    yield from _movement_differences(traces, live)
    yield from _another_topic(expected.identity, live)
    yield from _override_differences(expected.overrides or {}, live, exact=True)


def _placed_differences(change: ReassignTopic, traces: TopicTraces, live: LiveTopic, rows: Assignment) -> Iterator[str]:
    """Yield what differs from a topic at rest that has these rows, in the order of their replicas too."""
    yield from _existence_differences(change, traces, live)
    if gone := sorted(rows.keys() - live.assignment.keys()):
        yield f"partitions: planned {len(rows)} to move, {len(gone)} of them not live"
    yield from _first_rows(list(_row_differences(rows, live.assignment)))


def _first_rows(changed: Sequence[str]) -> Iterator[str]:
    yield from changed[:ROWS_SHOWN]
    if len(changed) > ROWS_SHOWN:
        yield f"replicas of {len(changed) - ROWS_SHOWN} more partitions: changed as well"


def _undeleted_differences(change: DeleteTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    yield from _another_topic(_deleted_identity(change), live)
    yield from _unequal("partitions", change.precondition.partitions, live.partitions)
    if traces.is_reassigning:
        yield "reassignment: planned none, live running"
    yield from _stability_differences(live)


def _is_deleted(change: DeleteTopic, traces: TopicTraces) -> bool:
    """Gone, or marked for a deletion that cannot be taken back, and still the same topic."""
    if traces.live is None:
        return True
    return traces.is_deleting and not any(_another_topic(_deleted_identity(change), traces.live))


def _deleted_identity(change: DeleteTopic) -> str | None:
    return change.precondition.identity or change.topic_id


def _existence_differences(change: ExpandTopic | ReassignTopic, traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    yield from _another_topic(change.precondition.identity, live)
    yield from _movement_differences(traces, live)


def _movement_differences(traces: TopicTraces, live: LiveTopic) -> Iterator[str]:
    if traces.is_deleting:
        yield "topic: planned present, live marked for deletion"
    if traces.is_reassigning:
        yield "reassignment: planned none, live running"
    yield from _stability_differences(live)


def _stability_differences(live: LiveTopic) -> Iterator[str]:
    if live.unstable:
        yield "topic: planned stable, live changing while it is read"


def _digest_differences(change: ExpandTopic, live: LiveTopic, *, partitions: int) -> Iterator[str]:
    planned = change.precondition.assignment_digest
    rows = {p: replicas for p, replicas in live.target_assignment.items() if p < partitions}
    if planned is None or assignment_digest(rows) == planned:
        return
    changed = list(_row_differences(change.assignment_before, rows))
    yield from _first_rows(changed or [f"assignment: planned digest {planned}, live {assignment_digest(rows)}"])


def _row_differences(planned: Assignment, live: Mapping[int, Sequence[int]]) -> Iterator[str]:
    for partition in sorted(planned):
        if partition in live:
            yield from _unequal(f"replicas of partition {partition}", list(planned[partition]), list(live[partition]))


def _override_differences(planned: Mapping[str, str | None], live: LiveTopic, *, exact: bool) -> Iterator[str]:
    found = canonical_overrides(live.overrides)
    for name in sorted(planned.keys() | found.keys() if exact else planned):
        if planned.get(name) != found.get(name):
            yield f"{name}: planned {or_not_set(planned.get(name))}, live {or_not_set(found.get(name))}"


def _another_topic(planned: str | None, live: LiveTopic) -> Iterator[str]:
    yield from _unequal("identity", planned, live.identity_after(planned))


def _unequal(name: str, planned: object, live: object) -> Iterator[str]:
    # A plan for a cluster without topic ids, or an old plan, may not know the value; then it is not compared.
    if planned is not None and planned != live:
        yield f"{name}: planned {planned}, live {live}"


CHECK_THE_READER = (
    f"check that the brokers answer in time ({BROKER_PATIENCE} gives them more) and which rights the reader has "
    "(topicops doctor), then plan again"
)
"""Advice if it is not known whether a topic is in use; the advice to delete a used topic would be wrong."""
OLD_BROKERS = (
    f"brokers before {NEWEST_RECORDS} do not give it: there, policy.restsFor: 0s compares the end offsets alone"
)
ANSWER_IS_NEW_S = 0.5
"""Age that an answer about a topic's activity may have when its delete is sent."""


@dataclass(slots=True, kw_only=True)
class TopicsInUse:
    """The brokers' last answers about the activity on topics that are to be deleted."""

    plan: Plan
    questions: ClusterQuestions | None
    """Questions to the brokers; None means that they cannot be asked."""
    environment: EnvironmentSpec
    clock: Clock
    server_time: ServerTime | None
    """Time of a server; None means that no server of the cluster sends its time."""
    _answers: dict[str, tuple[float, TopicActivity | None]] = field(default_factory=dict)
    """Times of the questions, by ``clock``, and the answers, by topic."""

    def refresh(self, gated_changes: Sequence[GatedChange]) -> None:
        """Ask again about those topics to be deleted of which the answer is old."""
        topics = [g.change.topic for g in gated_changes if isinstance(g.change, DeleteTopic)]
        old = [topic for topic in topics if self._is_old(topic)]
        if self.questions is None or self._may_be_deleted or not old:
            return
        asked_at, activity = self.clock.now(), self.questions.activity(old)
        for topic in old:
            found = activity.get(topic)
            # What could not be read refuses the delete: brokers that let us wait are not asked twice.
            is_read = found is not None and found.groups is not None
            self._answers[topic] = (asked_at if is_read else self.clock.now(), found)

    def reason(self, change: DeleteTopic) -> str | None:
        """Return why the topic may not be deleted, and what to do; None when it may."""
        if self._may_be_deleted:
            return None
        _, now = self._answers.get(change.topic, (-inf, None))
        planned = self.plan.change_set.activity.get(change.topic)
        return activity_reason(
            planned,
            now,
            rests_for=self.environment.rests_for,
            at=passed_by_both(self.server_time, self.clock),
            clock_problem=rest_objection(self.server_time, self.clock, self.environment),
        )

    @property
    def _may_be_deleted(self) -> bool:
        return self.environment.policy.delete_active == "allow"

    def _is_old(self, topic: str) -> bool:
        asked_at, _ = self._answers.get(topic, (-inf, None))
        return self.clock.now() - asked_at > ANSWER_IS_NEW_S


def activity_reason(
    planned: TopicActivity | None,
    now: TopicActivity | None,
    *,
    rests_for: timedelta,
    at: datetime,
    clock_problem: str | None = None,
) -> str | None:
    """Return why a topic counts as in use, and what to do; None when it is surely not used.

    What cannot be read counts as in use.

    Args:
        at: The time of now.
        clock_problem: Why no age may be told by it; a topic that never had a record needs none.
    """
    if planned is None or planned.end_offsets is None:
        return f"its end offsets were not read when the plan was made ({Code.USE_NOT_KNOWN}); {CHECK_THE_READER}"
    if now is None or now.end_offsets is None:
        return f"its end offsets cannot be read now ({Code.USE_NOT_KNOWN}); {CHECK_THE_READER}"
    if moved := sorted(_moved_offsets(planned.end_offsets, now.end_offsets)):
        return f"records were written since the plan ({Code.RECENT_TRAFFIC}): {', '.join(moved)}; {STOP_CLIENTS}"
    if rests_for and now.last_record_ms is None:
        return f"the time of its last record cannot be read ({Code.USE_NOT_KNOWN}); {CHECK_THE_READER}; {OLD_BROKERS}"
    if clock_problem and any(now.end_offsets.values()):
        return clock_problem
    if recent := recent_record(now, rests_for, at):
        return f"{recent} ({Code.RECENT_TRAFFIC}); {STOP_CLIENTS}"
    if isinstance(now, ActivityOfHiddenGroups):
        return f"{HIDDEN_GROUPS} ({Code.USE_NOT_KNOWN}); {CHECK_BY_HAND}"
    if now.groups is None:
        return f"its consumer groups cannot be read ({Code.USE_NOT_KNOWN}); {CHECK_THE_READER}"
    if used := use_by_groups(now):
        return f"{used[0]} ({Code.ACTIVE_GROUP}); {used[1]}"
    return None


def _moved_offsets(planned: Mapping[int, int], now: Mapping[int, int]) -> Iterator[str]:
    for partition in planned.keys() | now.keys():
        before, after = planned.get(partition, "none"), now.get(partition, "none")
        if before != after:
            yield f"end offset of partition {partition}: planned {before}, live {after}"
