"""What every cluster behind the ports must do, as plain functions: the fake and a real one pass the same scenarios.

Each takes a ``ClusterUnderTest`` and raises ``ScenarioError`` when the cluster behaves otherwise. Topics begin with its
prefix, so that scenarios can share a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from topicops.model.cluster.snapshot import LiveTopic, TopicTraces
from topicops.model.plans.changes import Change
from topicops.model.ports import Answer, AnswerKind, LiveReader, TopicAdmin

FOREIGN_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABA"


class ScenarioError(AssertionError):
    """The cluster did not do what every Kafka 3.9 does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUnderTest:
    """A cluster behind its ports, and functions that wait for it and move replicas."""

    reader: LiveReader
    admin: TopicAdmin
    brokers: Sequence[int]
    """At least three; topics are on the first two, and the third one is not the controller."""
    eventually: Callable[[Callable[[], bool]], bool]
    """Calls again until True; gives False after a time limit."""
    moving: Callable[[str, Sequence[int]], AbstractContextManager[None]]
    """Partition 0 of a topic moves to these brokers, and arrives when the context has ended."""
    prefix: str = "scenario"

    def topic(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def traces(self, topic: str) -> TopicTraces:
        return self.reader.traces([topic], states=True)[topic]

    def live(self, topic: str) -> LiveTopic:
        found = self.traces(topic).live
        expect(found is not None, f"{topic} is not live")
        assert found is not None
        return found

    def make(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> LiveTopic:
        """Create a topic and wait until all its partitions are led."""
        topic = self.topic(name)
        row = tuple(self.brokers[:2])
        accepted(self.admin.create([create_topic(topic, *[row] * partitions, configs=configs)]))
        expect(self.eventually(lambda: _is_led(self.traces(topic))), f"{topic} did not get its leaders")
        return self.live(topic)


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise ScenarioError(message)


def accepted(answers: Sequence[Answer]) -> None:
    for answer in answers:
        expect(answer.kind is AnswerKind.ACCEPTED, f"not accepted: {answer.error}")


def refused(answers: Sequence[Answer], *error_names: str) -> None:
    """Expect every answer to be FAILED with one of the names, as Kafka spells them."""
    for answer in answers:
        expect(answer.kind is AnswerKind.FAILED, f"{answer.kind} and not failed: {answer.error}")
        expect(any(name in answer.error for name in error_names), f"another error: {answer.error}")


def a_created_topic_is_as_it_was_asked_for(cluster: ClusterUnderTest) -> None:
    first, second = cluster.brokers[:2]
    topic = cluster.topic("created")
    change = create_topic(topic, (first, second), (second, first), configs={"cleanup.policy": "compact"})
    accepted(cluster.admin.create([change]))
    expect(cluster.eventually(lambda: _is_led(cluster.traces(topic))), "no leaders")
    live = cluster.live(topic)
    expect(dict(live.assignment) == dict(change.assignment), f"assignment {live.assignment}")
    expect(dict(live.overrides) == {"cleanup.policy": "compact"}, f"overrides {live.overrides}")


def a_topic_is_created_once(cluster: ClusterUnderTest) -> None:
    live = cluster.make("once")
    again = create_topic(live.name, tuple(cluster.brokers[:2]))
    refused(cluster.admin.create([again]), "TOPIC_ALREADY_EXISTS")
    expect(cluster.live(live.name).identity == live.identity, "it was replaced")


def one_bad_topic_stops_no_other(cluster: ClusterUnderTest) -> None:
    there = cluster.make("bad-one")
    row = tuple(cluster.brokers[:2])
    good = create_topic(cluster.topic("good-one"), row)
    answers = cluster.admin.create([create_topic(there.name, row), good])
    refused(answers[:1], "TOPIC_ALREADY_EXISTS")
    accepted(answers[1:])


def rows_of_unequal_length_are_refused(cluster: ClusterUnderTest) -> None:
    first, second = cluster.brokers[:2]
    topic = cluster.topic("unequal")
    refused(cluster.admin.create([create_topic(topic, (first, second), (first,))]), "INVALID_REPLICA_ASSIGNMENT")
    expect(cluster.traces(topic).live is None, "it was created all the same")


def an_unknown_config_is_refused(cluster: ClusterUnderTest) -> None:
    topic = cluster.topic("unknown-config")
    change = create_topic(topic, tuple(cluster.brokers[:2]), configs={"retention.sm": "1"})
    refused(cluster.admin.create([change]), "INVALID_CONFIG")
    expect(cluster.traces(topic).live is None, "it was created all the same")


def a_dry_run_changes_nothing(cluster: ClusterUnderTest) -> None:
    live = cluster.make("dry", configs={"retention.ms": "1000"})
    row = tuple(cluster.brokers[:2])
    new = create_topic(cluster.topic("dry-new"), row)
    changes: list[Change] = [expand_topic(live, row), configure_topic(live, {"retention.ms": "2000"})]
    accepted(cluster.admin.validate([new]))
    for change in changes:
        accepted(cluster.admin.validate([change]))
    found = cluster.live(live.name)
    expect((found.partitions, found.overrides["retention.ms"]) == (1, "1000"), "the dry run changed the topic")
    expect(cluster.traces(new.topic).live is None, "the dry run created the topic")


def a_dry_run_sees_what_the_brokers_would_refuse(cluster: ClusterUnderTest) -> None:
    live = cluster.make("dry-no")
    refused(cluster.admin.validate([create_topic(live.name, tuple(cluster.brokers[:2]))]), "TOPIC_ALREADY_EXISTS")


def an_expansion_adds_the_given_rows(cluster: ClusterUnderTest) -> None:
    live = cluster.make("expanded")
    new_row = (cluster.brokers[1], cluster.brokers[0])
    accepted(cluster.admin.expand([expand_topic(live, new_row, new_row)]))
    expect(cluster.eventually(lambda: _is_led(cluster.traces(live.name), partitions=3)), "no leaders for the new ones")
    found = cluster.live(live.name)
    expect(found.identity == live.identity, "it is another topic")
    expect([found.assignment[p] for p in (0, 1, 2)] == [live.assignment[0], new_row, new_row], "other rows")


def an_expansion_takes_effect_once(cluster: ClusterUnderTest) -> None:
    live = cluster.make("expanded-once")
    change = expand_topic(live, tuple(cluster.brokers[:2]))
    accepted(cluster.admin.expand([change]))
    refused(cluster.admin.expand([change]), "INVALID_PARTITIONS")
    expect(cluster.live(live.name).partitions == 2, "it grew twice")


def an_expansion_by_another_replication_factor_is_refused(cluster: ClusterUnderTest) -> None:
    live = cluster.make("expanded-badly")
    refused(cluster.admin.expand([expand_topic(live, (cluster.brokers[0],))]), "INVALID_REPLICA_ASSIGNMENT")
    expect(cluster.live(live.name).partitions == 1, "it grew all the same")


def an_absent_topic_is_not_expanded(cluster: ClusterUnderTest) -> None:
    live = replace(cluster.make("template"), name=cluster.topic("absent-expanded"))
    refused(cluster.admin.expand([expand_topic(live, tuple(cluster.brokers[:2]))]), "UNKNOWN_TOPIC_OR_PART")
    expect(cluster.traces(live.name).live is None, "it was created")


def configs_are_set_and_removed_and_others_left_alone(cluster: ClusterUnderTest) -> None:
    live = cluster.make(
        "configured", configs={"retention.ms": "1000", "segment.ms": "5000", "max.message.bytes": "2000"}
    )
    change = configure_topic(live, {"retention.ms": "2000", "segment.ms": None, "cleanup.policy": "compact,delete"})
    accepted(cluster.admin.configure([change]))
    wanted = {"retention.ms": "2000", "max.message.bytes": "2000", "cleanup.policy": "compact,delete"}
    expect(cluster.eventually(lambda: dict(cluster.live(live.name).overrides) == wanted), "other overrides")


def a_value_out_of_range_changes_nothing(cluster: ClusterUnderTest) -> None:
    live = cluster.make("configured-badly", configs={"retention.ms": "1000"})
    refused(cluster.admin.configure([configure_topic(live, {"retention.ms": "-2"})]), "INVALID_CONFIG")
    expect(dict(cluster.live(live.name).overrides) == {"retention.ms": "1000"}, "it was changed")


def a_deleted_topic_leaves_no_trace(cluster: ClusterUnderTest) -> None:
    live = cluster.make("deleted", configs={"retention.ms": "1000"})
    accepted([cluster.admin.delete(delete_topic(live))])
    expect(cluster.eventually(lambda: cluster.traces(live.name).is_gone), "something is left of it")


def a_delete_with_a_foreign_id_deletes_nothing(cluster: ClusterUnderTest) -> None:
    live = cluster.make("kept")
    foreign = replace(live, topic_id=FOREIGN_TOPIC_ID)
    refused([cluster.admin.delete(delete_topic(foreign))], "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID")
    traces = cluster.traces(live.name)
    expect(traces.live is not None and not traces.is_deleting, "it was deleted")


def a_topic_that_moves_is_known_to_move_until_its_replicas_have_arrived(cluster: ClusterUnderTest) -> None:
    live, resting = cluster.make("moving"), cluster.make("resting")
    target = (cluster.brokers[0], cluster.brokers[2])
    with cluster.moving(live.name, target):
        expect(cluster.traces(live.name).is_reassigning, "nothing tells that it moves")
        expect(not cluster.traces(resting.name).is_reassigning, "another topic seems to move")
    expect(cluster.eventually(lambda: not cluster.traces(live.name).is_reassigning), "the move does not end")
    expect(cluster.live(live.name).assignment[0] == target, "its replicas have not arrived")


def a_topic_does_not_grow_while_it_moves(cluster: ClusterUnderTest) -> None:
    live = cluster.make("moving-on")
    with cluster.moving(live.name, (cluster.brokers[0], cluster.brokers[2])):
        [answer] = cluster.admin.expand([expand_topic(live, tuple(cluster.brokers[:2]))])
        expect(answer.kind is AnswerKind.RETRY, f"{answer.kind} and not to be sent later: {answer.error}")
        expect("REASSIGNMENT_IN_PROGRESS" in answer.error, f"another error: {answer.error}")
    expect(cluster.live(live.name).partitions == 1, "it grew all the same")


MOVES: tuple[Callable[[ClusterUnderTest], None], ...] = (
    a_topic_that_moves_is_known_to_move_until_its_replicas_have_arrived,
    a_topic_does_not_grow_while_it_moves,
)
"""Of brokers of each release."""
SCENARIOS: tuple[Callable[[ClusterUnderTest], None], ...] = (
    a_created_topic_is_as_it_was_asked_for,
    a_topic_is_created_once,
    one_bad_topic_stops_no_other,
    rows_of_unequal_length_are_refused,
    an_unknown_config_is_refused,
    a_dry_run_changes_nothing,
    a_dry_run_sees_what_the_brokers_would_refuse,
    an_expansion_adds_the_given_rows,
    an_expansion_takes_effect_once,
    an_expansion_by_another_replication_factor_is_refused,
    an_absent_topic_is_not_expanded,
    configs_are_set_and_removed_and_others_left_alone,
    a_value_out_of_range_changes_nothing,
    a_deleted_topic_leaves_no_trace,
    a_delete_with_a_foreign_id_deletes_nothing,
    *MOVES,
)


def _is_led(traces: TopicTraces, *, partitions: int | None = None) -> bool:
    live = traces.live
    if live is None or (partitions is not None and live.partitions != partitions):
        return False
    states = live.states or {}
    return all(p in states and states[p].leader >= 0 for p in live.assignment)
