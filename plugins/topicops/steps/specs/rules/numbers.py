"""Partitions and replication factor of the merged topic."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.codes import Code
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView, Setting

_NUMBERS = ("partitions", "replicationFactor")


def numbers_are_given(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.complete if view.environment is not None else ():
        if len(topic.settings) == len(_NUMBERS):
            continue
        for name in (name for name in _NUMBERS if name not in topic.settings):
            summary = not_given(name)
            remedy = "write it here, in the profile, or in the environment's defaults"
            yield Finding(Code.MISSING_FIELD, topic.source.file, topic.source.spec.first, summary, remedy)


def not_given(name: str) -> str:
    """What is wrong where no layer has this field."""
    return f"no layer gives {name}"


def partitions_stay_in_the_limit(view: EnvironmentView) -> Iterator[Finding]:
    limit = view.partitions_per_topic
    if limit is None:
        return
    for topic in view.complete:
        setting = topic.settings.get("partitions")
        if setting is not None and (number := setting.number) is not None and number > limit:
            remedy = "partitions cannot be taken away again; limits.partitionsPerTopic is the limit"
            summary, place = f"{number} partitions, {limit} allowed", _limit(view, "limits", "partitionsPerTopic")
            yield setting.finding(
                Code.MANY_PARTITIONS, summary, remedy, topic=topic.label, against=place, why="the limit"
            )


def replication_is_high_enough(view: EnvironmentView) -> Iterator[Finding]:
    lowest = view.min_replication_factor
    if lowest is None:
        return
    for topic in view.complete:
        setting = topic.settings.get("replicationFactor")
        if setting is not None and (number := setting.number) is not None and number < lowest:
            summary = f"replication factor {number}, at least {lowest} needed here"
            remedy = "policy.minReplicationFactor is the limit"
            place = _limit(view, "policy", "minReplicationFactor")
            yield setting.finding(Code.FEW_REPLICAS, summary, remedy, topic=topic.label, against=place, why="the limit")


def _limit(view: EnvironmentView, block: str, name: str) -> Setting | None:
    """The limit in the environment file; None where the file leaves it to the default."""
    section = view.environment_spec.section(block)
    found = section.values.get(name)
    return Setting(found.value, section.file, found.span, found.key) if found else None
