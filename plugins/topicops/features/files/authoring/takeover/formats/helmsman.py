"""kafka-helmsman: topics with values for each cluster; later wins: defaults, their cluster, the topic, its cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, Value, documents_of
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, rest
from topicops.model.errors import UsageError

_TOPIC = ("name", "partitions", "replicationFactor", "config", "clusters")


def read(files: Sequence[SourceFile], cluster: str | None) -> Iterator[Found]:
    """Yield the topics of one cluster. Raises ``UsageError`` where there are clusters and none is chosen."""
    documents = documents_of(files)
    defaults = next((document.map("defaults") for _, document in documents if "defaults" in document), Map())
    topics = [(file, topic) for file, document in documents for topic in document.maps("topics")]
    clusters = sorted({name for _, topic in topics for name in topic.map("clusters")})
    if clusters and cluster is None:
        raise UsageError(f"name the cluster whose topics are wanted: --cluster {clusters[0]}; there are {clusters}")
    for file, topic in topics:
        name, its = topic.text("name") or "", topic.map("clusters")
        if clusters and cluster not in its:
            yield NotConverted(name, f"cluster {', '.join(its)}", file, topic.line_of("clusters"))
            continue
        yield from rest(name, topic, _TOPIC, file)
        layers = (defaults, defaults.map("clusters").map(cluster or ""), topic, its.map(cluster or ""))
        configs: dict[str, Value] = {key: value for layer in layers for key, value in layer.map("config").items()}
        numbers = {key: value for layer in layers for key, value in layer.items()}
        yield SourceTopic(
            name=name,
            file=file,
            line=topic.line,
            partitions=numbers.get("partitions"),
            factor=numbers.get("replicationFactor"),
            configs=configs,
        )
