"""Ansible: tasks with ``kafka_topic`` and ``kafka_topics``, with the name of a collection before them or without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, Value
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, rest

_FIELDS = ("name", "partitions", "replica_factor", "replication_factor", "options", "config", "state")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics of all tasks, however deep they stand; variables elsewhere do not matter."""
    for file in files:
        for task in _tasks(list(file.documents)):
            for key, value in task.items():
                if isinstance(value, Map) and key.rpartition(".")[2] == "kafka_topic":
                    yield from _topic(value, file.name, alone=True)
                elif isinstance(value, Map) and key.rpartition(".")[2] == "kafka_topics":
                    for topic in value.maps("topics"):
                        yield from _topic(topic, file.name, alone=False)


def _tasks(of: Sequence[Value]) -> Iterator[Map]:
    for found in of:
        if isinstance(found, Map):
            yield found
            yield from _tasks(list(found.values()))
        elif isinstance(found, list):
            yield from _tasks(found)


def _topic(topic: Map, file: str, *, alone: bool) -> Iterator[Found]:
    name, configs = topic.text("name") or "", topic.get("options", topic.get("config"))
    if any("{{" in str(topic.get(field)) for field in _FIELDS):
        yield LeftOut(name, None, "a variable stands in it; render it first", file, topic.line)
    elif topic.text("state") == "absent":
        yield LeftOut(name, None, "it is to be absent there; topicops retire writes a tombstone", file, topic.line)
    else:
        if not alone:
            yield from rest(name, topic, _FIELDS, file)
        yield SourceTopic(
            name=name,
            file=file,
            line=topic.line,
            partitions=topic.get("partitions"),
            factor=topic.get("replica_factor", topic.get("replication_factor")),
            configs=configs if isinstance(configs, Map) else {},
        )
