"""Words, times, places and commands that the rules of ``why`` share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence

from topicops.model.release import CONFIGURES_TOPICS_BY_BROKERS, REASSIGNMENTS_IN_TOPICS
from topicops.model.times import time_of_ms
from topicops.model.why_facts import WhyFacts

CLIENT_PROPERTIES = "client.properties"
"""The file with a login, which the person who types a command has."""


def since(ms: int | None) -> str:
    """`` since 2024-05-01 12:00 UTC``; empty where it is not known."""
    return f" since {_shown(ms)}" if ms else ""


def at(ms: int | None) -> str:
    """`` at 2024-05-01 12:00 UTC``; empty where it is not known."""
    return f" at {_shown(ms)}" if ms else ""


def _shown(ms: int) -> str:
    at = time_of_ms(ms)
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else f"{ms} ms since 1970"


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
    return paths if facts.has_zookeeper else ("the brokers' metadata",)


def metadata_of(brokers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"metadata of broker {broker}" for broker in sorted(brokers))


def zookeeper_shell(facts: WhyFacts, *words: str) -> str:
    return shlex.join(["zookeeper-shell.sh", facts.zookeeper_hosts, *words])


def remove_all(facts: WhyFacts, path: str) -> str:
    """Remove a znode and all below it; ZooKeeper 3.5, which comes with Kafka 2.4, has another word for it."""
    return zookeeper_shell(facts, "deleteall" if facts.release >= REASSIGNMENTS_IN_TOPICS else "rmr", path)


def new_controller(facts: WhyFacts) -> tuple[str, ...]:
    """Have another controller elected, which tells every broker of everything; nothing under KRaft."""
    return (zookeeper_shell(facts, "delete", "/controller"),) if facts.has_zookeeper else ()


def kafka_tool(facts: WhyFacts, name: str, *words: str, login: str = "--command-config") -> str:
    """One of Kafka's scripts that asks brokers; ``login`` is the option with which it takes client properties."""
    properties = [login, CLIENT_PROPERTIES] if facts.command_config else []
    return shlex.join([f"{name}.sh", "--bootstrap-server", facts.bootstrap_servers, *properties, *words])


def zookeeper_tool(facts: WhyFacts, name: str, *words: str) -> str:
    """One of Kafka's scripts that old releases give ZooKeeper's address."""
    return shlex.join([f"{name}.sh", "--zookeeper", facts.zookeeper_hosts, *words])


def configure(facts: WhyFacts, *words: str) -> str:
    """``kafka-configs`` for the topic, with ``--add-config`` or ``--delete-config``."""
    words = ("--alter", "--entity-type", "topics", "--entity-name", facts.topic, *words)
    tool = kafka_tool if facts.release >= CONFIGURES_TOPICS_BY_BROKERS else zookeeper_tool
    return tool(facts, "kafka-configs", *words)


def partitions_file(facts: WhyFacts, name: str, rows: Mapping[int, Mapping[str, object]], **more: object) -> str:
    """A command that writes the file a tool wants, with these partitions and what is known of each."""
    partitions = [{"topic": facts.topic, "partition": p, **row} for p, row in sorted(rows.items())]
    return f"echo {shlex.quote(json.dumps({**more, 'partitions': partitions}))} > {shlex.quote(name)}"


def topic_znode(
    rows: Mapping[int, Sequence[int]],
    topic_id: str | None,
    *,
    adding: Mapping[int, Sequence[int]] | None = None,
    removing: Mapping[int, Sequence[int]] | None = None,
) -> str:
    """The data of a topic's znode: with an id as Kafka writes it since 2.8, else as 1.0 does, which all read."""
    partitions, *moves = (
        {str(p): list(row) for p, row in sorted((by or {}).items())} for by in (rows, adding, removing)
    )
    value: dict[str, object] = {"version": 1, "partitions": partitions}
    if topic_id is not None:
        value |= {"version": 3, "topic_id": topic_id, "adding_replicas": moves[0], "removing_replicas": moves[1]}
    return json.dumps(value, separators=(",", ":"))


def unregistered(facts: WhyFacts, brokers: Iterable[int]) -> list[int]:
    return sorted(set(brokers) - facts.brokers)


def state_time(facts: WhyFacts, partitions: Iterable[int]) -> int | None:
    """When the oldest of these states was written."""
    if facts.times is None:
        return None
    return min((facts.times.states[p] for p in partitions if p in facts.times.states), default=None)
