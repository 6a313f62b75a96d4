"""The Admin API of the simulated cluster: requests that may be lost, late or doubled, and Kafka's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fakes.mutation_quota import MutationQuota
from fakes.request_checks import IS_MOVING, RequestChecks
from fakes.simulation.cluster import SimulatedCluster
from topicops.model.codes import Code
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.ports import Answer, AnswerKind

ACCEPTED = Answer(AnswerKind.ACCEPTED)
TIMED_OUT = Answer(AnswerKind.UNCLEAR, "REQUEST_TIMED_OUT (7): Request timed out.")
CLIENT_TIMEOUT_S = 30.0
LATEST_S = 28.0
"""How long after the client's timeout a request may still arrive: apply reads back for 60 s after it was sent."""
QUOTA_S = 2.0
OVER_QUOTA = "THROTTLING_QUOTA_EXCEEDED (89): The throttling quota has been exceeded."


class Mishap(StrEnum):
    """What happens to one request."""

    NONE = "arrives"
    REQUEST_LOST = "is lost"
    REPLY_LOST = "arrives, and its reply is lost"
    LATE = "arrives late"
    DOUBLED = "arrives twice"
    BROKEN = "breaks the connection after it has arrived"
    QUOTA = "is refused by a quota"
    CONTROLLER_MOVES = "finds that the controller has just moved"
    CONTROLLER_DIES = "arrives, and the controller dies while it handles it"


@dataclass(frozen=True, slots=True)
class Effect:
    """A request that changed something."""

    at: float
    change: Change
    identity: str | None
    """Of the topic that it changed; of a create, the new topic's."""
    by: str
    """The process that sent it."""


class SimulatedBrokersApi:
    """What brokers do with requests. Each topic of a request is handled alone, as brokers do."""

    def __init__(self, cluster: SimulatedCluster, *, mutations_a_second: float | None = None) -> None:
        """``mutations_a_second`` is the quota of each process; None: there is none."""
        self.cluster = cluster
        self._rate = mutations_a_second
        self._quotas: dict[str, MutationQuota] = {}
        self.effects: list[Effect] = []

    @property
    def checks(self) -> RequestChecks:
        settings = self.cluster.settings
        return RequestChecks(
            release=settings.release,
            deletes_topics=settings.delete_topic_enable,
            topics=self.cluster.znodes.topics,
            is_anything_moving=bool(self.cluster.znodes.moves),
        )

    def refusal(self, change: Change) -> str | None:
        """Return the error of a dry run."""
        is_deleting = change.topic in self.cluster.znodes.markers
        return self.checks.error_of(
            change, self.cluster.live(change.topic), is_deleting=is_deleting, brokers=self.cluster.znodes.brokers
        )

    def send(self, changes: Sequence[Change], *, by: str, mishap: Mishap) -> list[Answer]:
        """Send one request of one kind and wait for its answer."""
        world, cluster = self.cluster.world, self.cluster
        if mishap is not Mishap.NONE:
            world.tell(f"{by}: {changes[0].action} {', '.join(change.topic for change in changes)} {mishap}")
        world.pass_time(world.random.uniform(0.001, 0.01))
        match mishap:
            case Mishap.REQUEST_LOST:
                return self._timed_out(changes)
            case Mishap.LATE:
                late_s = CLIENT_TIMEOUT_S + world.random.uniform(0.1, LATEST_S)
                world.after(late_s, lambda: self._arrive_late(changes, by))
                return self._timed_out(changes)
            case Mishap.QUOTA:
                return [Answer(AnswerKind.RETRY, OVER_QUOTA, wait_s=QUOTA_S)] * len(changes)
            case Mishap.CONTROLLER_MOVES:
                cluster.fail_over()
            case Mishap.CONTROLLER_DIES:
                cluster.die_while_writing(world.random.randrange(4))
            case _:
                pass
        asked = cluster.controller
        if asked is not None and not self._hears(asked.broker):
            return [TIMED_OUT] * len(changes)
        if asked is None or cluster.controller is not asked:
            error = (
                f"NOT_CONTROLLER (41): This is not the correct controller for this cluster. ({Code.CONTROLLER_MOVED})"
            )
            return [Answer(AnswerKind.CONTROLLER_MOVED, error)] * len(changes)
        answers = [self._handle(change, by) for change in changes]
        if mishap is Mishap.DOUBLED:
            answers = [answer or self._handle(change, by) for change, answer in zip(changes, answers, strict=True)]
        if mishap is Mishap.REPLY_LOST:
            return self._timed_out(changes)
        if mishap is Mishap.BROKEN:
            return [Answer(AnswerKind.UNCLEAR, "the connection was lost")] * len(changes)
        return [answer or self._wait_for(change) for change, answer in zip(changes, answers, strict=True)]

    def _timed_out(self, changes: Sequence[Change]) -> list[Answer]:
        self.cluster.world.pass_time(CLIENT_TIMEOUT_S)
        return [TIMED_OUT] * len(changes)

    def _hears(self, broker: int) -> bool:
        """Wait until a broker that stands still goes on or dies; False: the client does not wait so long."""
        asked = self.cluster.brokers[broker]
        return self.cluster.world.wait_until(lambda: not asked.is_silent, limit_s=CLIENT_TIMEOUT_S)

    def _arrive_late(self, changes: Sequence[Change], by: str) -> None:
        controller = self.cluster.controller
        if controller is not None and self.cluster.brokers[controller.broker].answers:
            for change in changes:
                self._handle(change, by)

    def _handle(self, change: Change, by: str) -> Answer | None:
        """Do what a request asks for one topic; None: it was taken, and is answered when it is done."""
        throttle_s = self._throttle_s(change, by)
        if throttle_s:
            return Answer(AnswerKind.RETRY, OVER_QUOTA, wait_s=throttle_s)
        error = self.perform(change, by)
        if error is None:
            return None
        return Answer(AnswerKind.RETRY if error == IS_MOVING else AnswerKind.FAILED, error)

    def _throttle_s(self, change: Change, by: str) -> float:
        """0.0: the quota is not used up."""
        if self._rate is None or isinstance(change, ConfigureTopic | ReassignTopic) or self.refusal(change):
            return 0.0
        quota = self._quotas.setdefault(by, MutationQuota(rate=self._rate, now=lambda: self.cluster.world.now))
        taken = quota.take(self._mutations(change))
        return taken.throttle_s if taken.is_refused else 0.0

    def _mutations(self, change: CreateTopic | ExpandTopic | DeleteTopic) -> int:
        """Return partitions that the request creates or deletes."""
        if not isinstance(change, DeleteTopic):
            return len(change.assignment)
        live = self.cluster.live(change.topic)
        return live.partitions if live else 0

    def _wait_for(self, change: Change) -> Answer:
        """Brokers answer when the change is done as they see it, or when their patience ends."""
        if self.cluster.world.wait_until(lambda: self._is_done(change), limit_s=CLIENT_TIMEOUT_S):
            return ACCEPTED
        return TIMED_OUT

    def _is_done(self, change: Change) -> bool:
        cluster = self.cluster
        if isinstance(change, ConfigureTopic):
            return True
        if isinstance(change, CreateTopic | ExpandTopic):
            return cluster.is_led(change.topic)
        running = [broker for broker in cluster.brokers.values() if broker.is_up]
        return cluster.controller is not None and not any(broker.knows(change.topic) for broker in running)

    def perform(self, change: Change, by: str) -> str | None:
        """Do what the request asks for; gives the error with which brokers refuse it instead."""
        cluster = self.cluster
        live = cluster.live(change.topic)
        if error := self.refusal(change):
            return error
        match change:
            case CreateTopic():
                cluster.write_config(change.topic, change.configs)
                if cluster.die_between_two_writes():
                    # The config alone is left.
                    return None
                cluster.write_topic(change.topic, change.assignment)
            case ExpandTopic():
                cluster.write_partitions(change.topic, change.assignment)
            case ConfigureTopic():
                cluster.write_config(change.topic, _overrides(change, live.overrides if live else {}))
            case DeleteTopic():
                cluster.write_marker(change.topic)
        now = cluster.live(change.topic)
        identity = now.identity if now else None
        self.effects.append(Effect(cluster.world.now, change, identity, by))
        return None


def _overrides(change: ConfigureTopic, live: Mapping[str, str]) -> dict[str, str]:
    """What the topic has afterwards; AlterConfigs, unlike IncrementalAlterConfigs, removes what it does not name."""
    found: dict[str, str | None] = {**live, **change.configs}
    if change.precondition.all_overrides:
        found = dict(change.all_configs)
    return {name: value for name, value in found.items() if value is not None}
