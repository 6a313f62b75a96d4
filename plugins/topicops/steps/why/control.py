"""Causes above the topic: no controller, a znode that nobody can read, a topic that is not there."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.ports import BrokerView
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.why.wording import brokers_text, read_from, remove_all, topic_path, zookeeper_shell


def unreadable_znode(facts: WhyFacts) -> Iterator[Cause]:
    """Some contents of a topic's znode stop every broker from being the controller; others only hide the topic."""
    if facts.traces is None:
        path = topic_path(facts)
        yield Cause(
            id="unreadable-znode",
            kind=CauseKind.STUCK,
            message=facts.undecodable,
            way_out="repair the znode, or save its data and remove it; then a controller is elected within seconds",
            commands=(zookeeper_shell(facts, "get", path), remove_all(facts, path)),
            caution="without its znode the topic is gone for the controller; brokers keep its logs",
            read_from=(path,),
        )


def no_controller(facts: WhyFacts) -> Iterator[Cause]:
    """While no controller is active, no topic is created, deleted or led by another broker."""
    if facts.times is None or (facts.controller_id is not None and facts.controller_id in facts.brokers):
        return
    named = facts.times.controller
    commands = (zookeeper_shell(facts, "delete", "/controller"),) if named is not None else ()
    who = "there is no /controller" if named is None else f"/controller names broker {named}, which is not registered"
    yield Cause(
        id="no-controller",
        kind=CauseKind.STUCK if commands else CauseKind.WAITS,
        message=f"no controller is active: {who}",
        way_out="it ends when a broker is elected; the znode of a dead broker goes with its session"
        if not commands
        else "remove the znode if no broker of that id runs; then a broker is elected at once",
        commands=commands,
        read_from=("/controller", "/brokers/ids"),
    )


def no_such_topic(facts: WhyFacts) -> Iterator[Cause]:
    """The source has no topic of that name; brokers may serve it all the same."""
    if facts.traces is None or facts.live is not None or facts.is_deleting:
        return
    serving = [b for b, view in facts.views.items() if isinstance(view, BrokerView) and facts.topic in view.topics]
    if serving:
        yield Cause(
            id="znode-removed",
            kind=CauseKind.STUCK,
            message=f"{brokers_text(serving)} still tell clients of it, and {topic_path(facts)} does not exist: "
            "somebody removed the znode by hand",
            way_out="restart these brokers, one after the other; then the topic is gone, and its logs may be removed",
            read_from=(topic_path(facts), *(f"metadata of broker {b}" for b in sorted(serving))),
        )
    else:
        leftover = " Only its config is left." if facts.traces.has_config_znode else ""
        yield Cause(
            id="no-topic",
            kind=CauseKind.NOTE,
            message=f"there is no topic of this name, and no broker tells of one.{leftover}",
            way_out="create it, if it should exist: topicops plan shows whether a file describes it",
            read_from=read_from(facts, topic_path(facts), "/admin/delete_topics"),
        )
