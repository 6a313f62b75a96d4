"""What plans moves of replicas and carries them out, without the feature that does: every wish of a file is a move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.changes import reassign_topic
from fakes.fake_ports import FakeMover
from topicops.model.plans.changes import ReassignTopic
from topicops.model.plans.plan import ChangeSet, Plan
from topicops.model.ports import Mover
from topicops.model.runs.moves import KnownMoves
from topicops.steps.planning.blocking import Situation, WantedMove
from topicops.steps.planning.moves import JudgedMove, NoPlanner


@dataclass
class FakeMoves(NoPlanner):
    """Gives one mover, and remembers what it was given."""

    fake: FakeMover = field(default_factory=FakeMover)
    given: dict[str, Any] = field(default_factory=dict)

    def wanted(self, situation: Situation, /) -> WantedMove | None:
        found = super().wanted(situation)
        return WantedMove(why=found.why) if found else None

    def change(self, situation: Situation, *_: object) -> ReassignTopic:
        assert situation.topic is not None
        rows, size = situation.topic.target_assignment, situation.desired.replication_factor
        wanted = situation.desired.assignment or {
            p: (*row, *(b for b in sorted(situation.live.brokers) if b not in row))[:size] for p, row in rows.items()
        }
        return reassign_topic(situation.topic, *(tuple(wanted[p]) for p in rows))

    def judged(self, plan: Plan, anew: ChangeSet, *_: object) -> Mapping[str, JudgedMove]:  # type: ignore[override]
        asked = {change.topic for change in anew.changes if isinstance(change, ReassignTopic)}
        return {
            gated.digest: JudgedMove(now=gated.change if gated.change.topic in asked else None)
            for gated in plan.changes
            if isinstance(gated.change, ReassignTopic)
        }

    def known(self, *_: object) -> KnownMoves:
        return KnownMoves()

    def mover(self, access: object, **given: object) -> Mover:
        self.given = {"access": access, **given}
        return self.fake
