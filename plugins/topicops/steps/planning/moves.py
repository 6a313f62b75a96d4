"""What plans moves of replicas, and what stands in for it where nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from topicops.model.cluster.snapshot import ClusterSnapshot
from topicops.model.codes import Code
from topicops.model.errors import DiffError
from topicops.model.plans.changes import Change, MoveReason, ReassignTopic
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.specs.desired import Desired, DesiredTopic
from topicops.model.specs.environment import Environment
from topicops.steps.planning.blocking import Finding, Situation, WantedMove
from topicops.steps.planning.placement.request import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMove:
    """A reassignment of a plan, judged by the files and the cluster of now."""

    now: ReassignTopic | None = None
    """Change as a plan of now has it, with the rows of the old plan; None means that nothing asks for it."""
    problems: tuple[str, ...] = ()
    """Reasons why it must not run."""
    obstacles: tuple[str, ...] = ()
    """Reasons why it cannot begin now."""
    is_accepted: bool = False
    """Whether a run has accepted it already, and it has not ended."""


class MovePlanner(Protocol):
    """Says which replicas are to move, and where. A snapshot is as it was read, with the moves that were accepted."""

    def drained(self, live: ClusterSnapshot, environment: Environment, /) -> Mapping[str, int]:
        """Return how many partitions each topic has on brokers of ``cluster.draining``, once accepted moves ended."""

    def undescribed(
        self, drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment, /
    ) -> Mapping[str, DesiredTopic]:
        """Return the drained topics that no file describes and that move too, each as a file would describe it."""

    def wanted(self, situation: Situation, /) -> WantedMove | None:
        """Return why and when replicas of the topic move; None: they stay where they are."""

    def change(self, situation: Situation, load: Load, /) -> ReassignTopic:
        """Return the change of a topic with a ``move``. Raises ``DiffError`` where no row differs."""

    def for_tool(self, situation: Situation, load: Load, /) -> str | None:
        """Return the JSON with which Kafka's own tool moves the replicas of a blocked topic; None: it cannot."""

    def obstacles(
        self, changes: Iterable[Change], live: ClusterSnapshot, environment: Environment, /
    ) -> Mapping[str, tuple[str, ...]]:
        """Return why moves cannot begin now, by topic; topics without a reason have no entry."""

    def notes(
        self, drained: Mapping[str, int], desired: Desired, live: ClusterSnapshot, environment: Environment, /
    ) -> Iterable[str]:
        """Yield warnings of the plan, such as which drained brokers are not empty after it."""

    def judged(
        self, plan: Plan, anew: ChangeSet, desired: Desired, live: ClusterSnapshot, environment: Environment, /
    ) -> Mapping[str, JudgedMove]:
        """Judge each reassignment of an earlier plan, by digest; ``anew`` is what a plan of now asks for."""


class NoPlanner:
    """Plans no move: a topic whose file wants replicas of live partitions elsewhere is blocked."""

    def drained(self, *_: object) -> Mapping[str, int]:
        return {}

    def undescribed(self, *_: object) -> Mapping[str, DesiredTopic]:
        return {}

    def wanted(self, situation: Situation, /) -> WantedMove | None:
        topic, desired = situation.topic, situation.desired
        if topic is None or situation.moves_out_of_sight:
            return None
        rows, live = desired.assignment or {}, topic.target_assignment
        if any(tuple(rows[p]) != live[p] for p in rows.keys() & live.keys()):
            why, code, field = MoveReason.ASSIGNMENT, Code.ASSIGNMENT_DIFFERS, "assignment"
        elif topic.replication_factors == {desired.replication_factor}:
            return None
        else:
            is_mixed = len(topic.replication_factors) > 1
            code = Code.MIXED_REPLICATION_FACTOR if is_mixed else Code.REPLICATION_FACTOR
            why, field = MoveReason.FACTOR, "replicationFactor"
        reason = "its file wants other replicas, and nothing here moves them"
        return WantedMove(why=why, findings=(Finding(code, reason, "write the live replicas into the spec", field),))

    def change(self, situation: Situation, *_: object) -> ReassignTopic:
        raise DiffError(f"{situation.desired.name}: its replicas must move, and nothing here plans that")

    def for_tool(self, *_: object) -> None:
        return None

    def obstacles(self, *_: object) -> Mapping[str, tuple[str, ...]]:
        return {}

    def notes(self, *_: object) -> tuple[str, ...]:
        return ()

    def judged(self, *_: object) -> Mapping[str, JudgedMove]:
        return {}


NO_PLANNER = NoPlanner()
