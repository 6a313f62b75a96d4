"""Why a config has no effect. Brokers read a config znode only when ``/config/changes`` names it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.topic_config import MIN_ISR, caps_min_isr, min_insync_replicas
from topicops.model.why_facts import Cause, CauseKind, WhyFacts
from topicops.steps.why.wording import at, config_path, kafka_tool, zookeeper_shell


def not_in_force(facts: WhyFacts) -> Iterator[Cause]:
    """Somebody wrote the znode by hand: brokers show its values, and behave as before.

    Source: kafka.server.DynamicConfigManager, org.apache.kafka.server.config.ZkNodeChangeNotificationListener (3.9).
    """
    if facts.live is None or facts.times is None or facts.times.is_config_told is not False or _invalid(facts):
        return
    yield Cause(
        id="config-not-in-force",
        kind=CauseKind.STUCK,
        message=f"the configs written{at(facts.times.config)} are not in force: nothing in /config/changes names the "
        "topic since then, so brokers behave as before",
        way_out="set the same values again through the brokers, which then tell each other",
        commands=(set_again(facts),),
        read_from=(config_path(facts), "/config/changes"),
    )


def refused_by_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """One invalid value in the znode makes brokers refuse to describe and to change all of the topic's configs."""
    if facts.live is None:
        return
    for name, problem in _invalid(facts).items():
        kept = {key: value for key, value in facts.live.overrides.items() if key not in _invalid(facts)}
        data = json.dumps({"version": 1, "config": kept}, separators=(",", ":"))
        yield Cause(
            id="config-invalid",
            kind=CauseKind.STUCK,
            message=f"{name}: {problem}. Brokers refuse every change of the topic's configs, and one that holds "
            "the topic fails its next start",
            way_out="write the znode without the value, then have the brokers told by any change of a config",
            commands=(
                zookeeper_shell(facts, "set", config_path(facts), data),
                kafka_tool(facts, "kafka-configs", *_entity(facts), "--add-config", _all(kept) or _DEFAULT),
            )
            if facts.times is not None
            else (),
            read_from=(
                config_path(facts),
                *([facts.broker_overrides] if isinstance(facts.broker_overrides, str) else []),
            ),
        )


def min_isr_cannot_be_met(facts: WhyFacts) -> Iterator[Cause]:
    """Before 3.7 a minimum above the number of replicas can never be met."""
    if facts.live is None or facts.is_deleting or caps_min_isr(facts.releases):
        return
    least = min_insync_replicas(facts.live.overrides, facts.broker_defaults)
    factor = min((len(row) for row in facts.live.target_assignment.values()), default=least)
    if least > factor:
        words = [*_entity(facts), "--add-config", f"{MIN_ISR}={max(1, factor - 1)}"]
        yield Cause(
            id="min-isr-above-replicas",
            kind=CauseKind.STUCK,
            message=f"producers with acks=all always fail: {MIN_ISR} is {least}, and partitions have {factor} replicas",
            way_out=f"lower {MIN_ISR}, in the topic's file too, or give the topic more replicas",
            commands=(kafka_tool(facts, "kafka-configs", *words),),
            read_from=(config_path(facts),),
        )


def _refusal(facts: WhyFacts) -> list[str]:
    return [facts.broker_overrides] if isinstance(facts.broker_overrides, str) else []


_DEFAULT = "file.delete.delay.ms=60000"
"""A change that changes nothing else, for a topic without a config of its own: Kafka's default."""


def set_again(facts: WhyFacts) -> str:
    """The request that writes what the znode has already, and notifies the brokers."""
    overrides = facts.live.overrides if facts.live else {}
    return kafka_tool(facts, "kafka-configs", *_entity(facts), "--add-config", _all(overrides) or _DEFAULT)


def _entity(facts: WhyFacts) -> list[str]:
    return ["--alter", "--entity-type", "topics", "--entity-name", facts.topic]


def _all(overrides: object) -> str:
    pairs = dict(overrides) if isinstance(overrides, dict) else {}
    return ",".join(f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in sorted(pairs.items()))


def _invalid(facts: WhyFacts) -> dict[str, str]:
    """The values that the brokers of this release cannot read, with the problem."""
    overrides = facts.live.overrides if facts.live else {}
    found = {name: config_problem(name, value, facts.release) for name, value in sorted(overrides.items())}
    return {name: problem for name, problem in found.items() if problem}
