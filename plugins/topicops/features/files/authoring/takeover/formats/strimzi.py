"""Strimzi: ``KafkaTopic`` resources, alone, in lists, or as ``kubectl get -o yaml`` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut, NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile
from topicops.features.files.authoring.takeover.formats.kubernetes import resources
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, rest

_HASHED = re.compile(r".*---[0-9a-f]{40}")
"""The operator's name for a topic whose own name Kubernetes refuses."""
_LABELS_OF_TOOLS = ("strimzi.io/", "helm.sh/", "app.kubernetes.io/managed-by", "argocd.argoproj.io/")


def read(files: Sequence[SourceFile], cluster: str | None) -> Iterator[Found]:
    """Yield the topics; other resources are named."""
    for file, kind, resource in resources(files):
        metadata = resource.map("metadata")
        name, labels = metadata.text("name") or "", metadata.map("labels")
        if kind != "KafkaTopic":
            yield NotConverted(None, f"{kind} {name}", file, resource.line)
        elif cluster in (None, labels.text("strimzi.io/cluster")):
            yield from _topic(name, metadata, resource.map("spec"), file)


def _topic(resource: str, metadata: Map, spec: Map, file: str) -> Iterator[Found]:
    name = spec.text("topicName") or resource
    if metadata.map("annotations").text("strimzi.io/managed") == "false":
        yield LeftOut(name, None, "strimzi.io/managed is false: the operator does not manage it", file, metadata.line)
        return
    if _HASHED.fullmatch(name):
        yield LeftOut(name, None, "the operator made up this name; give spec.topicName", file, metadata.line)
        return
    yield from rest(name, spec, ("topicName", "partitions", "replicas", "config"), file)
    labels = {key: value for key, value in metadata.map("labels").items() if not key.startswith(_LABELS_OF_TOOLS)}
    yield SourceTopic(
        name=name,
        file=file,
        line=metadata.line,
        partitions=spec.get("partitions"),
        factor=spec.get("replicas"),
        configs=spec.map("config"),
        labels=labels,
    )
