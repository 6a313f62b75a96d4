"""Compare what brokers say of every topic with the source of a snapshot, without a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.memory import in_parts
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.steps.verifying.broker_checks import metadata
from topicops.steps.verifying.observation import Expectation, Observation, chosen_brokers

BROKERS_ASKED = 3
"""The controller sends every broker the same metadata; verify asks more brokers about what the run changed."""
TOPICS_AT_ONCE = 500
READINGS = 3
PAUSE_S = 1.0
"""The controller writes to ZooKeeper first and then informs the brokers."""


def differing_topics(
    live: ClusterSnapshot, *, reader: LiveReader, brokers: BrokerMetadata, clock: Clock
) -> Mapping[str, str]:
    """What the brokers say otherwise, by topic; an empty text where they agree. Topics that differ are read again.

    Topics that are being deleted are left out. When no broker answers, the only entry has no name and gives the reason.
    """
    asked = chosen_brokers(live.brokers, most=BROKERS_ASKED)
    found: dict[str, str] = {}
    for topics in _readings(live, found, reader, clock) if asked else ():
        answers = brokers.views(asked, sorted(topics))
        views = {broker: answer for broker, answer in answers.items() if isinstance(answer, BrokerView)}
        if not views:
            return {"": "; ".join(str(answer) for answer in answers.values())}
        found |= {name: _differences(live, topic, views) for name, topic in topics.items()}
    return found


def _readings(
    live: ClusterSnapshot, found: dict[str, str], reader: LiveReader, clock: Clock
) -> Iterator[Mapping[str, LiveTopic]]:
    """The topics to compare, then those that differed, read again. Removes topics from ``found`` that are gone."""
    yield from in_parts(live.topics, [name for name in live.topics if name not in live.deleting], size=TOPICS_AT_ONCE)
    for _ in range(READINGS - 1):
        differing = sorted(name for name, text in found.items() if text)
        if not differing:
            return
        clock.sleep(PAUSE_S)
        traces = reader.traces(differing, states=True)
        again = {name: trace.live for name, trace in traces.items() if trace.live and not trace.is_deleting}
        for name in traces.keys() - again.keys():
            del found[name]
        if again:
            yield again


def _differences(live: ClusterSnapshot, topic: LiveTopic, views: Mapping[int, BrokerView]) -> str:
    observation = Observation(
        expected=Expectation(topic=topic.name),
        traces=TopicTraces(live=topic, has_config_znode=True, is_deleting=False),
        brokers=live.brokers,
        controller_epoch=live.controller_epoch,
        source=live.source,
        views=views,
    )
    return "; ".join(finding.message for finding in metadata(observation))
