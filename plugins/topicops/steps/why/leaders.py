"""Why a partition has no leader, or another one than its first replica. Source: ``model.cluster.elections``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from topicops.model.cluster.elections import UNCLEAN_ELECTION, offline_election
from topicops.model.cluster.health import health_of
from topicops.model.release import ELECTS_BY_TOOL
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.disks import able_brokers
from topicops.steps.why.wording import (
    are,
    brokers_text,
    configure,
    kafka_tool,
    new_controller,
    partitions_file,
    read_from,
    since,
    state_path,
    state_time,
    topic_path,
    zookeeper_tool,
)

ZNODES = 5
"""How many znodes of a kind one cause names."""


def no_leader(facts: WhyFacts) -> Iterator[Cause]:
    """The leader died, and no replica of the ISR lives; the last members of the ISR have all records."""
    waiting: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = defaultdict(list)
    for p in _without_leader(facts):
        able = able_brokers(facts, p)
        if not able & set(facts.states[p].isr):
            live = sorted(able & set(_row(facts, p)))
            waiting[tuple(sorted(set(facts.states[p].isr) - able)), tuple(live)].append(p)
    for (awaited, others), partitions in sorted(waiting.items()):
        yield _no_leader(facts, partitions, awaited, others)


def _no_leader(facts: WhyFacts, partitions: Sequence[int], awaited: Sequence[int], others: Sequence[int]) -> Cause:
    verb, waits = ("have", "they wait") if partitions[1:] else ("has", "it waits")
    rows = ((_row(facts, p), facts.states[p].isr) for p in partitions)
    found = (offline_election(row, isr, set(others), unclean=True) for row, isr in rows)
    failed = facts.brokers & set(awaited)
    leaders = sorted({elected.leader for elected in found if elected})
    return Cause(
        id="no-leader",
        kind=CauseKind.WAITS,
        message=f"{partition_names(partitions)} {verb} no leader{since(state_time(facts, partitions))}: "
        + (f"{waits} for {brokers_text(awaited)}, last in the ISR; " if awaited else "the ISR is empty; ")
        + (f"{brokers_text(others)} {are(others)} live, but not in sync" if others else "no other replica is live"),
        way_out=f"a leader is elected when {'one of ' if awaited[1:] else ''}{brokers_text(awaited)} is back"
        + (f", {brokers_text(failed)} with the failed log directory as it was" if failed else "")
        if awaited
        else "none but the last resort: no broker is known to have all records",
        last_resort=f"an unclean election makes {brokers_text(leaders)} the leader{'s' if leaders[1:] else ''}"
        if leaders
        else "",
        commands=_unclean_election(facts, partitions) if leaders else (),
        caution=_price(facts, partitions, leaders) if leaders else "",
        read_from=_states_and_brokers(facts, partitions),
    )


def no_election(facts: WhyFacts) -> Iterator[Cause]:
    """A replica of the ISR lives, and nobody made it the leader."""
    able = {p: able_brokers(facts, p) & set(facts.states[p].isr) for p in _without_leader(facts)}
    left = [p for p, brokers in able.items() if brokers]
    if left:
        ready = sorted({broker for p in left for broker in able[p]})
        yield Cause(
            id="no-election",
            kind=CauseKind.WAITS,
            message=f"{partition_names(left)} {'have' if left[1:] else 'has'} no leader"
            f"{since(state_time(facts, left))}, although {brokers_text(ready)} of the ISR {are(ready)} registered",
            way_out="an active controller elects one within seconds; if there is one, a disk failed: look at the log "
            f"of {brokers_text(ready)}, and restart that broker",
            read_from=_states_and_brokers(facts, left),
        )


def no_state(facts: WhyFacts) -> Iterator[Cause]:
    """A partition gets its first state when one of its replicas lives."""
    if facts.live is None or facts.is_deleting or facts.live.states is None:
        return
    awaited: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for p in sorted(facts.live.assignment.keys() - facts.states.keys()):
        row = set(_row(facts, p))
        awaited[() if row & facts.brokers else tuple(sorted(row))].append(p)
    for brokers, without_state in sorted(awaited.items()):
        reason = f"none of the replicas, on {brokers_text(brokers)}, is registered"
        way_out = f"a leader is elected when {'one of ' if brokers[1:] else ''}{brokers_text(brokers)} registers"
        if not brokers:
            reason = "no controller has written the first state, although a replica is registered"
            way_out = "an active controller writes it within a second"
        yield Cause(
            id="no-state",
            kind=CauseKind.WAITS,
            message=f"{partition_names(without_state)} never had a leader: {reason}",
            way_out=way_out,
            read_from=read_from(
                facts, topic_path(facts), *(state_path(facts, p) for p in without_state[:ZNODES]), "/brokers/ids"
            ),
        )


def not_preferred(facts: WhyFacts) -> Iterator[Cause]:
    """Leaders that an election moved; with ``auto.leader.rebalance.enable`` they move back within minutes."""
    if facts.live is None or facts.is_deleting or facts.live.is_reassigning:
        return
    led = ((p, health_of(facts.live, p, facts.brokers)) for p in sorted(facts.states))
    able = [p for p, h in led if not h.is_offline and h.is_led_by_another and h.replicas[0] in h.isr]
    if able:
        yield Cause(
            id="not-preferred",
            kind=CauseKind.NOTE,
            message=f"{partition_names(able)}: not led by the first replica, although that is in sync",
            way_out="the controller moves leaders back within 5 minutes, if more than a tenth of a broker's are away",
            commands=_preferred_election(facts, able),
            read_from=read_from(facts, *(state_path(facts, p) for p in able[:ZNODES])),
        )


def _without_leader(facts: WhyFacts) -> list[int]:
    if facts.is_deleting or facts.live is None:
        return []
    led = ((p, health_of(facts.live, p, facts.brokers)) for p in sorted(facts.states))
    return [p for p, health in led if health.replicas and health.is_offline]


def _row(facts: WhyFacts, p: int) -> tuple[int, ...]:
    return facts.live.assignment.get(p, ()) if facts.live else ()


def _states_and_brokers(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    return read_from(facts, *(state_path(facts, p) for p in partitions[:ZNODES]), "/brokers/ids")


def _price(facts: WhyFacts, partitions: Sequence[int], leaders: Sequence[int]) -> str:
    loss = f"an unclean election loses every record that {brokers_text(leaders)} did not copy in time"
    if facts.release < ELECTS_BY_TOOL and facts.live is not None and len(facts.live.assignment) > len(partitions):
        return f"{loss}; until the last command it is allowed for every partition of the topic"
    return loss


def _unclean_election(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    """Before 2.4 a new controller does it, where the topic's config allows it.

    Source: kafka.controller.KafkaController#onControllerFailover, PartitionStateMachine#startup (1.0 to 2.3).
    """
    if facts.release >= ELECTS_BY_TOOL:
        return _election(facts, "unclean", partitions)
    own = facts.live.overrides.get(UNCLEAN_ELECTION) if facts.live else None
    back = ("--delete-config", UNCLEAN_ELECTION) if own is None else ("--add-config", f"{UNCLEAN_ELECTION}={own}")
    return (
        configure(facts, "--add-config", f"{UNCLEAN_ELECTION}=true"),
        *new_controller(facts),
        configure(facts, *back),
    )


def _preferred_election(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    if facts.release >= ELECTS_BY_TOOL:
        return _election(facts, "preferred", partitions)
    name = _file(facts)
    return (
        partitions_file(facts, name, {p: {} for p in partitions}),
        zookeeper_tool(facts, "kafka-preferred-replica-election", "--path-to-json-file", name),
    )


def _election(facts: WhyFacts, kind: str, partitions: Sequence[int]) -> tuple[str, ...]:
    """Its option for a login is another than that of Kafka's other tools. Source: LeaderElectionCommand (2.8, 3.9)."""
    tool, words = "kafka-leader-election", ("--election-type", kind)
    if len(partitions) == 1:
        one = ("--topic", facts.topic, "--partition", str(partitions[0]))
        return (kafka_tool(facts, tool, *words, *one, login="--admin.config"),)
    name = _file(facts)
    return (
        partitions_file(facts, name, {p: {} for p in partitions}),
        kafka_tool(facts, tool, *words, "--path-to-json-file", name, login="--admin.config"),
    )


def _file(facts: WhyFacts) -> str:
    return f"elect-{facts.topic}.json"
