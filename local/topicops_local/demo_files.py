"""The demo's own copy of specs and DAG files, for a Kafka other than that of the checkout's environment."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from topicops.model.errors import UsageError
from topicops.model.release import ZSTD, Release

COMPRESSION = "compression.type"


def copy_files(topics: Path, dags: Path, folder: Path) -> tuple[Path, Path]:
    """Copy both folders into ``folder``, side by side as DAG files expect it; returns the copies."""
    shutil.rmtree(folder, ignore_errors=True)
    copies = folder / "topics", folder / "dags"
    for source, copy in zip((topics, dags), copies, strict=True):
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copies


def fit_to_kafka(topics: Path, environment: str, release: Release, *, kraft: bool) -> Iterator[str]:
    """Write into a copy of the specs what that Kafka needs; yields a line about each thing.

    Raises:
        UsageError: There is no such environment.
    """
    file = topics / "environments" / f"{environment}.yaml"
    if not file.is_file():
        raise UsageError(f"{file}: no such file; the demo needs the environment {environment}")
    _edit(file, lambda spec: _fit_cluster(spec["cluster"], release, kraft=kraft))
    source = ", source: kafka, lease: file" if kraft else ""
    yield f'environment {environment}: kafkaVersion: "{release}"{source}'
    if release < ZSTD:
        for each in sorted(topics.rglob("*.yaml")):
            if _edit(each, _without_zstd):
                yield f"{each.stem}: {COMPRESSION}: lz4, because Kafka {release} has no zstd"


def _fit_cluster(cluster: dict[str, Any], release: Release, *, kraft: bool) -> bool:
    cluster["kafkaVersion"] = str(release)
    if kraft:
        cluster.pop("zookeeper", None)
        cluster |= {"source": "kafka", "lease": "file"}
    return True


def _without_zstd(spec: dict[str, Any]) -> bool:
    configs = spec.get("configs") or {}
    if configs.get(COMPRESSION) != "zstd":
        return False
    configs[COMPRESSION] = "lz4"
    return True


def _edit(file: Path, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Write the file again if ``change`` changed its ``spec``; says whether."""
    import yaml

    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    changed = isinstance(content, dict) and isinstance(content.get("spec"), dict) and change(content["spec"])
    if changed:
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return changed
