"""Partitions and replication factor of the merged topic."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.steps.layers import World
from topicops.steps.shape import Finding


def numbers_are_given(world: World) -> Iterator[Finding]:
    for topic in world.merged:
        missing = [name for name in ("partitions", "replicationFactor") if name not in topic.settings]
        if world.environment is None or not topic.complete:
            continue
        for name in missing:
            summary = f"no layer gives {name}"
            remedy = "write it here, in the profile, or in the environment's defaults"
            yield Finding("TOP202", topic.source.file, topic.source.spec.first, summary, remedy)


def partitions_stay_in_the_limit(world: World) -> Iterator[Finding]:
    limit = world.partitions_per_topic
    for topic in world.merged:
        setting, number = topic.settings.get("partitions"), topic.number("partitions")
        if topic.complete and setting and number and limit is not None and number > limit:
            remedy = "partitions cannot be taken away again; limits.partitionsPerTopic is the limit"
            yield setting.finding("TOP320", f"{number} partitions, {limit} allowed", remedy, topic=topic.label)


def replication_is_high_enough(world: World) -> Iterator[Finding]:
    lowest = world.min_replication_factor
    for topic in world.merged:
        setting, number = topic.settings.get("replicationFactor"), topic.number("replicationFactor")
        if topic.complete and setting and number and lowest is not None and number < lowest:
            summary = f"replication factor {number}, at least {lowest} needed here"
            remedy = "policy.minReplicationFactor is the limit"
            yield setting.finding("TOP310", summary, remedy, topic=topic.label)
