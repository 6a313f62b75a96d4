"""How the controller deletes topics: the queue, what makes a topic wait, and what lets it go on.

Source: kafka.controller.TopicDeletionManager (1.0 to 3.9).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fakes.controller.context import ControllerContext, PartitionStatus, ReplicaStatus
from fakes.controller.state_machines import PartitionStateMachine, ReplicaStateMachine
from fakes.controller.znodes import Replica

OFFLINE_REPLICAS = "offline replicas"
REASSIGNMENT = "topic reassignment in progress"
FAILED_REPLICAS = "replica deletion failure"


class TopicDeletion:
    """Deletes what is queued. With ``delete.topic.enable=false`` it only removes markers."""

    def __init__(
        self, context: ControllerContext, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._replicas = replicas

    def start_up(self, topics: Iterable[str], ineligible: dict[str, str]) -> None:
        """Queue what is marked when a controller is elected; ``ineligible`` may name other topics too."""
        context = self._context
        if not context.settings.delete_topic_enable:
            for topic in topics:
                context.znodes.remove_marker(topic)
            return
        context.deleting |= set(topics)
        context.ineligible |= {topic: why for topic, why in ineligible.items() if topic in context.deleting}

    def enqueue(self, topics: Iterable[str]) -> None:
        if self._context.settings.delete_topic_enable:
            self._context.deleting |= set(topics)
            self.go_on()

    def resume(self, topics: Collection[str]) -> None:
        """Try again, since a broker came back or a reassignment ended."""
        waiting = self._context.deleting.intersection(topics)
        for topic in waiting:
            self._context.ineligible.pop(topic, None)
        if waiting:
            self.go_on()

    def halt(self, topics: Iterable[str], reason: str) -> None:
        """Let topics wait until ``resume`` names them; those that are not queued are left alone.

        Marking comes before queueing when a reassignment runs already: so such a topic is deleted all the same (3.9).
        """
        for topic in self._context.deleting.intersection(topics):
            self._context.ineligible[topic] = reason

    def fail(self, replicas: Iterable[Replica]) -> None:
        """Replicas that cannot be deleted now; their topics wait."""
        failed = [replica for replica in replicas if replica.topic in self._context.deleting]
        if failed:
            self._replicas.move(failed, ReplicaStatus.DELETION_INELIGIBLE)
            self.halt({replica.topic for replica in failed}, FAILED_REPLICAS)
            self.go_on()

    def complete(self, replicas: Iterable[Replica]) -> None:
        """Replicas that their brokers have deleted."""
        done = [replica for replica in replicas if replica.topic in self._context.deleting]
        self._replicas.move(done, ReplicaStatus.DELETION_SUCCESSFUL)
        self.go_on()

    def go_on(self) -> None:
        """Finish what is done, make failed replicas ready for another try, and begin what may begin."""
        context = self._context
        retry, begin = list[str](), list[str]()
        for topic in sorted(context.deleting):
            if self._are_all(topic, ReplicaStatus.DELETION_SUCCESSFUL):
                self._finish(topic)
            elif not self._is_any(topic, ReplicaStatus.DELETION_STARTED) and self._is_any(
                topic, ReplicaStatus.DELETION_INELIGIBLE
            ):
                retry.append(topic)
            if self._is_eligible(topic):
                begin.append(topic)
        failed = [
            replica for topic in retry for replica in context.replicas_in(topic, ReplicaStatus.DELETION_INELIGIBLE)
        ]
        self._replicas.move(failed, ReplicaStatus.OFFLINE)
        if begin:
            self._begin(begin)

    def _is_eligible(self, topic: str) -> bool:
        context = self._context
        if topic not in context.deleting or topic in context.ineligible:
            return False
        return not self._is_any(topic, ReplicaStatus.DELETION_STARTED)

    def _begin(self, topics: Collection[str]) -> None:
        """Tell brokers that the topics go, and their replicas to delete their logs.

        Since 2.1 the partitions do not exist from here on; before, until all replicas are gone. No znode shows it.
        """
        context = self._context
        unseen = [topic for topic in topics if topic not in context.deletion_started]
        for status in (PartitionStatus.OFFLINE, PartitionStatus.NON_EXISTENT):
            self._partitions.move(list(context.partitions(unseen)), status)
        context.deletion_started |= set(unseen)
        context.send_metadata(context.partitions(topics))
        alive, dead = list[Replica](), list[Replica]()
        for topic in topics:
            for replica in context.replicas_of(topic):
                if not context.is_online(replica.broker, replica.of):
                    dead.append(replica)
                elif context.replica_status.get(replica) is not ReplicaStatus.DELETION_SUCCESSFUL:
                    alive.append(replica)
        self._replicas.move(dead, ReplicaStatus.DELETION_INELIGIBLE)
        self._replicas.move(alive, ReplicaStatus.OFFLINE)
        self._replicas.move(alive, ReplicaStatus.DELETION_STARTED)
        self.halt({replica.topic for replica in dead}, OFFLINE_REPLICAS)

    def _finish(self, topic: str) -> None:
        """Remove the znodes: the topic's, its config and, last, the marker."""
        context = self._context
        self._replicas.move(context.replicas_in(topic, ReplicaStatus.DELETION_SUCCESSFUL), ReplicaStatus.NON_EXISTENT)
        context.znodes.remove_topic(topic)
        context.znodes.remove_config(topic)
        context.znodes.remove_marker(topic)
        context.forget_topic(topic)

    def _are_all(self, topic: str, status: ReplicaStatus) -> bool:
        replicas = self._context.replicas_of(topic)
        return len(self._context.replicas_in(topic, status)) == len(replicas)

    def _is_any(self, topic: str, status: ReplicaStatus) -> bool:
        return bool(self._context.replicas_in(topic, status))
