"""Topic configs one by one, in every layer: known, usable on this cluster, and with a value that a broker takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from topicops.model.topic_config import (
    THROTTLE_LISTS,
    TOPIC_CONFIGS,
    AmbiguousNumberError,
    ConfigValueError,
    TopicConfig,
    UnknownUnitError,
    canonical_written,
)
from topicops.steps.layers import World, release
from topicops.steps.shape import Finding, Section, Value

_ONLY_IN_KRAFT = frozenset({"remote.log.copy.disable", "remote.log.delete.on.disable"})
_IGNORED_SINCE = {"message.format.version": (3, 0)}


def configs_are_valid(world: World) -> Iterator[Finding]:
    for section, topic, _ in world.config_layers:
        for name, value in section.values.items():
            config = TOPIC_CONFIGS.get(name)
            if config is None:
                yield Finding("TOP305", section.file, value.key, f"Kafka has no topic config {name}", _meant(name))
            elif _can_be_judged(config, world) and isinstance(value.value, str):
                yield from _value_trouble(section, config, value, value.value, topic.label if topic else None)


def configs_are_usable(world: World) -> Iterator[Finding]:
    allowed = _allow_list(world)
    for section, topic, is_used in world.config_layers:
        for name, value in section.values.items() if is_used else ():
            if name not in TOPIC_CONFIGS:
                continue
            found = _why_unusable(TOPIC_CONFIGS[name], value, world)
            if found:
                yield Finding(found[0], section.file, value.key, found[1], found[2], topic.label if topic else None)
            if allowed is not None and name not in allowed:
                summary = f"this environment does not let {name} change"
                remedy = "take it out, or add it to policy.alterableConfigs"
                yield Finding("TOP311", section.file, value.key, summary, remedy, topic.label if topic else None)


def _value_trouble(
    section: Section, config: TopicConfig, value: Value, text: str, topic: str | None
) -> Iterator[Finding]:
    try:
        canonical_written(config.name, text)
    except ConfigValueError as error:
        shown = text if len(text) <= 60 else f"{text[:57]}…"
        summary = f"{config.name} cannot be {shown!r}: {error}"
        yield Finding(_code_of(error), section.file, value.span, summary, f"valid: {config.valid}", topic)


def _code_of(error: ConfigValueError) -> str:
    match error:
        case AmbiguousNumberError():
            return "TOP204"
        case UnknownUnitError():
            return "TOP214"
        case _:
            return "TOP306"


def _can_be_judged(config: TopicConfig, world: World) -> bool:
    """Whether the value means anything: a config that cannot be used is one problem, not two."""
    return config.name not in THROTTLE_LISTS and _version_trouble(config, world) is None


def _why_unusable(config: TopicConfig, value: Value, world: World) -> tuple[str, str, str] | None:
    if config.name in THROTTLE_LISTS:
        return "TOP313", f"{config.name} belongs to Kafka's reassignment tools", "take it out"
    trouble = _version_trouble(config, world)
    if trouble:
        return "TOP314", trouble, "take it out, or correct cluster.kafkaVersion"
    if config.name in _ONLY_IN_KRAFT and isinstance(value.value, str) and value.value.strip().lower() == "true":
        return "TOP314", f"{config.name} can be true only without ZooKeeper", "take it out"
    return None


def _version_trouble(config: TopicConfig, world: World) -> str | None:
    version = world.kafka_version
    shown = ".".join(map(str, version))
    if version < release(config.since)[:2]:
        return f"{config.name} came with Kafka {config.since}; this cluster has {shown}"
    if config.removed_in is not None and version >= release(config.removed_in):
        return f"{config.name} went with Kafka {config.removed_in}; this cluster has {shown}"
    if version >= _IGNORED_SINCE.get(config.name, (99,)):
        return f"{config.name} does nothing since Kafka 3.0"
    return None


def _allow_list(world: World) -> frozenset[str] | None:
    policy = world.environment_spec.section("policy")
    if "alterableConfigs" not in policy or policy.is_bad("alterableConfigs"):
        return None
    return frozenset(policy.texts("alterableConfigs"))


def _meant(name: str) -> str:
    by_broker_name = {synonym: config.name for config in TOPIC_CONFIGS.values() for synonym in config.broker_synonyms}
    if name in by_broker_name:
        return f"that is a broker's setting; a topic's is {by_broker_name[name]}"
    close = difflib.get_close_matches(name.lower().replace("_", "."), TOPIC_CONFIGS, n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else "see Kafka's list of topic configs"
