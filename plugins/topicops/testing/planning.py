"""From specs and a cluster to a plan in one call, and from a plan to the cluster after it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from topicops.model.delta import desired_row, live_row
from topicops.model.environment import Environment
from topicops.model.plan import ChangeSet, TopicActivity
from topicops.model.snapshot import ClusterSnapshot
from topicops.model.spec import Desired
from topicops.steps.diff import diff
from topicops.steps.plan import NO_ACTIVITY, plan
from topicops.testing.builders import NOW, environment


def plan_of(
    desired: Desired,
    live: ClusterSnapshot,
    where: Environment | None = None,
    *,
    now: datetime = NOW,
    activity: Mapping[str, TopicActivity] = NO_ACTIVITY,
) -> ChangeSet:
    """What the steps diff and plan make of it."""
    delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    return plan(desired, live, delta, where or environment(), now=now, activity=activity)
