"""Does a client still use a topic that is to be deleted?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from topicops.model.codes import Code
from topicops.model.plans.changes import DeleteTopic
from topicops.model.plans.plan import ActivityOfHiddenGroups, GatedChange, Plan, TopicActivity
from topicops.model.ports import BROKER_PATIENCE, Clock, ClusterQuestions, ServerTime
from topicops.model.release import NEWEST_RECORDS
from topicops.model.specs.environment import EnvironmentSpec
from topicops.steps.clocks import passed_by_both, rest_objection
from topicops.steps.topic_activity import CHECK_BY_HAND, HIDDEN_GROUPS, STOP_CLIENTS, recent_record, use_by_groups

CHECK_THE_READER = (
    f"check that the brokers answer in time ({BROKER_PATIENCE} gives them more) and which rights the reader has "
    "(topicops doctor), then plan again"
)
"""Not the advice to delete a topic that is in use: it is not known whether it is."""
OLD_BROKERS = (
    f"brokers before {NEWEST_RECORDS} do not give it: there, policy.restsFor: 0s compares the end offsets alone"
)
ANSWER_IS_NEW_S = 0.5
"""How old an answer about a topic's activity may be when its delete is sent."""


@dataclass(slots=True, kw_only=True)
class TopicsInUse:
    """What the brokers answered last about the activity on topics that are to be deleted."""

    plan: Plan
    questions: ClusterQuestions | None
    """None: the brokers cannot be asked."""
    environment: EnvironmentSpec
    clock: Clock
    server_time: ServerTime | None
    """None: no server of the cluster tells its time."""
    _answers: dict[str, tuple[float, TopicActivity | None]] = field(default_factory=dict)
    """When the brokers were asked, by ``clock``, and their answer; by topic."""

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
        """Why the topic may not be deleted, and what to do; None when it may."""
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
    """Why a topic counts as in use, and what to do; None when it is surely not used.

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
