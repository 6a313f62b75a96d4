"""What a reader of a format finds: topics as they are written there, and all that is no topic or has no place here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topicops.features.files.authoring.importable import LeftOut, NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTopic:
    """A topic as another tool's file has it; each value is its text there, None where there is none or it is null."""

    name: str
    file: str
    line: int
    partitions: Value = None
    factor: Value = None
    configs: Mapping[str, Value] = field(default_factory=dict)
    owner: Value = None
    project: str | None = None
    description: Value = None
    labels: Mapping[str, Value] = field(default_factory=dict)
    assignment: Sequence[Sequence[int]] = ()
    """Brokers of each partition; it gives partitions and replication factor."""
    shared: tuple[str, Mapping[str, Value]] | None = None
    """A set of configs that has a name there; the topic's own win over them."""


Found = SourceTopic | NotConverted | LeftOut
Reader = Callable[[Sequence[SourceFile], str | None], Iterator[Found]]
"""Reads files; with a cluster's name only its topics. Raises ``UsageError`` where a file cannot be read."""


def counted(file: str, line: int, kinds: Counter[str]) -> Iterator[NotConverted]:
    """Yield what there is beside topics, each kind once with its number."""
    for kind, number in kinds.items():
        yield NotConverted(None, f"{kind} ({number})", file, line)


def rest(topic: str | None, of: Map, known: Sequence[str], file: str) -> Iterator[NotConverted]:
    """Yield one for each field that no reader knows."""
    for name in of:
        if name not in known:
            yield NotConverted(topic, f"{name}: has no counterpart", file, of.line_of(name))
