"""Causes above the topic: no controller, a znode that nobody can read, a topic that is not there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.why.wording import (
    brokers_text,
    config_path,
    metadata_of,
    new_controller,
    read_from,
    remove_all,
    topic_path,
    topic_znode,
    zookeeper_shell,
)


def unreadable_znodes(facts: WhyFacts) -> Iterator[Cause]:
    """Some contents of a topic's znode stop every broker from being the controller; others only hide the topic."""
    for znode in facts.unreadable:
        saved = f"{zookeeper_shell(facts, 'get', znode.path)} > {shlex.quote(znode.path.strip('/').replace('/', '-'))}"
        is_config = znode.path == config_path(facts)
        can_go = znode.stops_controller and znode.path == topic_path(facts)
        commands: tuple[str, ...] = (saved,)
        last_resort = caution = ""
        if is_config:
            last_resort = "save its data, and write a config without overrides; then set those that you need"
            commands = (saved, zookeeper_shell(facts, "set", znode.path, '{"version":1,"config":{}}'))
            caution = "overrides that the broken data still shows are lost"
        elif can_go:
            last_resort = "save its data and remove it with all below it; then a controller is elected within seconds"
            commands = (saved, remove_all(facts, znode.path))
            caution = "without its znode the topic is gone for the controller; brokers keep its logs"
        yield Cause(
            id="unreadable-znode",
            kind=CauseKind.STUCK,
            message=znode.problem,
            way_out="save its data, and write it as it should be",
            last_resort=last_resort,
            commands=commands,
            caution=caution,
            read_from=(znode.path,),
        )


def no_controller(facts: WhyFacts) -> Iterator[Cause]:
    """While no controller is active, no topic is created, deleted or led by another broker."""
    if facts.times is None or (facts.controller_id is not None and facts.controller_id in facts.brokers):
        return
    named = facts.times.controller
    commands = new_controller(facts) if named is not None else ()
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
    serving = sorted(broker for broker, view in facts.views.items() if facts.topic in view.topics)
    if serving:
        yield _znode_removed(facts, serving)
    else:
        leftover = " Only its config is left." if facts.traces.has_config_znode else ""
        yield Cause(
            id="no-topic",
            kind=CauseKind.NOTE,
            message=f"there is no topic of this name, and no broker tells of one.{leftover}",
            way_out="create it, if it should exist: topicops plan shows whether a file describes it",
            read_from=read_from(facts, topic_path(facts), "/admin/delete_topics"),
        )


def _znode_removed(facts: WhyFacts, serving: Sequence[int]) -> Cause:
    """What the brokers tell of the topic is enough to write its znode again, but for its configs."""
    restart = "restart these brokers, one after the other"
    message = f"{brokers_text(serving)} still {'tell' if serving[1:] else 'tells'} clients of it"
    if not facts.has_zookeeper:
        return Cause(
            id="znode-removed",
            kind=CauseKind.STUCK,
            message=f"{message}, and the broker that was read does not know it",
            way_out=f"ask again; if it stays so, {restart}",
            read_from=metadata_of(serving),
        )
    view = facts.views[serving[0]]
    rows = {p: found.replicas for p, found in view.topics[facts.topic].items()}
    data = topic_znode(rows, view.topic_ids.get(facts.topic))
    return Cause(
        id="znode-removed",
        kind=CauseKind.STUCK,
        message=f"{message}, and {topic_path(facts)} does not exist: somebody removed the znode by hand",
        way_out=f"to keep the topic, write its znode again from what they tell, and {restart}; its own configs are not "
        f"in it. To let it go, {restart}, and remove its logs",
        commands=(zookeeper_shell(facts, "create", topic_path(facts), data),),
        caution="do not restart a broker before you have decided: without the znode the records are out of reach then",
        read_from=(topic_path(facts), *metadata_of(serving)),
    )
