"""topicctl: a document with ``meta`` and ``spec`` for each topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topicops.features.files.authoring.importable import LeftOut, NotConverted
from topicops.features.files.authoring.takeover.edges.texts import Map, SourceFile, documents_of
from topicops.features.files.authoring.takeover.found import Found, SourceTopic, rest

_MS_PER_MINUTE = 60_000
_PLACED_BY_US = ("any", "balanced-leaders")
_META = ("name", "cluster", "environment", "region", "description", "labels", "consumers")
_SPEC = ("partitions", "replicationFactor", "retentionMinutes", "settings", "placement", "migration")


def read(files: Sequence[SourceFile], cluster: str | None) -> Iterator[Found]:
    """Yield the topics; the file of a cluster is named."""
    for file, document in documents_of(files):
        meta, spec = document.map("meta"), document.map("spec")
        if "bootstrapAddrs" in spec:
            message = f"{file}: describes a cluster; topicops init writes the file of an environment"
            yield NotConverted(None, message, file, document.line)
        elif (name := meta.text("name")) and cluster in (None, meta.text("cluster")):
            yield from _topic(name, meta, spec, file)


def _topic(name: str, meta: Map, spec: Map, file: str) -> Iterator[Found]:
    configs, minutes = dict(spec.map("settings")), spec.text("retentionMinutes")
    if minutes is not None:
        if "retention.ms" in configs:
            reason = "it has retentionMinutes and settings.retention.ms; keep one of the two"
            yield LeftOut(name, None, reason, file, spec.line_of("retentionMinutes"))
            return
        is_number = minutes.isascii() and minutes.isdigit()
        configs["retention.ms"] = str(int(minutes) * _MS_PER_MINUTE) if is_number else minutes
    placement = spec.map("placement")
    strategy, rows = placement.text("strategy"), placement.get("staticAssignments")
    assignment = [[int(str(b)) for b in row] for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    if strategy not in (None, *_PLACED_BY_US) and not (strategy == "static" and assignment):
        yield NotConverted(name, f"placement.strategy {strategy}", file, placement.line)
    yield from (*rest(name, meta, _META, file), *rest(name, spec, _SPEC, file))
    yield SourceTopic(
        name=name,
        file=file,
        line=meta.line,
        partitions=spec.get("partitions"),
        factor=spec.get("replicationFactor"),
        configs=configs,
        description=meta.get("description"),
        labels=meta.map("labels"),
        assignment=assignment if strategy == "static" else (),
    )
