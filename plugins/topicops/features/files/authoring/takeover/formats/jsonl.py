"""JSON lines: one topic a line, for every format that has no reader of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, json_value
from topicops.features.files.authoring.takeover.found import Found, SourceTopic
from topicops.model.codes import Code
from topicops.model.errors import UsageError

_KEYS = ("name", "partitions", "replication_factor", "configs", "owner", "description", "labels", "profile")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics. Raises ``UsageError`` for a line that is no JSON object with a name."""
    for file in files:
        for number, line in enumerate(file.text.splitlines(), 1):
            if line.strip():
                yield _topic(line, file.name, number)


def _topic(line: str, file: str, number: int) -> Found:
    try:
        topic = json_value(SourceFile(file, line))
    except UsageError as error:
        raise UsageError(f"{file}:{number}: {str(error).partition(': ')[2]}") from error
    name = topic.text("name") if isinstance(topic, Map) else None
    if not isinstance(topic, Map) or name is None:
        raise UsageError(f'{file}:{number}: write a JSON object with at least a name, as in {{"name": "orders"}}')
    unknown = [key for key in topic if key not in _KEYS]
    if unknown:
        return LeftOut(name, Code.UNKNOWN_FIELD, f"unknown key {unknown[0]}; known: {', '.join(_KEYS)}", file, number)
    profile = topic.text("profile")
    return SourceTopic(
        name=name,
        file=file,
        line=number,
        partitions=topic.get("partitions"),
        factor=topic.get("replication_factor"),
        configs={} if profile else topic.map("configs"),
        owner=topic.get("owner"),
        description=topic.get("description"),
        labels=topic.map("labels"),
        shared=(profile, topic.map("configs")) if profile else None,
    )
