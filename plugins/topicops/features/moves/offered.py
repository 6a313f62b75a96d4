"""What the loop gets of this feature: the ways into its other modules."""

from __future__ import annotations

from topicops.features.moves.asked.planner import Planner
from topicops.features.moves.stepping import kafka_mover
from topicops.features.moves.telling.known import known_moves


class MovesByKafka(Planner):
    """Implements ``flow.runs.access.Moves``."""

    known = staticmethod(known_moves)
    mover = staticmethod(kafka_mover)


MOVES_BY_KAFKA = MovesByKafka()
