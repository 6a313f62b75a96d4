"""``KAFKA_CREATE_TOPICS`` of a compose file, or lines: ``name:partitions:replicas``, then a policy or ``--config``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut
from topicops.features.files.authoring.takeover.edges.texts import SourceFile, Value
from topicops.features.files.authoring.takeover.found import Found, SourceTopic

_VARIABLE = "KAFKA_CREATE_TOPICS"
_LEAST = 3


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics of each variable; of a file without one, of its lines."""
    for file in files:
        lines = list(enumerate(file.text.splitlines(), 1))
        found = [(number, line.partition(_VARIABLE)[2].strip("\"' :=")) for number, line in lines if _VARIABLE in line]
        is_list = file.name.endswith((".txt", ".env"))
        for number, text in found or (lines if is_list else ()):
            for entry in text.split(","):
                if entry.strip() and not entry.strip().startswith("#"):
                    yield from _topic(entry.strip(), file.name, number)


def _topic(entry: str, file: str, line: int) -> Iterator[Found]:
    name, *fields = entry.split(":", _LEAST)
    if "${" in entry or "<" in entry or len(fields) < _LEAST - 1:
        yield LeftOut(name, None, f"{entry!r} is not written as name:partitions:replicas", file, line)
        return
    configs: dict[str, Value] = {}
    for word in " ".join(fields[_LEAST - 1 :]).replace("--config=", "").replace("--config", "").split():
        key, equals, value = word.partition("=")
        if equals:
            configs[key] = value
        else:
            configs["cleanup.policy"] = word
    yield SourceTopic(name=name, file=file, line=line, partitions=fields[0], factor=fields[1], configs=configs)
