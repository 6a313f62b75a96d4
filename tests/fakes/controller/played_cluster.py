"""A controller with brokers that obey at once: each event is played until nothing is left to do.

Live brokers delete what they are told to delete, followers that are not held back catch up, and leaders take dead ones
out of the ISR. So the znodes after a call are those that a real cluster has once it rests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from fakes.controller.context import ControllerSettings
from fakes.controller.controller import Controller
from fakes.controller.elections import Election
from fakes.controller.messages import (
    BrokersChanged,
    DeletionsMarked,
    ElectionsAsked,
    Event,
    IsrAltered,
    MovesAsked,
    MovesWritten,
    PartitionsChanged,
    ReplicasDeleted,
    ShutdownAsked,
    StopReplica,
    TopicsChanged,
    UncleanElectionAllowed,
)
from fakes.controller.releases import ELECTS_WHEN_ALLOWED
from fakes.controller.znodes import ReplicaAssignment, TopicPartition, TopicZnode, Znodes
from topicops.model.cluster.health import UNCLEAN_ELECTION, elects_unclean


class PlayedCluster:
    """Znodes, the controller and its brokers. What it is asked for it does without the checks of a request."""

    def __init__(
        self,
        znodes: Znodes,
        *,
        settings: ControllerSettings | None = None,
        new_topic_id: Callable[[str], str] | None = None,
    ) -> None:
        self.znodes = znodes
        self.slow: set[int] = set()
        """Brokers whose replicas do not catch up."""
        self.unanswering: set[int] = set()
        """Brokers that do not delete what they are told to delete."""
        self._unanswered: list[StopReplica] = []
        self._settings = settings or ControllerSettings()
        self._new_topic_id = new_topic_id
        self.controller: Controller | None = None
        """None: no broker is live."""
        if znodes.brokers:
            self._elect_controller(znodes.controller if znodes.controller in znodes.brokers else None)
            self._play(None, [])

    # --- topics -------------------------------------------------------------------------------------------------

    def create(self, topic: str, rows: Mapping[int, Sequence[int]], configs: Mapping[str, str]) -> None:
        self.znodes.configs[topic] = dict(configs)
        self.znodes.topics[topic] = TopicZnode({p: ReplicaAssignment(tuple(row)) for p, row in rows.items()})
        self._play(TopicsChanged(), [topic])

    def expand(self, topic: str, rows: Mapping[int, Sequence[int]]) -> None:
        found = self.znodes.topics[topic]
        added = {p: ReplicaAssignment(tuple(row)) for p, row in rows.items()}
        self.znodes.set_assignment(topic, {**found.assignment, **added})
        self._play(PartitionsChanged(topic), [topic])

    def configure(self, topic: str, configs: Mapping[str, str | None]) -> None:
        """Set these overrides, or with None remove them.

        Source: kafka.server.TopicConfigHandler#processConfigChanges (3.9).
        """
        merged = {**self.znodes.configs.get(topic, {}), **configs}
        kept = self.znodes.configs[topic] = {name: value for name, value in merged.items() if value is not None}
        if elects_unclean(kept.get(UNCLEAN_ELECTION)) and self._settings.release >= ELECTS_WHEN_ALLOWED:
            self._play(UncleanElectionAllowed(topic), [topic])

    def delete(self, topic: str) -> None:
        self.znodes.markers[topic] = None
        self._play(DeletionsMarked(), [topic])

    def remove(self, topic: str) -> None:
        """Remove the topic and all its znodes by hand."""
        self.znodes.remove_topic(topic)
        self.znodes.remove_config(topic)
        self._play(TopicsChanged(), [])

    # --- brokers ------------------------------------------------------------------------------------------------

    def stop(self, brokers: Iterable[int]) -> None:
        """Stop them without a warning; the controller, if it is one of them, is elected again first."""
        for broker in brokers:
            self.znodes.brokers.pop(broker, None)
        if not self.znodes.brokers:
            self.controller = self.znodes.controller = None
        elif self.znodes.controller not in self.znodes.brokers:
            self.fail_over()
        else:
            self._play(BrokersChanged(), [])

    def shut_down(self, broker: int) -> None:
        """Stop it as a person does who waits for a controlled shutdown."""
        self._play(ShutdownAsked(broker), [])
        self.stop([broker])

    def start(self, broker: int, epoch: int = 0) -> None:
        self.znodes.brokers[broker] = epoch
        if self.controller is None:
            self.fail_over()
        else:
            on_it = [
                name
                for name, znode in self.znodes.topics.items()
                if any(broker in row.replicas for row in znode.assignment.values())
            ]
            self._play(BrokersChanged(), on_it)

    def fail_over(self, broker: int | None = None) -> None:
        """Elect this broker, or the first live one."""
        self._elect_controller(broker)
        self._play(None, list(self.znodes.topics))

    def _elect_controller(self, broker: int | None) -> None:
        self._unanswered = []
        self.controller = Controller(
            self.znodes,
            broker=min(self.znodes.brokers) if broker is None else broker,
            settings=self._settings,
            new_topic_id=self._new_topic_id,
        )

    # --- partitions ---------------------------------------------------------------------------------------------

    def elect(self, *partitions: TopicPartition, election: Election = Election.PREFERRED) -> None:
        self._play(ElectionsAsked(partitions, election), [])

    def move(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Through AlterPartitionReassignments."""
        self._play(MovesAsked(targets), {tp.topic for tp in targets})

    def move_by_znode(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Through ``/admin/reassign_partitions``."""
        self.znodes.moves.update(targets)
        self._play(MovesWritten(), {tp.topic for tp in targets})

    def catch_up(self) -> None:
        """Let followers catch up that were held back, and brokers delete what they did not delete then."""
        self._play(None, list(self.znodes.topics))

    # --- playing ------------------------------------------------------------------------------------------------

    def _play(self, event: Event | None, topics: Iterable[str]) -> None:
        """Handle the event, and all that follows from it.

        Args:
            topics: Where followers may have to catch up.
        """
        if self.controller is None:
            return
        if event is not None:
            self.controller.handle(event)
        self._answer(self.controller)
        for topic in list(topics):
            self._follow(self.controller, topic)

    def _answer(self, controller: Controller) -> None:
        requests, self._unanswered = [*self._unanswered, *controller.take_requests()], []
        while requests:
            deleted: defaultdict[int, list[TopicPartition]] = defaultdict(list)
            for request in requests:
                if not isinstance(request, StopReplica) or not request.delete:
                    continue
                if request.broker not in self.znodes.brokers:
                    continue
                if request.broker in self.unanswering:
                    self._unanswered.append(request)
                else:
                    deleted[request.broker].append(request.partition)
            for broker, partitions in sorted(deleted.items()):
                controller.handle(ReplicasDeleted(broker, tuple(partitions)))
            requests = [*controller.take_requests()]

    def _follow(self, controller: Controller, topic: str) -> None:
        """Let the live replicas of a topic join their ISRs, and the dead ones leave, where a leader lives.

        Before 2.3 the ISR has dead replicas after a failover.
        """
        znode = self.znodes.topics.get(topic)
        if znode is None or topic in self.znodes.markers:
            return
        for p in list(znode.assignment):
            tp = TopicPartition(topic, p)
            state = self.znodes.states.get(tp)
            if state is None or not controller.context.is_online(state.leader, tp):
                continue
            late = [broker for broker in znode.assignment[p].replicas if self._joins(controller, broker, tp)]
            alive = [broker for broker in state.isr if controller.context.is_online(broker, tp)]
            if (*alive, *late) != state.isr:
                controller.handle(IsrAltered(tp, (*alive, *late)))
                self._answer(controller)

    def _joins(self, controller: Controller, broker: int, tp: TopicPartition) -> bool:
        if broker in self.znodes.states[tp].isr or broker in self.slow:
            return False
        return controller.context.is_online(broker, tp)
