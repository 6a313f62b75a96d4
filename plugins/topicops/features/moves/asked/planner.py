"""What plans moves of replicas for the loop: the ways into the modules of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from topicops.features.moves.asked.changes import reassign
from topicops.features.moves.asked.draining import (
    as_it_is,
    drain_notes,
    drained_topics,
    paused_notes,
    unmanaged_and_drained,
)
from topicops.features.moves.asked.judged import judged_moves
from topicops.features.moves.asked.starting import move_obstacles
from topicops.features.moves.asked.wanted import wanted_move
from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.plans.changes import Change, ReassignTopic
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.environment import Environment
from topicops.steps.planning.blocking import Situation, WantedMove
from topicops.steps.planning.moves import JudgedMove
from topicops.steps.planning.placement.request import Load


class Planner:
    """Implements ``steps.planning.moves.MovePlanner``, which describes each function."""

    def drained(self, live: ClusterSnapshot, environment: Environment) -> Mapping[str, int]:
        return drained_topics(live, environment)

    def undescribed(
        self, drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment
    ) -> Mapping[str, DesiredTopic]:
        topics = live.with_accepted_moves.topics
        names = unmanaged_and_drained(drained, desired, environment)
        return {name: as_it_is(topics[name], environment) for name in names}

    def wanted(self, situation: Situation) -> WantedMove | None:
        return wanted_move(situation)

    def change(self, situation: Situation, load: Load) -> ReassignTopic:
        return reassign(situation, load)

    def obstacles(
        self, changes: Iterable[Change], live: ClusterSnapshot, environment: Environment
    ) -> Mapping[str, tuple[str, ...]]:
        return move_obstacles(changes, live, environment)

    def notes(
        self, drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment
    ) -> tuple[str, ...]:
        return (*drain_notes(drained, desired, live, environment), *paused_notes(desired, live, environment))

    def judged(
        self, plan: Plan, anew: ChangeSet, desired: Desired, live: ClusterSnapshot, environment: Environment
    ) -> Mapping[str, JudgedMove]:
        return judged_moves(plan, anew, desired, live, environment)


PLANNER = Planner()
