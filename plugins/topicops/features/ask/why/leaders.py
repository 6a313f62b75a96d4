"""Why a partition has no leader or another one than its first replica, and why its ISR is not complete.

Source: ``model.cluster.health``; kafka.cluster.Partition, kafka.server.ReplicaManager#handleLogDirFailure (3.9): a
broker serves the replicas of a failed log directory no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicops.features.ask.why.values import NOTE, STUCK, WAITS, Cause, WhyFacts, are, grouped, metadata_of
from topicops.model.cluster.broker_defaults import brokers_text
from topicops.model.cluster.health import UNCLEAN_ELECTION, offline_election
from topicops.model.release import ELECTS_BY_TOOL
from topicops.model.specs.topic_config import MIN_ISR, min_insync_replicas, needed_in_sync
from topicops.steps.before_deletes import REPAIR, failed_by_broker, named, replicas_on_failed
from topicops.steps.verifying.observation import partition_names


def failed_log_directory(facts: WhyFacts) -> Iterator[Cause]:
    """Another disk and a restart bring the replica back, as a copy of its leader's.

    Kafka elects a replica of the ISR that comes back, also with an empty log, and the others drop their records.
    """
    failed = failed_by_broker(facts.logs)
    for broker, partitions in lost_replicas(facts).items() if not facts.is_deleting else ():
        last = [p for p in partitions if p in facts.states and facts.states[p].isr == (broker,)]
        loss = f"no other replica of {partition_names(last)} is in sync: with an empty disk the records are lost"
        yield Cause(
            STUCK,
            f"broker {broker} is live, and its log directory {named(failed[broker])} has failed: its replica "
            f"of {partition_names(partitions)} is in none that works, and does not come back by itself",
            f"{REPAIR}; it copies the records anew from the leaders",
            (f"log directories of broker {broker}",),
            caution=loss if last else "",
        )


def deletion_waits_for_disk(facts: WhyFacts) -> Iterator[Cause]:
    """The broker refuses to delete what it cannot reach, and the controller waits until it registers anew."""
    failed = failed_by_broker(facts.logs)
    for broker, partitions in lost_replicas(facts).items() if facts.is_deleting else ():
        yield Cause(
            STUCK,
            f"{facts.asked_for} does not finish: broker {broker} is live, and its log directory "
            f"{named(failed[broker])} has failed; its replica of {partition_names(partitions)} is in none that works",
            f"{REPAIR}: the deletion goes on by itself then",
            (*facts.read_from(facts.marker_path, facts.topic_path), f"log directories of broker {broker}"),
        )


def not_in_sync(facts: WhyFacts) -> Iterator[Cause]:
    """A follower whose broker is away, or that has not copied up to the end for ``replica.lag.time.max.ms``."""
    lost = lost_replicas(facts)
    missing = ((b, p) for p, health in facts.healths.items() if not health.is_offline for b in health.missing)
    for broker, partitions in grouped((b, p) for b, p in missing if p not in lost.get(b, ())):
        if broker not in facts.brokers:
            why, way_out = "it is not registered", f"it is in sync again by itself soon after broker {broker} is back"
        elif broker in facts.silent and facts.views:
            why = f"it is registered, and gives no answer: {facts.silent[broker]}"
            way_out = f"look whether broker {broker} hangs or is cut off, and restart it"
        else:
            answers = " and answers" if broker in facts.views else ""
            why = f"it is registered{answers}, but does not copy as fast as the leader writes"
            way_out = f"it joins by itself when it has caught up; look at disk, network and log of broker {broker}"
        asked = metadata_of({broker} & (facts.views.keys() | facts.silent.keys()))
        yield Cause(
            WAITS,
            f"broker {broker} is not in the ISR of {partition_names(partitions)}{facts.since(partitions)}: {why}",
            way_out,
            (*facts.read_from(*facts.state_paths(partitions), "/brokers/ids"), *asked),
        )


def below_min_isr(facts: WhyFacts) -> Iterator[Cause]:
    """Records with ``acks=all`` are refused with NOT_ENOUGH_REPLICAS (19)."""
    short: list[tuple[tuple[int, ...], int]] = []
    for p, health in facts.healths.items():
        overrides = facts.live.overrides if facts.live else {}
        least = min_insync_replicas(overrides, facts.broker_defaults, {health.leader})
        needed = needed_in_sync(least, len(facts.row(p)), facts.releases)
        if not health.is_offline and len(health.isr) < needed <= len(facts.row(p)):
            short.append(((len(health.isr), needed), p))
    for (size, needed), partitions in grouped(short):
        yield Cause(
            WAITS,
            f"producers with acks=all fail on {partition_names(partitions)}: {size} of {needed} in-sync "
            f"replicas that {MIN_ISR} asks for",
            "it ends when the followers named above are in sync again",
            facts.read_from(*facts.state_paths(partitions), facts.config_path),
        )


def lost_replicas(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Return partitions of the topic by broker: their replica is on a log directory that failed."""
    return replicas_on_failed(facts.topic, facts.live.assignment if facts.live else {}, facts.logs)


def able_brokers(facts: WhyFacts, partition: int) -> frozenset[int]:
    """Return the registered brokers whose replica of this partition is not known to be on such a directory."""
    return facts.brokers - {broker for broker, lost in lost_replicas(facts).items() if partition in lost}


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
        f"{partition_names(partitions)} {verb} no leader{facts.since(partitions)}: "
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
            f"{partition_names(left)} {'have' if left[1:] else 'has'} no leader{facts.since(left)}, although "
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
    led = facts.healths.items()
    if able := [p for p, h in led if not h.is_offline and h.is_led_by_another and h.replicas[0] in h.isr]:
        yield Cause(
            NOTE,
            f"{partition_names(able)}: not led by the first replica, although that is in sync",
            "the controller moves leaders back within 5 minutes, if more than a tenth of a broker's are away",
            facts.read_from(*facts.state_paths(able)),
            _election(facts, "preferred", able),
        )


def _without_leader(facts: WhyFacts) -> list[int]:
    return [p for p, health in facts.healths.items() if health.replicas and health.is_offline]


def _price(facts: WhyFacts, partitions: Sequence[int], leaders: Sequence[int]) -> str:
    loss = f"an unclean election loses every record that {brokers_text(leaders)} did not copy in time"
    if facts.release < ELECTS_BY_TOOL and facts.live is not None and len(facts.live.assignment) > len(partitions):
        return f"{loss}; until the last command it is allowed for every partition of the topic"
    return loss


def _unclean_election(facts: WhyFacts, partitions: Sequence[int]) -> tuple[str, ...]:
    """Return commands of an unclean election; before 2.4 a new controller does it, if the topic's config allows it.

    Source: kafka.controller.KafkaController#onControllerFailover, PartitionStateMachine#startup (1.0 to 2.3).
    """
    if facts.release >= ELECTS_BY_TOOL:
        return _election(facts, "unclean", partitions)
    own = facts.live.overrides.get(UNCLEAN_ELECTION) if facts.live else None
    back = ("--delete-config", UNCLEAN_ELECTION) if own is None else ("--add-config", f"{UNCLEAN_ELECTION}={own}")
    allowed = facts.configure("--add-config", f"{UNCLEAN_ELECTION}=true")
    return (allowed, *facts.new_controller(), facts.configure(*back))


def _election(facts: WhyFacts, kind: str, partitions: Sequence[int]) -> tuple[str, ...]:
    """Return the commands; the first tool has an own option for logins. Source: LeaderElectionCommand (2.8, 3.9)."""
    tool, words, name = "kafka-leader-election", ("--election-type", kind), f"elect-{facts.topic}.json"
    file, by_file = facts.partitions_file(name, {p: {} for p in partitions}), ("--path-to-json-file", name)
    if facts.release < ELECTS_BY_TOOL:
        return file, facts.kafka_tool("kafka-preferred-replica-election", *by_file, since=ELECTS_BY_TOOL)
    if len(partitions) == 1:
        one = ("--topic", facts.topic, "--partition", str(partitions[0]))
        return (facts.kafka_tool(tool, *words, *one, login="--admin.config"),)
    return file, facts.kafka_tool(tool, *words, *by_file, login="--admin.config")
