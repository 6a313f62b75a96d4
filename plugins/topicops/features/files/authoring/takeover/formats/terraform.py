"""Terraform: literal resources of three providers in ``*.tf``, and all that ``terraform show -json`` computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from topicops.features.files.authoring.importable import LeftOut, NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, Value
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, counted
from topicops.features.files.authoring.takeover.hcl import EXPRESSION, blocks_of


class _Fields(NamedTuple):
    """How a provider calls the values."""

    name: str
    partitions: str
    factor: str
    default_partitions: str | None = None
    dots: str = "."
    """What stands for a dot in the names of configs."""


_TOPICS = {
    "kafka_topic": _Fields("name", "partitions", "replication_factor"),
    "confluent_kafka_topic": _Fields("topic_name", "partitions_count", "", "6"),
    "aiven_kafka_topic": _Fields("topic_name", "partitions", "replication", dots="_"),
}
_OTHERS = ("kafka_", "confluent_", "aiven_kafka_")
_REPEATED = ("for_each", "count", "dynamic")
_HINT = "terraform computes it: import the output of terraform show -json > state.json"


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics; other resources of Kafka's providers are counted."""
    for file in files:
        kinds: Counter[str] = Counter()
        for kind, label, body in _of_state(file) if file.name.endswith(".json") else _of_files(file):
            if kind in _TOPICS:
                yield from _topic(f"{kind}.{label}", body, _TOPICS[kind], file.name)
            elif kind.startswith(_OTHERS):
                kinds[kind] += 1
        yield from counted(file.name, 1, kinds)


def _of_files(file: SourceFile) -> Iterator[tuple[str, str, Map]]:
    for block in blocks_of(file):
        match block.words:
            case ("resource", kind, label):
                yield kind, label, block.body


def _of_state(file: SourceFile) -> Iterator[tuple[str, str, Map]]:
    for document in file.documents:
        modules = [document.map("values").map("root_module")]
        while modules:
            module = modules.pop(0)
            modules += module.maps("child_modules")
            for resource in module.maps("resources"):
                if resource.text("mode") in (None, "managed"):
                    yield resource.text("type") or "", resource.text("name") or "", resource.map("values")


def _topic(address: str, body: Map, fields: _Fields, file: str) -> Iterator[Found]:
    configs = body.map("config")
    read_fields = [body.get(name) for name in (fields.name, fields.partitions, fields.factor, "config")]
    name = body.text(fields.name)
    if any(word in body for word in _REPEATED) or EXPRESSION in (*read_fields, *configs.values(), *configs):
        yield LeftOut(address, None, _HINT, file, body.line)
        return
    if name is None:
        yield LeftOut(address, None, f"it has no {fields.name}", file, body.line)
        return
    partitions: Value = body.get(fields.partitions)
    if partitions is None and fields.default_partitions:
        partitions = fields.default_partitions
        message = f"{fields.partitions}: {partitions} is the provider's default"
        yield NotConverted(name, message, file, body.line)
    if body.map("lifecycle").text("prevent_destroy") == "true":
        yield NotConverted(name, "lifecycle.prevent_destroy: a delete needs a tombstone here", file, body.line)
    if body.text("termination_protection") == "true":
        yield NotConverted(name, "termination_protection: a delete needs a tombstone here", file, body.line)
    own: Mapping[str, Value] = {key.replace(fields.dots, "."): value for key, value in configs.items()}
    yield SourceTopic(
        name=name, file=file, line=body.line, partitions=partitions, factor=body.get(fields.factor), configs=own
    )
