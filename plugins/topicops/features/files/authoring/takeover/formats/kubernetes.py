"""What tools with resources of Kubernetes' form share: documents and lists of ``apiVersion`` and ``kind``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, documents_of


def resources(files: Sequence[SourceFile]) -> Iterator[tuple[str, str, Map]]:
    """Yield the file and kind of each resource, and it; in a list, one without a kind has the list's, less ``List``."""
    for file, document in documents_of(files):
        kind = document.text("kind") or ""
        if "items" in document:
            for item in document.maps("items"):
                yield file, item.text("kind") or kind.removesuffix("List"), item
        else:
            yield file, kind, document
