"""Why a config has no effect. Brokers read a config znode only when ``/config/changes`` names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from topicops.features.why.values import STUCK, Cause, WhyFacts
from topicops.features.why.wording import when
from topicops.model.specs.config_checks import config_problem, value_problem
from topicops.model.specs.topic_config import MIN_ISR, caps_min_isr, min_insync_replicas

UNUSED_CONFIG, ITS_DEFAULT = "file.delete.delay.ms", "60000"
"""A config to set and to take back, for a topic without one of its own."""


def not_in_force(facts: WhyFacts) -> Iterator[Cause]:
    """Somebody wrote the znode by hand: brokers show its values, and behave as before.

    Source: kafka.server.DynamicConfigManager, org.apache.kafka.server.config.ZkNodeChangeNotificationListener (3.9).
    """
    if facts.live and facts.times and facts.times.is_config_told is False and not _invalid(facts):
        yield Cause(
            STUCK,
            f"the configs are not in force{when('since', facts.times.config)}: the znode was written then, and nothing "
            "in /config/changes names the topic, so brokers behave as before",
            "set the same values again through the brokers, which then tell each other",
            (facts.config_path, "/config/changes"),
            _set_again(facts, facts.live.overrides),
        )


def refused_by_brokers(facts: WhyFacts) -> Iterator[Cause]:
    """With one invalid config in the znode, brokers refuse every change of the topic's configs.

    A value that they cannot read also stops a broker that loads the topic; a name that they do not know does not.
    Source: org.apache.kafka.storage.internals.log.LogConfig#validate, #fromProps (1.0 to 4.x).
    """
    if facts.live is None or not (invalid := _invalid(facts)):
        return
    names = ", ".join(invalid)
    unreadable = [name for name in invalid if value_problem(name, facts.live.overrides[name], facts.release)]
    kept = {name: value for name, value in facts.live.overrides.items() if name not in invalid}
    way_out, commands = f"take {names} off the topic", [facts.configure("--delete-config", ",".join(invalid))]
    if facts.has_zookeeper:
        way_out = f"write the znode without {names}, then have the brokers told by a change of a config"
        data = json.dumps({"version": 1, "config": kept}, separators=(",", ":"))
        commands = [facts.zookeeper_shell("set", facts.config_path, data), *_set_again(facts, kept)]
    refusal = (facts.broker_overrides,) if isinstance(facts.broker_overrides, str) else ()
    yield Cause(
        STUCK,
        f"{'; '.join(f'{name}: {problem}' for name, problem in invalid.items())}. Brokers refuse every change "
        "of the topic's configs" + (", and one that holds the topic fails its next start" if unreadable else ""),
        way_out,
        (*facts.read_from(facts.config_path), *refusal),
        tuple(commands),
        ""
        if len(unreadable) == len(invalid)
        else f"{names}: lost, where a vendor's brokers know more configs than Kafka's",
    )


def min_isr_cannot_be_met(facts: WhyFacts) -> Iterator[Cause]:
    """Before 3.7 a minimum above the number of replicas can never be met."""
    if (live := facts.staying) is None or caps_min_isr(facts.releases):
        return
    least = min_insync_replicas(live.overrides, facts.broker_defaults)
    factor = min((len(row) for row in live.target_assignment.values()), default=least)
    if least > factor:
        yield Cause(
            STUCK,
            f"producers with acks=all always fail: {MIN_ISR} is {least}, and partitions have {factor} replicas",
            f"lower {MIN_ISR}, in the topic's file too, or give the topic more replicas",
            facts.read_from(facts.config_path),
            (facts.configure("--add-config", f"{MIN_ISR}={max(1, factor - 1)}"),),
        )


def _set_again(facts: WhyFacts, overrides: Mapping[str, str]) -> tuple[str, ...]:
    """The requests that leave these overrides as they are, and notify the brokers."""
    if not overrides:
        there = facts.configure("--add-config", f"{UNUSED_CONFIG}={ITS_DEFAULT}")
        return there, facts.configure("--delete-config", UNUSED_CONFIG)
    pairs = (f"{name}=[{value}]" if "," in value else f"{name}={value}" for name, value in sorted(overrides.items()))
    return (facts.configure("--add-config", ",".join(pairs)),)


def _invalid(facts: WhyFacts) -> dict[str, str]:
    """The values that the brokers of this release cannot read, with the problem."""
    overrides = facts.live.overrides if facts.live else {}
    found = {name: config_problem(name, value, facts.release) for name, value in sorted(overrides.items())}
    return {name: problem for name, problem in found.items() if problem}
