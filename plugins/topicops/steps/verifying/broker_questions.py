"""Which brokers verify asks, and what it asks each of them about the logs on its disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from topicops.model.ports import LogQuestions
from topicops.steps.verifying.observation import Observation

MOST_BROKERS_ASKED = 32


def chosen_brokers(brokers: Iterable[int], *, most: int = MOST_BROKERS_ASKED) -> tuple[int, ...]:
    """At most ``most`` of the brokers, evenly spread over their ids."""
    ids = sorted(brokers)
    if len(ids) <= most:
        return tuple(ids)
    return tuple(ids[index * len(ids) // most] for index in range(most))


def log_questions(observation: Observation) -> Mapping[int, LogQuestions]:
    """What each live broker is asked about its logs of this topic; by broker."""
    expected = observation.expected
    if not expected.absent:
        return _questions_about_replicas(observation)
    if not expected.partitions:
        return {}
    question = LogQuestions(held={expected.topic: range(expected.partitions)})
    return dict.fromkeys(observation.brokers, question)


def replica_questions(observation: Observation) -> Mapping[int, LogQuestions]:
    """What each live broker is asked about the replicas that it should have; by broker."""
    rows, topic = observation.present.assignment, observation.expected.topic
    holders = {broker for row in rows.values() for broker in row} & set(observation.brokers)
    return {b: LogQuestions(held={topic: [p for p, row in rows.items() if b in row]}) for b in sorted(holders)}


def merged(questions: Iterable[Mapping[int, LogQuestions]]) -> Mapping[int, LogQuestions]:
    """One set of questions for each broker, about all topics."""
    found: dict[int, LogQuestions] = {}
    for asked in questions:
        for broker, more in asked.items():
            known = found.get(broker, LogQuestions(held={}))
            found[broker] = LogQuestions(held={**known.held, **more.held}, led={**known.led, **more.led})
    return found


def _questions_about_replicas(observation: Observation) -> Mapping[int, LogQuestions]:
    replicas = replica_questions(observation)
    return {broker: replace(asked, led=_led_by(broker, observation)) for broker, asked in replicas.items()}


def _led_by(broker: int, observation: Observation) -> dict[str, dict[int, int | None]]:
    """Partitions whose end offset is asked for, with their leader epochs: those that the run made, else all."""
    wanted = observation.expected.assignment.keys() or observation.present.assignment.keys()
    led = {p: found.leader_epoch for p, found in observation.led_partitions() if found.leader == broker and p in wanted}
    return {observation.expected.topic: led} if led else {}
