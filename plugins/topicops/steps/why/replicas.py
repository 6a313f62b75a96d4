"""Why an ISR is not complete, and what that costs. Source: kafka.cluster.Partition, ``controller.isr``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from topicops.model.cluster.health import health_of
from topicops.model.specs.topic_config import MIN_ISR, min_insync_replicas, needed_in_sync
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.verifying.observation import partition_names
from topicops.steps.why.disks import lost_replicas
from topicops.steps.why.wording import config_path, metadata_of, read_from, since, state_path, state_time


def not_in_sync(facts: WhyFacts) -> Iterator[Cause]:
    """A follower whose broker is away, or that has not copied up to the end for ``replica.lag.time.max.ms``."""
    if facts.live is None or facts.is_deleting:
        return
    missing: defaultdict[int, list[int]] = defaultdict(list)
    lost = lost_replicas(facts)
    for p in sorted(facts.states):
        health = health_of(facts.live, p, facts.brokers)
        for broker in () if health.is_offline else health.missing:
            if p not in lost.get(broker, ()):
                missing[broker].append(p)
    for broker, partitions in sorted(missing.items()):
        if broker not in facts.brokers:
            why, way_out = "it is not registered", f"it is in sync again by itself soon after broker {broker} is back"
        elif broker in facts.silent and facts.views:
            why = f"it is registered, and gives no answer: {facts.silent[broker]}"
            way_out = f"look whether broker {broker} hangs or is cut off, and restart it"
        else:
            answers = " and answers" if broker in facts.views else ""
            why = f"it is registered{answers}, but does not copy as fast as the leader writes"
            way_out = f"it joins by itself when it has caught up; look at disk, network and log of broker {broker}"
        yield Cause(
            id="not-in-sync",
            kind=CauseKind.WAITS,
            message=f"broker {broker} is not in the ISR of {partition_names(partitions)}"
            f"{since(state_time(facts, partitions))}: {why}",
            way_out=way_out,
            read_from=(
                *read_from(facts, *(state_path(facts, p) for p in partitions[:3]), "/brokers/ids"),
                *metadata_of({broker} & (facts.views.keys() | facts.silent.keys())),
            ),
        )


def below_min_isr(facts: WhyFacts) -> Iterator[Cause]:
    """Records with ``acks=all`` are refused with NOT_ENOUGH_REPLICAS (19)."""
    if facts.live is None or facts.is_deleting:
        return
    short: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for p, state in sorted(facts.states.items()):
        row = facts.live.assignment.get(p, ())
        least = min_insync_replicas(facts.live.overrides, facts.broker_defaults, {state.leader})
        needed = needed_in_sync(least, len(row), facts.releases)
        health = health_of(facts.live, p, facts.brokers, min_isr=needed)
        if not health.is_offline and health.is_under_min_isr and needed <= len(row):
            short[len(health.isr), needed].append(p)
    for (size, needed), partitions in sorted(short.items()):
        yield Cause(
            id="below-min-isr",
            kind=CauseKind.WAITS,
            message=f"producers with acks=all fail on {partition_names(partitions)}: {size} of {needed} in-sync "
            f"replicas that {MIN_ISR} asks for",
            way_out="it ends when the followers named above are in sync again",
            read_from=read_from(facts, *(state_path(facts, p) for p in partitions[:3]), config_path(facts)),
        )
