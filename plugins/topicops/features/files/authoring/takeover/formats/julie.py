"""julie (kafka-topology-builder): descriptors whose levels make the names of topics, and plans with shared configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from topicops.features.files.authoring.importable import NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, documents_of
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, counted, rest

_NUMBERS = {"num.partitions": "partitions", "replication.factor": "factor"}
_TOPIC = ("name", "dataType", "config", "plan", "metadata", "schemas", "consumers", "producers")
_PARTS = ("name", "topics")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics of all projects; the texts above ``projects``, in their order, begin each name."""
    documents = documents_of(files)
    plans = {name: plan for _, document in documents for name, plan in document.map("plans").items()}
    checked: list[str] = []
    for file, document in documents:
        levels = [value for value in document.values() if isinstance(value, str)]
        kinds: Counter[str] = Counter({"platform": 1} if "platform" in document else {})
        for project in document.maps("projects"):
            above = [*levels, project.text("name") or ""]
            for topic in project.maps("topics"):
                name = ".".join([*above, *filter(None, (topic.text("name"), topic.text("dataType")))])
                checked.append(name)
                yield from _topic(name, topic, file, plans, above[-1])
                kinds += Counter({kind: _number(topic[kind]) for kind in _TOPIC[-3:] if topic.get(kind)})
            kinds += Counter({kind: _number(value) for kind, value in project.items() if kind not in _PARTS})
        for topic in document.maps("special_topics"):
            if whole := topic.text("name"):
                yield from _topic(whole, topic, file, plans, None)
        yield from counted(file, document.line, kinds)
    if len({name.count(".") for name in checked}) > 1:
        message = f"check the names, julie's settings can change their form: {', '.join(checked[:3])}"
        yield NotConverted(None, message, documents[0][0], 1)


def _number(of: object) -> int:
    return len(of) if isinstance(of, list | Map) else 1


def _topic(name: str, topic: Map, file: str, plans: Mapping[str, object], project: str | None) -> Iterator[Found]:
    config, metadata, plan = topic.map("config"), topic.map("metadata"), topic.text("plan")
    shared = plans.get(plan or "")
    if plan and not isinstance(shared, Map):
        yield NotConverted(name, f"plan {plan}, which no file describes", file, topic.line_of("plan"))
    yield from rest(name, topic, _TOPIC, file)
    yield SourceTopic(
        name=name,
        file=file,
        line=topic.line,
        partitions=config.get("num.partitions"),
        factor=config.get("replication.factor"),
        configs={key: value for key, value in config.items() if key not in _NUMBERS},
        owner=metadata.get("owner"),
        project=project,
        description=metadata.get("description"),
        labels={key: value for key, value in metadata.items() if key not in ("owner", "description")},
        shared=(plan, shared.map("config")) if plan and isinstance(shared, Map) else None,
    )
