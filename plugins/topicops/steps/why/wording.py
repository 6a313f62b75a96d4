"""Words, times, places and commands that the rules of ``why`` share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from topicops.model.release import REASSIGNMENTS_IN_TOPICS
from topicops.model.why_facts import WhyFacts

CLIENT_PROPERTIES = "client.properties"
"""The file with a login, which the person who types a command has."""


def at(ms: int | None) -> str:
    """`` since 2024-05-01 12:00 UTC``; empty where it is not known."""
    return f" since {datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC" if ms else ""


def brokers_text(brokers: Iterable[int]) -> str:
    """``broker 2`` or ``brokers 2, 3``."""
    ids = sorted(set(brokers))
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def are(brokers: Sequence[int] | set[int] | frozenset[int]) -> str:
    return "are" if len(set(brokers)) > 1 else "is"


def topic_path(facts: WhyFacts) -> str:
    return f"/brokers/topics/{facts.topic}"


def state_path(facts: WhyFacts, partition: int) -> str:
    return f"{topic_path(facts)}/partitions/{partition}/state"


def marker_path(facts: WhyFacts) -> str:
    return f"/admin/delete_topics/{facts.topic}"


def config_path(facts: WhyFacts) -> str:
    return f"/config/topics/{facts.topic}"


def read_from(facts: WhyFacts, *paths: str) -> tuple[str, ...]:
    """Znodes, where ZooKeeper was read; else the brokers' metadata."""
    return paths if facts.times is not None else ("the brokers' metadata",)


def zookeeper_shell(facts: WhyFacts, *words: str) -> str:
    return shlex.join(["zookeeper-shell.sh", facts.zookeeper_hosts, *words])


def remove_all(facts: WhyFacts, path: str) -> str:
    """Remove a znode and all below it; ZooKeeper 3.5, which comes with Kafka 2.4, has another word for it."""
    return zookeeper_shell(facts, "deleteall" if facts.release >= REASSIGNMENTS_IN_TOPICS else "rmr", path)


def kafka_tool(facts: WhyFacts, name: str, *words: str) -> str:
    login = ["--command-config", CLIENT_PROPERTIES] if facts.command_config else []
    return shlex.join([f"{name}.sh", "--bootstrap-server", facts.bootstrap_servers, *login, *words])


def json_file(name: str, value: Mapping[str, object]) -> str:
    """A command that writes the file a tool wants."""
    return f"echo {shlex.quote(json.dumps(value))} > {shlex.quote(name)}"


def unregistered(facts: WhyFacts, brokers: Iterable[int]) -> list[int]:
    return sorted(set(brokers) - facts.brokers)


def state_time(facts: WhyFacts, partitions: Iterable[int]) -> int | None:
    """When the oldest of these states was written."""
    if facts.times is None:
        return None
    return min((facts.times.states[p] for p in partitions if p in facts.times.states), default=None)
