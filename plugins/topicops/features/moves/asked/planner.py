"""What plans moves of replicas for the loop: the ways into the other modules of this folder."""

from __future__ import annotations

from topicops.features.moves.asked.changes import move_obstacles, reassign
from topicops.features.moves.asked.draining import drained_topics, plan_notes, undescribed_topics
from topicops.features.moves.asked.judged import judged_moves
from topicops.features.moves.asked.wanted import reassignment_of, wanted_move


class Planner:
    """Implements ``steps.planning.moves.MovePlanner``."""

    drained = staticmethod(drained_topics)
    undescribed = staticmethod(undescribed_topics)
    wanted = staticmethod(wanted_move)
    change = staticmethod(reassign)
    for_tool = staticmethod(reassignment_of)
    obstacles = staticmethod(move_obstacles)
    notes = staticmethod(plan_notes)
    judged = staticmethod(judged_moves)


PLANNER = Planner()
