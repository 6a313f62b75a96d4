"""kafka-gitops: ``state.yaml``, and the files of topics that it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, documents_of
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, counted, rest

_OTHERS = ("services", "users", "customServiceAcls", "customUserAcls")


def read(files: Sequence[SourceFile], _cluster: str | None) -> Iterator[Found]:
    """Yield the topics of every file; the settings of any one hold for all."""
    documents = documents_of(files)
    settings = [document.map("settings").map("topics") for _, document in documents]
    factor = next((found for of in settings if (found := of.map("defaults").get("replication")) is not None), None)
    for file, document in documents:
        blacklist = document.map("settings").map("topics").map("blacklist")
        if isinstance(prefixes := blacklist.get("prefixed"), list):
            patterns = ", ".join(f'"{prefix}*"' for prefix in prefixes)
            message = f"blacklist: policy.protectedTopics: [{patterns}] in the environment file says the same"
            yield NotConverted(None, message, file, blacklist.line_of("prefixed"))
        for name, topic in document.map("topics").items():
            if isinstance(topic, Map):
                yield from rest(name, topic, ("partitions", "replication", "configs"), file)
                yield SourceTopic(
                    name=name,
                    file=file,
                    line=document.map("topics").line_of(name),
                    partitions=topic.get("partitions"),
                    factor=topic.get("replication", factor),
                    configs=topic.map("configs"),
                )
        kinds = Counter({kind: len(document.map(kind)) for kind in _OTHERS if document.map(kind)})
        yield from counted(file, document.line, kinds)
