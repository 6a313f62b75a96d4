"""Why an ISR is not complete, and what that costs; and replicas whose log directory failed.

Source: kafka.cluster.Partition, ``controller.isr``; kafka.server.ReplicaManager#handleLogDirFailure (3.9): a broker
serves the replicas of such a directory no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicops.features.why.values import STUCK, WAITS, Cause, WhyFacts
from topicops.features.why.wording import grouped, metadata_of, since, when
from topicops.model.cluster.health import health_of
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
            f"the deletion asked for{when('at', facts.times.marker if facts.times else None)} does not finish: broker "
            f"{broker} is live, and its log directory {named(failed[broker])} has failed; its replica of "
            f"{partition_names(partitions)} is in none that works",
            f"{REPAIR}: the deletion goes on by itself then",
            (*facts.read_from(facts.marker_path, facts.topic_path), f"log directories of broker {broker}"),
        )


def not_in_sync(facts: WhyFacts) -> Iterator[Cause]:
    """A follower whose broker is away, or that has not copied up to the end for ``replica.lag.time.max.ms``."""
    if (live := facts.staying) is None:
        return
    lost, healths = lost_replicas(facts), {p: health_of(live, p, facts.brokers) for p in sorted(facts.states)}
    missing = ((b, p) for p, health in healths.items() if not health.is_offline for b in health.missing)
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
            f"broker {broker} is not in the ISR of {partition_names(partitions)}{since(facts, partitions)}: {why}",
            way_out,
            (*facts.read_from(*facts.state_paths(partitions), "/brokers/ids"), *asked),
        )


def below_min_isr(facts: WhyFacts) -> Iterator[Cause]:
    """Records with ``acks=all`` are refused with NOT_ENOUGH_REPLICAS (19)."""
    for (size, needed), partitions in grouped(_short(facts)):
        yield Cause(
            WAITS,
            f"producers with acks=all fail on {partition_names(partitions)}: {size} of {needed} in-sync "
            f"replicas that {MIN_ISR} asks for",
            "it ends when the followers named above are in sync again",
            facts.read_from(*facts.state_paths(partitions), facts.config_path),
        )


def lost_replicas(facts: WhyFacts) -> Mapping[int, list[int]]:
    """Partitions of the topic by broker: their replica is on a log directory that failed."""
    return replicas_on_failed(facts.topic, facts.live.assignment if facts.live else {}, facts.logs)


def able_brokers(facts: WhyFacts, partition: int) -> frozenset[int]:
    """The registered brokers whose replica of this partition is not known to be on such a directory."""
    return facts.brokers - {broker for broker, lost in lost_replicas(facts).items() if partition in lost}


def _short(facts: WhyFacts) -> Iterator[tuple[tuple[int, ...], int]]:
    """How many replicas are in sync and how many have to be, of each partition that has too few."""
    if (live := facts.staying) is None:
        return
    for p, state in sorted(facts.states.items()):
        least = min_insync_replicas(live.overrides, facts.broker_defaults, {state.leader})
        needed = needed_in_sync(least, len(facts.row(p)), facts.releases)
        health = health_of(live, p, facts.brokers, min_isr=needed)
        if not health.is_offline and health.is_under_min_isr and needed <= len(facts.row(p)):
            yield (len(health.isr), needed), p
