"""jikkou: ``KafkaTopic`` resources and lists of them, with the ``ConfigMap`` resources that they refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from topicops.features.files.authoring.importable import LeftOut
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile
from topicops.features.files.authoring.takeover.formats.kubernetes import resources
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, counted, rest

_SPEC = ("partitions", "replicas", "replicationFactor", "configs", "configMapRefs")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics; other resources are counted."""
    each = list(resources(files))
    maps = {r.map("metadata").text("name") or "": r.map("data") for _, kind, r in each if kind == "ConfigMap"}
    others: dict[str, Counter[str]] = {}
    for file, kind, resource in each:
        if kind in ("KafkaTopic", "KafkaTopicList"):
            for topic in resource.map("spec").maps("topics") or [resource]:
                yield from _topic(topic, file, maps)
        elif kind != "ConfigMap":
            others.setdefault(file, Counter())[kind] += 1
    for file, kinds in others.items():
        yield from counted(file, 1, kinds)


def _topic(topic: Map, file: str, maps: Mapping[str, Map]) -> Iterator[Found]:
    metadata = topic.map("metadata")
    spec = topic.map("spec") if "spec" in topic else topic
    name = metadata.text("name") or topic.text("name") or ""
    refs = spec.get("configMapRefs")
    named = [str(ref) for ref in refs] if isinstance(refs, list) else []
    lacking = [ref for ref in named if ref not in maps]
    if metadata.map("annotations").text("jikkou.io/delete") == "true":
        yield LeftOut(name, None, "it is to be deleted there; topicops retire writes a tombstone", file, metadata.line)
    elif lacking:
        yield LeftOut(name, None, f"no file has the ConfigMap {lacking[0]}", file, spec.line_of("configMapRefs"))
    else:
        yield from rest(name, topic.map("spec"), _SPEC, file)
        joined = {key: value for ref in named for key, value in maps[ref].items()}
        yield SourceTopic(
            name=name,
            file=file,
            line=metadata.line,
            partitions=spec.get("partitions"),
            factor=spec.get("replicas", spec.get("replicationFactor")),
            configs=spec.map("configs") if len(named) == 1 else {**joined, **spec.map("configs")},
            labels=metadata.map("labels"),
            shared=(named[0], maps[named[0]]) if len(named) == 1 else None,
        )
