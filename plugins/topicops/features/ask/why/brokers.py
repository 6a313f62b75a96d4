"""Causes above the topic, and the brokers' view of it: metadata, id, logs and configs.

Each broker answers its clients from the controller's requests, and reads a config znode only when ``/config/changes``
names it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping

from topicops.features.ask.why.values import NOTE, STUCK, WAITS, Cause, WhyFacts, metadata_of, topic_znode, when
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.ports import BrokerLogs
from topicops.model.specs.config_checks import config_problem, value_problem
from topicops.model.specs.topic_config import MIN_ISR, caps_min_isr, min_insync_replicas
from topicops.steps.verifying.observation import partition_names

LOSES_ALL = "to delete the topic and create it again loses all its records"
UNUSED_CONFIG, ITS_DEFAULT = "file.delete.delay.ms", "60000"
"""A config to set and to take back, for a topic without one of its own."""


def unreadable_znodes(facts: WhyFacts) -> Iterator[Cause]:
    """Some contents of a topic's znode stop every broker from being the controller; others only hide the topic."""
    for znode in facts.unreadable:
        saved = f"{facts.zookeeper_shell('get', znode.path)} > {shlex.quote(znode.path.strip('/').replace('/', '-'))}"
        last_resort, more, caution = "", list[str](), ""
        if znode.path == facts.config_path:
            last_resort = "save its data, and write a config without overrides; then set those that you need"
            more = [facts.zookeeper_shell("set", znode.path, '{"version":1,"config":{}}')]
            caution = "overrides that the broken data still shows are lost"
        elif znode.stops_controller and znode.path == facts.topic_path:
            last_resort = "save its data and remove it with all below it; then a controller is elected within seconds"
            more = [facts.remove_all(znode.path)]
            caution = "without its znode the topic is gone for the controller; brokers keep its logs"
        way_out = "save its data, and write it as it should be"
        yield Cause(STUCK, str(znode), way_out, (znode.path,), (saved, *more), caution, last_resort)


def no_controller(facts: WhyFacts) -> Iterator[Cause]:
    """While no controller is active, no topic is created, deleted or led by another broker."""
    if facts.times is None or (facts.controller_id is not None and facts.controller_id in facts.brokers):
        return
    message, read = "no controller is active:", ("/controller", "/brokers/ids")
    if (named := facts.times.controller) is None:
        way_out = "it ends when a broker is elected; the znode of a dead broker goes with its session"
        yield Cause(WAITS, f"{message} there is no /controller", way_out, read)
    else:
        message = f"{message} /controller names broker {named}, which is not registered"
        way_out = "remove the znode if no broker of that id runs; then a broker is elected at once"
        yield Cause(STUCK, message, way_out, read, facts.new_controller())


def no_topic(facts: WhyFacts) -> Iterator[Cause]:
    if _is_absent(facts) and facts.traces and not _serving(facts):
        leftover = " Only its config is left." if facts.traces.has_config_znode else ""
        yield Cause(
            NOTE,
            f"there is no topic of this name, and no broker tells of one.{leftover}",
            "create it, if it should exist: topicops plan shows whether a file describes it",
            facts.read_from(facts.topic_path, "/admin/delete_topics"),
        )


def znode_removed(facts: WhyFacts) -> Iterator[Cause]:
    """What the brokers tell of the topic is enough to write its znode again, but for its configs."""
    serving = _serving(facts)
    if not serving or not _is_absent(facts):
        return
    restart = "restart these brokers, one after the other"
    message = f"{brokers_text(serving)} still {'tell' if serving[1:] else 'tells'} clients of it"
    if not facts.has_zookeeper:
        message = f"{message}, and the broker that was read does not know it"
        yield Cause(STUCK, message, f"ask again; if it stays so, {restart}", metadata_of(serving))
        return
    view = facts.views[serving[0]]
    rows = {p: found.replicas for p, found in view.topics[facts.topic].items()}
    data = topic_znode(view.topic_ids.get(facts.topic), rows, {}, {})
    yield Cause(
        STUCK,
        f"{message}, and {facts.topic_path} does not exist: somebody removed the znode by hand",
        f"to keep the topic, write its znode again from what they tell, and {restart}; its own configs are not "
        f"in it. To let it go, {restart}, and remove its logs",
        (facts.topic_path, *metadata_of(serving)),
        (facts.zookeeper_shell("create", facts.topic_path, data),),
        "do not restart a broker before you have decided: without the znode the records are out of reach then",
    )


def unknown_to_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """The controller tells every broker of a new topic; one that did not hear answers UNKNOWN_TOPIC_OR_PARTITION."""
    deaf = sorted(broker for broker, view in facts.views.items() if facts.topic not in view.topics)
    if facts.staying is None or not facts.states or not deaf:
        return
    knows, them = ("do not know", "them") if deaf[1:] else ("does not know", "it")
    ends, caution = f"look at the log of {brokers_text(deaf)}: it does not hear of changes", ""
    if facts.has_zookeeper:
        ends = "have a new controller elected, which tells every broker of everything"
        caution = "a new controller reads every topic first, which takes some seconds in a large cluster"
    yield Cause(
        STUCK,
        f"{brokers_text(deaf)} {knows} the topic: clients that ask {them} get UNKNOWN_TOPIC_OR_PARTITION (3)",
        f"a new topic is known everywhere within a second; else {ends}",
        (*facts.read_from(facts.topic_path), *metadata_of(deaf)),
        facts.new_controller(),
        caution,
    )


def other_topic_id(facts: WhyFacts) -> Iterator[Cause]:
    """Brokers serve the topic that had the name before: its znode was made again, or lost its id.

    They refuse what a new controller tells them of the id in the znode. Source: kafka.server.ReplicaManager
    #becomeLeaderOrFollower, INCONSISTENT_TOPIC_ID (2.8 to 3.9).
    """
    live = facts.staying
    if live is None or live.topic_id is None:
        return
    ids = {broker: known for broker, view in facts.views.items() if (known := view.topic_ids.get(facts.topic))}
    others = sorted(broker for broker, known in ids.items() if known != live.topic_id)
    if not others:
        return
    known = ", ".join(sorted({ids[broker] for broker in others}))
    place = "its znode" if facts.has_zookeeper else "another broker"
    way_out = "find out which id the records have, in partition.metadata of the logs; no command is safe before"
    commands: tuple[str, ...] = ()
    if facts.has_zookeeper and len(set(ids.values())) == 1:
        way_out = "write the id of the brokers back to the znode, then have a new controller elected"
        data = topic_znode(known, live.assignment, live.adding, live.removing)
        commands = (facts.zookeeper_shell("set", facts.topic_path, data), *facts.new_controller())
    yield Cause(
        STUCK,
        f"{brokers_text(others)} {'know' if others[1:] else 'knows'} the topic by id {known}, {place} has "
        f"{live.topic_id}; the next controller tells them of an id that they refuse, and they stop serving it",
        way_out,
        (*facts.read_from(facts.topic_path), *metadata_of(others)),
        commands,
        LOSES_ALL,
    )


def log_not_served(facts: WhyFacts) -> Iterator[Cause]:
    """ZooKeeper and metadata can look perfect while a broker refuses its own log."""
    for broker, logs in sorted(facts.logs.items()):
        if not isinstance(logs, BrokerLogs):
            continue
        idle = sorted(p for p in logs.idle.get(facts.topic, ()) if broker in facts.row(p))
        unread = logs.unread.get(facts.topic, {})
        what = f"has logs of {partition_names(idle)} and does not serve them" if idle else ""
        errors = ", ".join(f"partition {p}: {error}" for p, error in sorted(unread.items()))
        if both := "; ".join(filter(None, (what, errors))):
            yield Cause(
                STUCK,
                f"broker {broker} {both}: the log is of another topic id, or its disk failed",
                f"look at the log of broker {broker}; where another replica is in sync, move the partition's "
                "folder there away and restart the broker: it copies the records anew",
                (f"log directories and end offsets of broker {broker}",),
                caution=LOSES_ALL,
            )


def stray_logs(facts: WhyFacts) -> Iterator[Cause]:
    """A cancelled move left them: with ZooKeeper before 3.5 on any broker, later on one that was down (KAFKA-13972)."""
    live = facts.staying
    for broker, logs in sorted(facts.logs.items()) if live else ():
        if live is None or not isinstance(logs, BrokerLogs):
            continue
        there = logs.held.get(facts.topic, frozenset()) | logs.idle.get(facts.topic, frozenset())
        if strays := sorted(p for p in there if p in live.assignment and broker not in facts.row(p)):
            yield Cause(
                NOTE,
                f"broker {broker} has logs of {partition_names(strays)}, of which it has no replica; they use disk",
                "topicops starts no move of these partitions to that broker while they are there, because they may be "
                "of an earlier topic of that name; to free the disk too, stop the broker, move these folders "
                f"({facts.topic}-{strays[0]}) away, and start it again",
                (f"log directories of broker {broker}", *facts.read_from(facts.topic_path)),
            )


def silent_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """A broker that is registered and does not answer clients, while others do."""
    for broker, reason in sorted(facts.silent.items()) if facts.views else ():
        message = f"broker {broker} is registered, and gives no answer: {reason}"
        read = (*facts.read_from(f"/brokers/ids/{broker}"), *metadata_of([broker]))
        yield Cause(STUCK, message, f"look whether broker {broker} hangs or is cut off, and restart it", read)


def no_broker_answers(facts: WhyFacts) -> Iterator[Cause]:
    """Then it may be our login, our rights or the network between, and nothing is known of the brokers."""
    if facts.silent and not facts.views:
        reason = facts.silent[min(facts.silent)]
        yield Cause(
            STUCK,
            f"no registered broker gives an answer, so what they know of the topic is not looked at: {reason}",
            "topicops doctor says whether it is the login, a right or the network; else the brokers hang",
            (*facts.read_from("/brokers/ids"), *metadata_of(facts.silent)),
        )


def _is_absent(facts: WhyFacts) -> bool:
    """Return whether the source has no topic of that name; brokers may serve it all the same."""
    return facts.traces is not None and facts.live is None and not facts.is_deleting


def _serving(facts: WhyFacts) -> list[int]:
    return sorted(broker for broker, view in facts.views.items() if facts.topic in view.topics)


def not_in_force(facts: WhyFacts) -> Iterator[Cause]:
    """Somebody wrote the znode by hand: brokers show its values, and behave as before.

    Source: kafka.server.DynamicConfigManager, org.apache.kafka.server.config.ZkNodeChangeNotificationListener (3.9).
    """
    if facts.live and facts.times and facts.times.is_config_told is False and not _invalid(facts):
        yield Cause(
            STUCK,
            f"the configs are not in force{when('since', facts.times.config)}: the znode was written then, and nothing "
            "in /config/changes names the topic, so brokers behave as before",
            "set the same values again through the brokers, which then tell each other",
            (facts.config_path, "/config/changes"),
            _set_again(facts, facts.live.overrides),
        )


def refused_by_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """With one invalid config in the znode, brokers refuse every change of the topic's configs.

    A value that they cannot read also stops a broker that loads the topic; a name that they do not know does not.
    Source: org.apache.kafka.storage.internals.log.LogConfig#validate, #fromProps (1.0 to 4.x).
    """
    if facts.live is None or not (invalid := _invalid(facts)):
        return
    names = ", ".join(invalid)
    unreadable = [name for name in invalid if value_problem(name, facts.live.overrides[name], facts.release)]
    kept = {name: value for name, value in facts.live.overrides.items() if name not in invalid}
    way_out, commands = f"take {names} off the topic", [facts.configure("--delete-config", ",".join(invalid))]
    if facts.has_zookeeper:
        way_out = f"write the znode without {names}, then have the brokers told by a change of a config"
        data = json.dumps({"version": 1, "config": kept}, separators=(",", ":"))
        commands = [facts.zookeeper_shell("set", facts.config_path, data), *_set_again(facts, kept)]
    refusal = (facts.broker_overrides,) if isinstance(facts.broker_overrides, str) else ()
    problems = "; ".join(f"{name}: {problem}" for name, problem in invalid.items())
    fails = ", and one that holds the topic fails its next start" if unreadable else ""
    loss = f"{names}: lost, where a vendor's brokers know more configs than Kafka's"
    yield Cause(
        STUCK,
        f"{problems}. Brokers refuse every change of the topic's configs{fails}",
        way_out,
        (*facts.read_from(facts.config_path), *refusal),
        tuple(commands),
        loss if len(unreadable) < len(invalid) else "",
    )


def min_isr_cannot_be_met(facts: WhyFacts) -> Iterator[Cause]:
    """Before 3.7 a minimum above the number of replicas can never be met."""
    if (live := facts.staying) is None or caps_min_isr(facts.releases):
        return
    least = min_insync_replicas(live.overrides, facts.broker_defaults)
    factor = min((len(row) for row in live.target_assignment.values()), default=least)
    if least > factor:
        yield Cause(
            STUCK,
            f"producers with acks=all always fail: {MIN_ISR} is {least}, and partitions have {factor} replicas",
            f"lower {MIN_ISR}, in the topic's file too, or give the topic more replicas",
            facts.read_from(facts.config_path),
            (facts.configure("--add-config", f"{MIN_ISR}={max(1, factor - 1)}"),),
        )


def _set_again(facts: WhyFacts, overrides: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requests that leave these overrides as they are, and notify the brokers."""
    if not overrides:
        there = facts.configure("--add-config", f"{UNUSED_CONFIG}={ITS_DEFAULT}")
        return there, facts.configure("--delete-config", UNUSED_CONFIG)
    pairs = (f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in sorted(overrides.items()))
    return (facts.configure("--add-config", ",".join(pairs)),)


def _invalid(facts: WhyFacts) -> dict[str, str]:
    """Return the values that the brokers of this release cannot read, with the problem."""
    overrides = facts.live.overrides if facts.live else {}
    found = {name: config_problem(name, value, facts.release) for name, value in sorted(overrides.items())}
    return {name: problem for name, problem in found.items() if problem}
