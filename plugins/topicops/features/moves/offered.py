"""What the loop gets of this feature: the ways into its other modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topicops.features.moves.asked.planner import Planner
from topicops.features.moves.telling.known import known_moves

if TYPE_CHECKING:
    from topicops.features.moves.stepping import KafkaMover
    from topicops.flow.runs.access import Access


class MovesByKafka(Planner):
    """Implements ``flow.runs.access.Moves``."""

    known = staticmethod(known_moves)

    def mover(self, access: Access, **given: Any) -> KafkaMover:
        """Do as ``kafka_mover``, which only apply needs."""
        from topicops.features.moves.stepping import kafka_mover

        return kafka_mover(access, **given)


MOVES_BY_KAFKA = MovesByKafka()
