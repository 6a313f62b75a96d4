"""Why a partition has no leader, or another one than its first replica. Source: ``model.cluster.health``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.why.replicas import able_brokers
from topicops.features.why.values import NOTE, WAITS, Cause, WhyFacts
from topicops.features.why.wording import are, grouped, since
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.health import UNCLEAN_ELECTION, health_of, offline_election
from topicops.model.release import ELECTS_BY_TOOL
from topicops.steps.verifying.observation import partition_names


def no_leader(facts: WhyFacts) -> Iterator[Cause]:
    """The leader died, and no replica of the ISR lives; the last members of the ISR have all records."""
    able = {p: able_brokers(facts, p) for p in _without_leader(facts)}
    waiting = (
        ((tuple(sorted({*facts.states[p].isr} - live)), tuple(sorted(live & {*facts.row(p)}))), p)
        for p, live in able.items()
        if not live & {*facts.states[p].isr}
    )
    for (awaited, others), partitions in grouped(waiting):
        yield _no_leader(facts, partitions, awaited, others)


def _no_leader(facts: WhyFacts, partitions: Sequence[int], awaited: Sequence[int], others: Sequence[int]) -> Cause:
    verb, waits = ("have", "they wait") if partitions[1:] else ("has", "it waits")
    rows = ((facts.row(p), facts.states[p].isr) for p in partitions)
    found = (offline_election(row, isr, set(others), unclean=True) for row, isr in rows)
    leaders = sorted({elected.leader for elected in found if elected})
    way_out = "none but the last resort: no broker is known to have all records"
    if awaited:
        way_out = f"a leader is elected when {'one of ' if awaited[1:] else ''}{brokers_text(awaited)} is back"
        if failed := facts.brokers & set(awaited):
            way_out = f"{way_out}, {brokers_text(failed)} with the failed log directory as it was"
    return Cause(
        WAITS,
        f"{partition_names(partitions)} {verb} no leader{since(facts, partitions)}: "
        + (f"{waits} for {brokers_text(awaited)}, last in the ISR; " if awaited else "the ISR is empty; ")
        + (f"{brokers_text(others)} {are(others)} live, but not in sync" if others else "no other replica is live"),
        way_out,
        facts.read_from(*facts.state_paths(partitions), "/brokers/ids"),
        _unclean_election(facts, partitions) if leaders else (),
        _price(facts, partitions, leaders) if leaders else "",
        f"an unclean election makes {brokers_text(leaders)} the leader{'s' if leaders[1:] else ''}" if leaders else "",
    )


def no_election(facts: WhyFacts) -> Iterator[Cause]:
    """A replica of the ISR lives, and nobody made it the leader."""
    able = {p: able_brokers(facts, p) & set(facts.states[p].isr) for p in _without_leader(facts)}
    if left := [p for p, brokers in able.items() if brokers]:
        ready = sorted({broker for p in left for broker in able[p]})
        yield Cause(
            WAITS,
            f"{partition_names(left)} {'have' if left[1:] else 'has'} no leader{since(facts, left)}, although "
            f"{brokers_text(ready)} of the ISR {are(ready)} registered",
            "an active controller elects one within seconds; if there is one, a disk failed: look at the log "
            f"of {brokers_text(ready)}, and restart that broker",
            facts.read_from(*facts.state_paths(left), "/brokers/ids"),
        )


def no_state(facts: WhyFacts) -> Iterator[Cause]:
    """A partition gets its first state when one of its replicas lives."""
    if facts.staying is None or facts.staying.states is None:
        return
    rows = ((p, set(facts.row(p))) for p in sorted(facts.staying.assignment.keys() - facts.states.keys()))
    for brokers, partitions in grouped((() if row & facts.brokers else tuple(sorted(row)), p) for p, row in rows):
        reason = f"none of the replicas, on {brokers_text(brokers)}, is registered"
        way_out = f"a leader is elected when {'one of ' if brokers[1:] else ''}{brokers_text(brokers)} registers"
        if not brokers:
            reason = "no controller has written the first state, although a replica is registered"
            way_out = "an active controller writes it within a second"
        read = facts.read_from(facts.topic_path, *facts.state_paths(partitions), "/brokers/ids")
        yield Cause(WAITS, f"{partition_names(partitions)} never had a leader: {reason}", way_out, read)


def not_preferred(facts: WhyFacts) -> Iterator[Cause]:
    """Leaders that an election moved; with ``auto.leader.rebalance.enable`` they move back within minutes."""
    if (live := facts.staying) is None or live.is_reassigning:
        return
    led = ((p, health_of(live, p, facts.brokers)) for p in sorted(facts.states))
    if able := [p for p, h in led if not h.is_offline and h.is_led_by_another and h.replicas[0] in h.isr]:
        yield Cause(
            NOTE,
            f"{partition_names(able)}: not led by the first replica, although that is in sync",
            "the controller moves leaders back within 5 minutes, if more than a tenth of a broker's are away",
            facts.read_from(*facts.state_paths(able)),
            _preferred_election(facts, able),
        )


def _without_leader(facts: WhyFacts) -> list[int]:
    if (live := facts.staying) is None:
        return []
    led = ((p, health_of(live, p, facts.brokers)) for p in sorted(facts.states))
    return [p for p, health in led if health.replicas and health.is_offline]


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
    allowed = facts.configure("--add-config", f"{UNCLEAN_ELECTION}=true")
    return (allowed, *facts.new_controller(), facts.configure(*back))


def _preferred_election(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    if facts.release >= ELECTS_BY_TOOL:
        return _election(facts, "preferred", partitions)
    file, name = _file(facts, partitions)
    return file, facts.kafka_tool("kafka-preferred-replica-election", "--path-to-json-file", name, since=ELECTS_BY_TOOL)


def _election(facts: WhyFacts, kind: str, partitions: Sequence[int]) -> tuple[str, ...]:
    """Its option for a login is another than that of Kafka's other tools. Source: LeaderElectionCommand (2.8, 3.9)."""
    tool, words = "kafka-leader-election", ("--election-type", kind)
    if len(partitions) == 1:
        one = ("--topic", facts.topic, "--partition", str(partitions[0]))
        return (facts.kafka_tool(tool, *words, *one, login="--admin.config"),)
    file, name = _file(facts, partitions)
    return file, facts.kafka_tool(tool, *words, "--path-to-json-file", name, login="--admin.config")


def _file(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, str]:
    """The command that writes the partitions to a file, and the file's name."""
    name = f"elect-{facts.topic}.json"
    return facts.partitions_file(name, {p: {} for p in partitions}), name
