"""Read everything about one topic, from its znodes and from each broker that is registered, and name the causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topicops.flow.runs.access import Access
from topicops.flow.runs.run import Run, read_needed_specs
from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.errors import TopicopsError, UndecodableZnodeError
from topicops.model.ports import BrokerView, LiveReader, LogQuestions
from topicops.model.why_facts import Cause, WhyFacts
from topicops.steps.planning.cluster_guard import require_cluster_id
from topicops.steps.specs.needed import no_topic
from topicops.steps.why import causes as causes_of


def why(run: Run, topic: str) -> tuple[Cause, ...]:
    """Why the topic is as it is; empty: nothing is wrong with it.

    Raises:
        WrongTargetError: Another cluster answers than the environment's.
        ClusterError: The source cannot be read. Brokers that do not answer are a cause.
    """
    environment, _ = read_needed_specs(run, no_topic).require()
    access = run.access(environment)
    run.progress(f"Reading {topic} of {run.environment}")
    with access.reader() as reader:
        require_cluster_id(reader.cluster_id(), environment)
        traces, undecodable = _traces(reader, topic)
        facts = WhyFacts(
            topic=topic,
            source=environment.spec.cluster.source,
            traces=traces,
            undecodable=undecodable,
            times=access.topic_times(reader, topic),
            brokers=frozenset(reader.brokers()),
            controller_id=reader.controller_id(),
            zookeeper_hosts=access.zookeeper().hosts if environment.spec.cluster.source == "zookeeper" else "",
        )
    return causes_of(_with_brokers(access, facts))


def _traces(reader: LiveReader, topic: str) -> tuple[TopicTraces | None, str]:
    try:
        return reader.traces([topic], states=True)[topic], ""
    except UndecodableZnodeError as error:
        return None, str(error)


def _with_brokers(access: Access, facts: WhyFacts) -> WhyFacts:
    """With the answers of all registered brokers; one that does not answer is a sentence."""
    try:
        properties = access.kafka("reader")
    except TopicopsError as error:
        return replace(facts, views=dict.fromkeys(sorted(facts.brokers), f"it cannot be asked: {error}"))
    with access.questions() as questions, access.broker_views() as metadata:
        views = metadata.views(sorted(facts.brokers), [facts.topic])
        logs = metadata.logs(_log_questions(facts, views))
        overrides = metadata.overrides([facts.topic])[facts.topic] if facts.live else None
        return replace(
            facts,
            views=views,
            logs=logs,
            broker_overrides=overrides,
            broker_defaults=questions.broker_defaults(),
            releases=questions.releases(),
            bootstrap_servers=properties["bootstrap.servers"],
            command_config=properties.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT",
        )


def _log_questions(facts: WhyFacts, views: Mapping[int, BrokerView | str]) -> Mapping[int, LogQuestions]:
    """About the replicas that each broker that answers should have, and the logs that it leads."""
    if facts.live is None or facts.is_deleting:
        return {}
    rows, asked = facts.live.assignment, {}
    for broker in sorted(facts.brokers):
        held = [p for p, row in rows.items() if broker in row]
        led = {p: state.leader_epoch for p, state in facts.states.items() if state.leader == broker and p in rows}
        if held and isinstance(views.get(broker), BrokerView):
            asked[broker] = LogQuestions(held={facts.topic: held}, led={facts.topic: led} if led else {})
    return asked
