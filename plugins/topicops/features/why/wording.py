"""Words, times and commands that the rules of ``why`` share."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from topicops.features.why.values import WhyFacts
from topicops.model.release import CONFIGURES_TOPICS_BY_BROKERS, REASSIGNMENTS_IN_TOPICS
from topicops.model.times import time_of_ms

CLIENT_PROPERTIES = "client.properties"
"""The file with a login, which the person who types a command has."""
K = TypeVar("K", int, tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]])


def grouped(partitions: Iterable[tuple[K, int]]) -> list[tuple[K, list[int]]]:
    """The partitions of each key, sorted by the keys."""
    found: defaultdict[K, list[int]] = defaultdict(list)
    for key, partition in partitions:
        found[key].append(partition)
    return sorted(found.items())


def since(facts: WhyFacts, partitions: Iterable[int]) -> str:
    """`` since 2024-05-01 12:00 UTC``, when the oldest of these states was written; empty where it is not known."""
    times = facts.times.states if facts.times else {}
    return when("since", min((times[p] for p in partitions if p in times), default=None))


def when(word: str, ms: int | None) -> str:
    """`` at 2024-05-01 12:00 UTC``; empty where it is not known."""
    if not ms:
        return ""
    at = time_of_ms(ms)
    return f" {word} {at:%Y-%m-%d %H:%M} UTC" if at else f" {word} {ms} ms since 1970"


def brokers_text(brokers: Iterable[int]) -> str:
    """``broker 2`` or ``brokers 2, 3``."""
    ids = sorted(set(brokers))
    return f"broker{'s' if ids[1:] else ''} {', '.join(map(str, ids))}"


def are(brokers: Collection[int]) -> str:
    return "are" if len(brokers) > 1 else "is"


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
