"""Can every broker still delete its replicas of a topic?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf

from topicops.model.cluster.snapshot import DirectoriesByBroker, TopicTraces
from topicops.model.codes import Code
from topicops.model.plans.changes import DeleteTopic
from topicops.model.plans.plan import GatedChange
from topicops.model.ports import Clock, ClusterQuestions
from topicops.steps.applying.in_use import ANSWER_IS_NEW_S
from topicops.steps.log_directories import ASK_AGAIN, delete_doubts, delete_obstacles


@dataclass(slots=True, kw_only=True)
class Disks:
    """What the brokers answered last about their log directories, and about logs of topics that are to be deleted."""

    questions: ClusterQuestions | None
    """None: the brokers cannot be asked, so nothing is known."""
    clock: Clock
    _told: DirectoriesByBroker = field(default_factory=dict)
    _topics: frozenset[str] = frozenset()
    """Which the brokers were asked about."""
    _asked_at: float = -inf
    """By ``clock``."""

    def refresh(self, gated_changes: Sequence[GatedChange]) -> None:
        """Ask again before deletes, if the answer is old or about other topics."""
        topics = {
            g.change.topic: range(g.change.partitions) for g in gated_changes if isinstance(g.change, DeleteTopic)
        }
        is_new = self.clock.now() - self._asked_at <= ANSWER_IS_NEW_S and topics.keys() <= self._topics
        if self.questions is None or not topics or is_new:
            return
        self._told, self._topics = self.questions.log_directories(topics), frozenset(topics)
        self._asked_at = self.clock.now()

    def reason(self, change: DeleteTopic, traces: TopicTraces, brokers: Collection[int]) -> str | None:
        """Why its deletion might never end, and what to do; None: every live broker can delete its replicas."""
        rows = traces.live.assignment if traces.live else {}
        doubts = ((doubt, ASK_AGAIN) for doubt in delete_doubts(rows, self._told, brokers))
        obstacle = next(chain(delete_obstacles(change.topic, rows, self._told), doubts), None)
        return f"{obstacle[0]} ({Code.FAILED_LOG_DIRECTORY}); {obstacle[1]}, then plan again" if obstacle else None
