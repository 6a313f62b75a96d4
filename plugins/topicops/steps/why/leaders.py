"""Why a partition has no leader, or another one than its first replica. Source: ``controller.elections``."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.controller.elections import offline_election
from topicops.model.cluster.snapshot import PartitionState
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.wording import (
    are,
    at,
    brokers_text,
    kafka_tool,
    read_from,
    state_path,
    state_time,
    topic_path,
    unregistered,
)

COMMANDS = 5
"""How many partitions get a command of their own."""


def no_leader(facts: WhyFacts) -> Iterator[Cause]:
    """The leader died, and no replica of the ISR lives; the last member of the ISR has all records."""
    if facts.live is None or facts.is_deleting:
        return
    for p, state in sorted(facts.states.items()):
        if p in facts.live.assignment and state.leader not in facts.brokers:
            yield _no_leader(facts, p, facts.live.assignment[p], state)


def _no_leader(facts: WhyFacts, p: int, row: tuple[int, ...], state: PartitionState) -> Cause:
    where = read_from(facts, state_path(facts, p), "/brokers/ids")
    since = at(state_time(facts, [p]))
    awaited = unregistered(facts, state.isr)
    if not awaited:
        ready = sorted(set(state.isr) & facts.brokers)
        return Cause(
            id="no-election",
            kind=CauseKind.WAITS,
            message=f"partition {p} has no leader{since}, although {brokers_text(ready)} of its ISR "
            f"{are(ready)} registered",
            way_out="the controller elects one within seconds; if it does not, the disk of the broker failed, or no "
            "controller is active: look at the broker's log, and restart the broker",
            read_from=where,
        )
    message = f"partition {p} has no leader{since}: it waits for {brokers_text(awaited)}, last in its ISR"
    way_out = f"it is led again by itself when {'one of them' if awaited[1:] else 'it'} "
    others = offline_election(row, state.isr, facts.brokers, unclean=True)
    if others is None:
        return Cause(
            id="no-leader",
            kind=CauseKind.WAITS,
            message=f"{message}; none of its replicas {list(row)} is registered",
            way_out=f"{way_out}is back",
            read_from=where,
        )
    words = ["--election-type", "unclean", "--topic", facts.topic, "--partition", str(p)]
    return Cause(
        id="no-leader",
        kind=CauseKind.WAITS,
        message=f"{message}; {brokers_text(set(row) & facts.brokers)} live, but not in sync",
        way_out=f"{way_out}is back; if that cannot be, an unclean election makes broker {others.leader} the leader",
        commands=(kafka_tool(facts, "kafka-leader-election", *words),),
        caution=f"an unclean election loses every record that broker {others.leader} did not copy in time",
        read_from=where,
    )


def no_state(facts: WhyFacts) -> Iterator[Cause]:
    """A partition gets its first state when one of its replicas lives."""
    if facts.live is None or facts.is_deleting or facts.live.states is None:
        return
    for p in sorted(facts.live.assignment.keys() - facts.states.keys()):
        row = facts.live.assignment[p]
        there = sorted(set(row) & facts.brokers)
        reason = f"none of its replicas {list(row)} is registered"
        way_out = f"it is led by itself when one of {brokers_text(row)} registers; it cannot be moved before that"
        if there:
            reason = f"{brokers_text(there)} {are(there)} registered, and no controller has made its state"
            way_out = "the controller makes it within a second when it is active"
        yield Cause(
            id="no-state",
            kind=CauseKind.WAITS,
            message=f"partition {p} never had a leader: {reason}",
            way_out=way_out,
            read_from=read_from(facts, topic_path(facts), state_path(facts, p), "/brokers/ids"),
        )


def not_preferred(facts: WhyFacts) -> Iterator[Cause]:
    """Leaders that an election moved; with ``auto.leader.rebalance.enable`` they move back within minutes."""
    if facts.live is None or facts.is_deleting or facts.live.is_reassigning:
        return
    moved = [
        p
        for p, state in sorted(facts.states.items())
        if (row := facts.live.assignment.get(p)) and state.leader in facts.brokers and state.leader != row[0]
    ]
    able = [p for p in moved if facts.live.assignment[p][0] in facts.states[p].isr]
    if able:
        words = ["--election-type", "preferred", "--topic", facts.topic, "--partition"]
        yield Cause(
            id="not-preferred",
            kind=CauseKind.NOTE,
            message=f"{partition_names(able)}: not led by the first replica, although that is in sync",
            way_out="the controller moves leaders back within 5 minutes, if more than a tenth of a broker's are away",
            commands=tuple(kafka_tool(facts, "kafka-leader-election", *words, str(p)) for p in able[:COMMANDS]),
            read_from=read_from(facts, *(state_path(facts, p) for p in able[:COMMANDS])),
        )
