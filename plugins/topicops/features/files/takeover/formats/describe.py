"""What ``kafka-topics --describe`` prints, for a cluster that this host cannot reach."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topicops.features.files.takeover.edges.texts import SourceFile, Value
from topicops.features.files.takeover.found import Found, NoTopic, SourceTopic
from topicops.model.codes import Code
from topicops.model.specs.topic_config import TOPIC_CONFIGS

_HEAD = re.compile(
    r"Topic:\s*(?P<name>\S+)\s.*?PartitionCount:\s*(?P<partitions>\d+)\s+ReplicationFactor:\s*(?P<factor>\d+)"
    r"(?:\s+Configs:\s*(?P<configs>\S*))?"
)
_ROW = re.compile(r"\s+Topic:\s*(?P<name>\S+)\s+Partition:\s*(?P<partition>\d+)\s.*?Replicas:\s*(?P<replicas>[\d,]*)")
_NEXT_CONFIG = re.compile(rf",(?=(?:{'|'.join(map(re.escape, sorted(TOPIC_CONFIGS)))})=)")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics; where the rows of partitions say something else than the head, they count."""
    for file in files:
        heads: dict[str, tuple[int, re.Match[str]]] = {}
        rows: dict[str, dict[int, int]] = {}
        for number, line in enumerate(file.text.splitlines(), 1):
            if row := _ROW.match(line):
                replicas = row["replicas"].split(",") if row["replicas"] else []
                rows.setdefault(row["name"], {})[int(row["partition"])] = len(replicas)
            elif head := _HEAD.match(line):
                heads[head["name"]] = number, head
        for name, (number, head) in heads.items():
            yield _topic(name, head, rows.get(name, {}), file.name, number)


def _topic(name: str, head: re.Match[str], rows: dict[int, int], file: str, line: int) -> Found:
    factors = sorted(set(rows.values()))
    if len(factors) > 1:
        reason = f"its partitions have {' and '.join(map(str, factors))} replicas; a spec has one number"
        return NoTopic(name, Code.MIXED_REPLICATION_FACTOR, reason, file, line)
    if rows and sorted(rows) != list(range(len(rows))):
        return NoTopic(name, Code.MALFORMED_PARTITIONS, "its partition ids have gaps", file, line)
    pairs = (pair.partition("=") for pair in _NEXT_CONFIG.split(head["configs"] or "") if pair)
    configs: dict[str, Value] = {key: value for key, _, value in pairs}
    partitions, factor = str(len(rows) or head["partitions"]), str(factors[0] if factors else head["factor"])
    return SourceTopic(name=name, file=file, line=line, partitions=partitions, factor=factor, configs=configs)
