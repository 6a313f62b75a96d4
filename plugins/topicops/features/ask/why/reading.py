"""Read everything about one topic, from its znodes and from each broker that is registered, and name the causes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from topicops.features.ask.why.causes import causes
from topicops.features.ask.why.values import Why, WhyFacts
from topicops.flow.runs.access import Access
from topicops.flow.runs.files import read_needed_specs
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.errors import TopicopsError, UndecodableZnodeError, UsageError
from topicops.model.ports import BrokerView, LogQuestions
from topicops.model.release import USUAL, Release
from topicops.steps.planning.right_cluster import require_cluster_id
from topicops.steps.specs.needed import no_topic
from topicops.steps.specs.rules.names import name_problem

_T = TypeVar("_T")


def why(run: EnvironmentRun, topic: str) -> Why:
    """Read why the topic is as it is; brokers that do not answer are a cause. Raises ``WrongTargetError``."""
    from topicops.features.ask.why.topic_times import topic_times

    if problem := name_problem(topic):
        raise UsageError(f"this is no name of a topic: {problem[1]}")
    environment, _ = read_needed_specs(run.files, no_topic, run.progress).require()
    access, has_zookeeper = run.access(environment), environment.spec.cluster.source == "zookeeper"
    run.progress(f"Reading {topic} of {run.environment}")
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        unreadable: dict[str, UndecodableZnodeError] = {}
        traces = _read(lambda: reader.traces([topic], states=True)[topic], unreadable)
        times = _read(lambda: topic_times(reader, topic), unreadable)
        brokers, kafka = reader.brokers(), environment.spec.cluster.kafka
        endpoints = [found.endpoints[0] for _, found in sorted(brokers.items()) if found.endpoints]
        registered = ",".join(endpoint.rpartition("://")[2] for endpoint in endpoints)
        facts = WhyFacts(
            topic=topic,
            has_zookeeper=has_zookeeper,
            traces=traces,
            times=times,
            unreadable=tuple(unreadable.values()),
            brokers=frozenset(brokers),
            controller_id=reader.controller_id(),
            written_release=Release.parse(environment.spec.cluster.kafka_version) or USUAL,
            bootstrap_servers=(kafka and kafka.bootstrap_servers) or registered,
            zookeeper_hosts=access.zookeeper().hosts if has_zookeeper else "",
            own_move=_own_move(run, topic),
            environment=environment.name,
        )
    return Why(environment=environment.name, topic=topic, causes=causes(_with_brokers(access, facts)))


def _own_move(run: EnvironmentRun, topic: str) -> tuple[str, ...] | None:
    """Return the notes of our moves that are about this topic. Raises ``ArtifactError``."""
    known = run.known_moves()
    if topic not in known.topics or not known.topics[topic].partitions:
        return None
    return tuple(note for note in known.notes if note.startswith((f"{topic} partition", f"{topic}:")))


def _read(read: Callable[[], _T], unreadable: dict[str, UndecodableZnodeError]) -> _T | None:
    """Return what was read; None, and an entry in ``unreadable``, where Kafka cannot read it either."""
    try:
        return read()
    except UndecodableZnodeError as error:
        unreadable[error.path] = error
        return None


def _with_brokers(access: Access, facts: WhyFacts) -> WhyFacts:
    """Add the answers of all registered brokers; a sentence for one that does not answer."""
    try:
        properties = access.kafka("reader")
    except TopicopsError as error:
        return replace(facts, silent=dict.fromkeys(sorted(facts.brokers), str(error)))
    with access.questions() as questions, access.broker_views() as metadata:
        answers = metadata.views(sorted(facts.brokers), [facts.topic])
        views = {broker: view for broker, view in answers.items() if isinstance(view, BrokerView)}
        return replace(
            facts,
            views=views,
            silent={broker: reason for broker, reason in answers.items() if isinstance(reason, str)},
            logs=metadata.logs(_log_questions(facts, views)),
            broker_overrides=metadata.overrides([facts.topic])[facts.topic] if facts.live else None,
            broker_defaults=questions.broker_defaults(),
            releases=questions.releases(),
            bootstrap_servers=properties["bootstrap.servers"],
            command_config=properties.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT",
        )


def _log_questions(facts: WhyFacts, views: Mapping[int, BrokerView]) -> Mapping[int, LogQuestions]:
    """Ask each answering broker about all partitions, because it may have strays, and about those that it leads."""
    rows, asked = facts.live.assignment if facts.live else {}, {}
    for broker in sorted(facts.brokers):
        led = {p: state.leader_epoch for p, state in facts.states.items() if state.leader == broker and p in rows}
        if rows and broker in views:
            asked[broker] = LogQuestions(held={facts.topic: [*rows]}, led={facts.topic: led} if led else {})
    return asked
