"""The first files of a repository of topics: the environment of one cluster, what editors need, and the DAG file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from topicops.features.shared.writer import write_new
from topicops.features.shared.yaml_text import scalar
from topicops.model.errors import SpecFileError
from topicops.model.printable import plural, printable
from topicops.model.specs.desired import API_VERSION
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

REPOSITORY = "topicops/topicops"
"""The repository of topicops itself on GitHub, with its action and its reusable workflow."""
FIRST_FILES = "features/authoring/first_files/"
DAG_FILE = "topicops_dags.py"
SCHEMAS = ".schemas"
"""Folder beside the folder of specs, in which `topicops init` writes the JSON Schemas."""
SCHEMA_KINDS = ("topic", "profile", "environment", "exceptions")
DEFAULT_REPLICATION_FACTOR = 3
FIRST_TOPICS = ("first-topic", *(f"first-topic-{number}" for number in range(2, 21)))
"""Names to suggest, in order: on a cluster for experiments somebody may have made the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Topics that the files which are there already ask for in the new environment."""

    topics: int
    missing: int
    """Number of them that the cluster lacks: the first plan would create them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEnvironment:
    """What a person said about the cluster, and what the cluster answered."""

    name: str
    cluster_class: str
    zookeeper: ZooKeeperEndpoint | None
    """None means that the brokers are the source."""
    kafka: KafkaEndpoint
    cluster_id: str
    kafka_version: str | None
    """``3.9``; None means that no broker reported its release."""
    racks: Mapping[int, str | None]
    """Rack of each live broker."""
    first_topic: str = FIRST_TOPICS[0]
    """Name that no live topic has, for the command that makes the first own topic."""

    @property
    def replication_factor(self) -> int:
        return min(DEFAULT_REPLICATION_FACTOR, max(1, len(self.racks)))


def schema_line(kind: str) -> str:
    """Give the first line of a file in a folder of ``topics/``, for every editor that runs the YAML language server.

    Source: yaml-language-server, README, "Using inlined schema"; a relative path begins at the file itself.
    """
    return f"# yaml-language-server: $schema=../../{SCHEMAS}/{kind}.v1.json"


def environment_text(found: FirstEnvironment) -> str:
    """The file ``environments/<name>.yaml``; every value that another cluster would need otherwise is in it."""
    return "\n".join([schema_line("environment"), *_environment_lines(found)]) + "\n"


def _environment_lines(found: FirstEnvironment) -> Iterator[str]:
    is_sandbox = found.cluster_class == "sandbox"
    yield f"# {printable(brokers_sentence(found))}"
    yield from (f"apiVersion: {API_VERSION}", "kind: Environment", "metadata:", f"  name: {scalar(found.name)}")
    yield from ("spec:", "  cluster:")
    if not is_sandbox:
        yield f"    id: {scalar(found.cluster_id)}  # nothing is sent to a cluster with another id"
    yield f"    class: {found.cluster_class}"
    if found.kafka_version:
        yield f'    kafkaVersion: "{found.kafka_version}"'
    yield f"    source: {'zookeeper' if found.zookeeper else 'kafka'}"
    yield from _endpoint_lines("zookeeper", found.zookeeper)
    yield from _endpoint_lines("kafka", found.kafka)
    yield (
        "    lease: zookeeper"
        if found.zookeeper
        else "    lease: file  # keeps apart the runs of this account on this host"
    )
    yield f"    minLiveBrokers: {found.replication_factor}  # with fewer, nothing is created, expanded or deleted"
    yield from ("  defaults:", f"    replicationFactor: {found.replication_factor}")
    yield from ("  policy:", "    unattended: notice  # a change of higher risk waits for an approval")


def _endpoint_lines(name: str, endpoint: ZooKeeperEndpoint | KafkaEndpoint | None) -> Iterator[str]:
    values = endpoint.model_dump(by_alias=True, exclude_none=True) if endpoint else {}
    if values:
        yield f"    {name}:"
        yield from (f"      {key}: {scalar(value)}" for key, value in values.items())


def brokers_sentence(found: FirstEnvironment) -> str:
    """``Cluster x9Zk: 3 live brokers on 3 racks (a, b, c).``"""
    racks = sorted({rack for rack in found.racks.values() if rack is not None})
    place = f"on {plural(len(racks), 'rack')} ({', '.join(racks)})" if racks else "without racks"
    version = f", Kafka {found.kafka_version}" if found.kafka_version else ""
    return f"Cluster {found.cluster_id}: {plural(len(found.racks), 'live broker')} {place}{version}."


def editor_settings(topics: str) -> str:
    """``.vscode/settings.json``: which schema is for which file; the YAML extension reads it.

    Args:
        topics: The folder of specs as seen from the repository's root, with ``/``.
    """
    parent = topics.rpartition("/")[0]
    folder = f"./{parent}/{SCHEMAS}" if parent else f"./{SCHEMAS}"
    patterns: Mapping[str, Sequence[str]] = {
        "topic": (f"{topics}/*/*.yaml", f"!{topics}/environments/*.yaml", f"!{topics}/profiles/*.yaml"),
        "profile": (f"{topics}/profiles/*.yaml",),
        "environment": (f"{topics}/environments/*.yaml", f"!{topics}/environments/*.exceptions.yaml"),
        "exceptions": (f"{topics}/environments/*.exceptions.yaml",),
    }
    schemas = {f"{folder}/{kind}.v1.json": list(patterns[kind]) for kind in SCHEMA_KINDS}
    return json.dumps({"yaml.schemas": schemas}, indent=2) + "\n"


def branch_filter(branch: str) -> str:
    """A branch as an entry of ``on.push.branches`` between brackets.

    Source: docs.github.com, "Workflow syntax": in a filter ``+`` and ``!`` are signs, and a backslash makes them plain.
    """
    return scalar(re.sub(r"[+!]", r"\\\g<0>", branch), inside=True)


def code_owner_lines(places: Sequence[str], owner: str) -> str:
    """A line for each place, which counts once its ``#`` is removed."""
    return "\n".join(f"# {place:<22} @your-organisation/{owner}" for place in places)


def filled(template: str, values: Mapping[str, str]) -> str:
    """A packaged text with ``@NAME@`` replaced."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def packaged(path: str) -> str:
    """Read a text of the package."""
    return resources.files("topicops").joinpath(path).read_text(encoding="utf-8")


def dag_file() -> str:
    """Give the text of the DAG file that people put beside their topics. Airflow itself is not needed."""
    return packaged(FIRST_FILES + DAG_FILE)


def write_dag_file(folder: Path) -> tuple[Path, bool]:
    """Write the DAG file, and say where it is and whether it is new.

    Raises:
        SpecFileError: There is a file with other lines, which stays; or the disk refuses.
    """
    path = folder / DAG_FILE
    if path.is_file() and path.read_bytes() == dag_file().encode():
        return path, False
    if path.exists():
        raise SpecFileError(f"{path}: it has other lines; compare with `topicops dags`, or move it away")
    write_new(folder, {DAG_FILE: dag_file()})
    return path, True
