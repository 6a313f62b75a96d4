"""Whether brokers and the first side say the same of every topic of a cluster; for quality, where no plan waits."""

from __future__ import annotations

from collections.abc import Mapping

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, TopicTraces
from topicops.model.ports import BrokerMetadata, BrokerView, Clock, LiveReader
from topicops.steps.verifying.broker_checks import metadata
from topicops.steps.verifying.observation import Expectation, Observation
from topicops.steps.verifying.verify import chosen_brokers

BROKERS_ASKED = 3
"""Every broker is told the same by the controller; verify asks more of them, about what the run touched."""
LOOKS = 3
PAUSE_S = 1.0
"""The controller writes ZooKeeper first and tells the brokers then."""


def view_differences(
    live: ClusterSnapshot, *, reader: LiveReader, brokers: BrokerMetadata, clock: Clock
) -> Mapping[str, str]:
    """Where the brokers say otherwise, by topic; empty where they agree. Topics that differ are looked at again.

    Topics that are going are left out. When no broker answers, the only entry has no name and says why.
    """
    asked = chosen_brokers(live.brokers, most=BROKERS_ASKED)
    topics = {name: topic for name, topic in live.topics.items() if name not in live.deleting}
    found: dict[str, str] = {}
    for observation in range(LOOKS if asked else 0):
        if observation and topics:
            clock.sleep(PAUSE_S)
            traces = reader.traces(sorted(topics), states=True)
            topics = {name: trace.live for name, trace in traces.items() if trace.live and not trace.is_deleting}
            found = {name: text for name, text in found.items() if name not in traces or name in topics}
        if not topics:
            break
        answers = brokers.views(asked, sorted(topics))
        views = {broker: answer for broker, answer in answers.items() if isinstance(answer, BrokerView)}
        if not views:
            return {"": "; ".join(str(answer) for answer in answers.values())}
        found |= {name: _differences(live, topic, views) for name, topic in topics.items()}
        topics = {name: topic for name, topic in topics.items() if found[name]}
    return found


def _differences(live: ClusterSnapshot, topic: LiveTopic, views: Mapping[int, BrokerView]) -> str:
    observation = Observation(
        expected=Expectation(topic=topic.name),
        traces=TopicTraces(live=topic, has_config_znode=True, is_deleting=False),
        brokers=live.brokers,
        controller_epoch=live.controller_epoch,
        source=live.source,
        views=views,
    )
    return "; ".join(problem.message for problem in metadata(observation))
