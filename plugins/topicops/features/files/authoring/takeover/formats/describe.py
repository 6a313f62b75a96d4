"""What ``kafka-topics --describe`` prints, for a cluster that this host cannot reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut
from topicops.features.files.authoring.takeover.edges.texts import SourceFile, Value
from topicops.features.files.authoring.takeover.found import Found, SourceTopic
from topicops.model.codes import Code
from topicops.model.specs.topic_config import TOPIC_CONFIGS


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics; where the rows of partitions say something else than the head, they count."""
    for file in files:
        heads: dict[str, tuple[int, dict[str, str]]] = {}
        rows: dict[str, dict[str, int]] = {}
        for number, line in enumerate(file.text.splitlines(), 1):
            fields = _fields(line)
            if "PartitionCount" in fields:
                heads[fields["Topic"]] = number, fields
            elif "Partition" in fields:
                rows.setdefault(fields["Topic"], {})[fields["Partition"]] = len(fields.get("Replicas", "").split(","))
        for name, (number, head) in heads.items():
            yield _topic(name, head, rows.get(name, {}), file.name, number)


def _fields(line: str) -> dict[str, str]:
    """Return ``Topic: a  PartitionCount: 2 ...`` by name; blanks behind a colon are in new releases alone."""
    head, _, configs = line.partition("Configs:")
    found, key = {"Topic": "", "Configs": configs.strip()}, ""
    for word in head.split():
        name, colon, value = word.partition(":")
        key = name if colon else key
        found[key] = value if colon else found.get(key) or word
    return found


def _configs(text: str) -> dict[str, Value]:
    """Divide where a comma is followed by a known config: values have commas too."""
    found: dict[str, Value] = {}
    last = ""
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if equals and name in TOPIC_CONFIGS:
            last, found[name] = name, value
        elif last:
            found[last] = f"{found[last]},{part}"
    return found


def _topic(name: str, head: dict[str, str], rows: dict[str, int], file: str, line: int) -> Found:
    factors = sorted(set(rows.values()))
    if len(factors) > 1:
        reason = f"its partitions have {' and '.join(map(str, factors))} replicas; a spec has one number"
        return LeftOut(name, Code.MIXED_REPLICATION_FACTOR, reason, file, line)
    if rows and rows.keys() != set(map(str, range(len(rows)))):
        return LeftOut(name, Code.MALFORMED_PARTITIONS, "its partition ids have gaps", file, line)
    return SourceTopic(
        name=name,
        file=file,
        line=line,
        partitions=str(len(rows) or head["PartitionCount"]),
        factor=str(factors[0] if factors else head.get("ReplicationFactor", "")),
        configs=_configs(head["Configs"]),
    )
