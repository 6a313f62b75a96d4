"""Why clients of one broker see the topic otherwise: each broker answers from what the controller told it."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.ports import BrokerLogs, BrokerView
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import are, brokers_text, topic_path, zookeeper_shell


def unknown_to_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """The controller tells every broker of a new topic; one that did not hear answers UNKNOWN_TOPIC_OR_PARTITION."""
    if facts.live is None or facts.is_deleting or not facts.states:
        return
    known = {b: view for b, view in facts.views.items() if isinstance(view, BrokerView)}
    deaf = sorted(broker for broker, view in known.items() if facts.topic not in view.topics)
    if deaf:
        yield Cause(
            id="unknown-to-broker",
            kind=CauseKind.STUCK,
            message=f"{brokers_text(deaf)} {are(deaf)} not told of the topic: clients that ask "
            f"{'them' if deaf[1:] else 'it'} get UNKNOWN_TOPIC_OR_PARTITION (3)",
            way_out="a new topic is known everywhere within a second; else have a new controller elected, which tells "
            "every broker of everything",
            commands=(zookeeper_shell(facts, "delete", "/controller"),) if facts.times is not None else (),
            caution="a new controller reads every topic first, which takes some seconds in a large cluster",
            read_from=(topic_path(facts), *(f"metadata of broker {broker}" for broker in deaf)),
        )


def other_topic_id(facts: WhyFacts) -> Iterator[Cause]:
    """Brokers serve the topic that had the name before: its znode was made again, or lost its id."""
    if facts.live is None or facts.is_deleting:
        return
    for broker, view in sorted(facts.views.items()):
        known = view.topic_ids.get(facts.topic) if isinstance(view, BrokerView) else None
        if known is not None and facts.live.topic_id is not None and known != facts.live.topic_id:
            yield Cause(
                id="other-topic-id",
                kind=CauseKind.STUCK,
                message=f"broker {broker} knows the topic by id {known}, its znode has {facts.live.topic_id}",
                way_out="have a new controller elected; if a log is not served then, delete and create the topic",
                commands=(zookeeper_shell(facts, "delete", "/controller"),) if facts.times is not None else (),
                read_from=(topic_path(facts), f"metadata of broker {broker}"),
            )


def log_not_served(facts: WhyFacts) -> Iterator[Cause]:
    """ZooKeeper and metadata can look perfect while a broker refuses its own log."""
    for broker, logs in sorted(facts.logs.items()):
        if not isinstance(logs, BrokerLogs):
            continue
        idle, unread = sorted(logs.idle.get(facts.topic, ())), logs.unread.get(facts.topic, {})
        if idle or unread:
            what = f"has logs of {partition_names(idle)} and does not serve them" if idle else ""
            errors = ", ".join(f"partition {p}: {error}" for p, error in sorted(unread.items()))
            both = "; ".join(text for text in (what, errors) if text)
            yield Cause(
                id="log-not-served",
                kind=CauseKind.STUCK,
                message=f"broker {broker} {both}: the log is of another topic id, or its disk failed",
                way_out=f"look at the log of broker {broker}; if the topic's id is another one there, delete the topic "
                "and create it again",
                read_from=(f"log directories and end offsets of broker {broker}",),
            )


def silent_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A broker that is registered and does not answer clients."""
    for broker, view in sorted(facts.views.items()):
        if isinstance(view, str) and broker in facts.brokers:
            yield Cause(
                id="silent-broker",
                kind=CauseKind.STUCK,
                message=f"broker {broker} is registered, and gives no answer: {view}",
                way_out=f"look whether broker {broker} hangs or is cut off, and restart it",
                read_from=(f"/brokers/ids/{broker}", f"metadata of broker {broker}"),
            )
