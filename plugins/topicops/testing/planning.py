"""A plan from specs and a cluster, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.plans.plan import ChangeSet, TopicActivity
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.steps.planning.diff import diff
from topicops.steps.planning.plan import NO_ACTIVITY, plan
from topicops.testing.builders import NOW, environment


def plan_of(
    desired: Desired,
    live: ClusterSnapshot,
    where: Environment | None = None,
    *,
    now: datetime = NOW,
    activity: Mapping[str, TopicActivity] = NO_ACTIVITY,
) -> ChangeSet:
    """The result of the diff and plan steps."""
    delta = diff(map(desired_row, desired.topics.values()), map(live_row, live.topics.values()))
    return plan(desired, live, delta, where or environment(), now=now, activity=activity)
