"""Why clients of one broker see the topic otherwise: each broker answers from what the controller told it."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.ports import BrokerLogs
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import (
    brokers_text,
    metadata_of,
    new_controller,
    read_from,
    topic_path,
    topic_znode,
    zookeeper_shell,
)


def unknown_to_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """The controller tells every broker of a new topic; one that did not hear answers UNKNOWN_TOPIC_OR_PARTITION."""
    if facts.live is None or facts.is_deleting or not facts.states:
        return
    deaf = sorted(broker for broker, view in facts.views.items() if facts.topic not in view.topics)
    if deaf:
        commands = new_controller(facts)
        yield Cause(
            id="unknown-to-broker",
            kind=CauseKind.STUCK,
            message=f"{brokers_text(deaf)} {'do' if deaf[1:] else 'does'} not know the topic: clients that ask "
            f"{'them' if deaf[1:] else 'it'} get UNKNOWN_TOPIC_OR_PARTITION (3)",
            way_out="a new topic is known everywhere within a second; else "
            + (
                "have a new controller elected, which tells every broker of everything"
                if commands
                else f"look at the log of {brokers_text(deaf)}: it does not hear of changes"
            ),
            commands=commands,
            caution="a new controller reads every topic first, which takes some seconds in a large cluster"
            if commands
            else "",
            read_from=(*read_from(facts, topic_path(facts)), *metadata_of(deaf)),
        )


def other_topic_id(facts: WhyFacts) -> Iterator[Cause]:
    """Brokers serve the topic that had the name before: its znode was made again, or lost its id.

    They refuse what a new controller tells them of the id in the znode. Source: kafka.server.ReplicaManager
    #becomeLeaderOrFollower, INCONSISTENT_TOPIC_ID (2.8 to 3.9).
    """
    live = facts.live
    if live is None or facts.is_deleting or live.topic_id is None:
        return
    ids = {broker: known for broker, view in facts.views.items() if (known := view.topic_ids.get(facts.topic))}
    others = sorted(broker for broker, known in ids.items() if known != live.topic_id)
    if not others:
        return
    same = next(iter(set(ids.values()))) if len(set(ids.values())) == 1 and facts.has_zookeeper else None
    known = ", ".join(sorted({ids[broker] for broker in others}))
    znode = topic_znode(live.assignment, same, adding=live.adding, removing=live.removing)
    place = "its znode" if facts.has_zookeeper else "another broker"
    yield Cause(
        id="other-topic-id",
        kind=CauseKind.STUCK,
        message=f"{brokers_text(others)} {'know' if others[1:] else 'knows'} the topic by id {known}, {place} has "
        f"{live.topic_id}; the next controller tells them of an id that they refuse, and they stop serving it",
        way_out="write the id of the brokers back to the znode, then have a new controller elected"
        if same
        else "find out which id the records have, in partition.metadata of the logs; no command is safe before",
        commands=(zookeeper_shell(facts, "set", topic_path(facts), znode), *new_controller(facts)) if same else (),
        caution="to delete the topic and create it again loses all its records",
        read_from=(*read_from(facts, topic_path(facts)), *metadata_of(others)),
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
                way_out=f"look at the log of broker {broker}; where another replica is in sync, move the partition's "
                "folder there away and restart the broker: it copies the records anew",
                caution="to delete the topic and create it again loses all its records",
                read_from=(f"log directories and end offsets of broker {broker}",),
            )


def silent_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A broker that is registered and does not answer clients, while others do."""
    for broker, reason in sorted(facts.silent.items()):
        if facts.views:
            yield Cause(
                id="silent-broker",
                kind=CauseKind.STUCK,
                message=f"broker {broker} is registered, and gives no answer: {reason}",
                way_out=f"look whether broker {broker} hangs or is cut off, and restart it",
                read_from=(*read_from(facts, f"/brokers/ids/{broker}"), *metadata_of([broker])),
            )


def no_broker_answers(facts: WhyFacts) -> Iterator[Cause]:
    """Then it may be our login, our rights or the network between, and nothing is known of the brokers."""
    if facts.silent and not facts.views:
        reason = facts.silent[min(facts.silent)]
        yield Cause(
            id="no-broker-answers",
            kind=CauseKind.STUCK,
            message=f"no registered broker gives an answer, so what they know of the topic is not looked at: {reason}",
            way_out="topicops doctor says whether it is the login, a right or the network; else the brokers hang",
            read_from=(*read_from(facts, "/brokers/ids"), *metadata_of(facts.silent)),
        )
