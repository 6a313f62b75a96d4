"""The first files of a repository of topics, as texts: the environment of one cluster, and what editors need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import msgspec

from topicops.features.shared.yaml_text import scalar
from topicops.model.choices import ForgeKind
from topicops.model.printable import plural, printable
from topicops.model.specs.desired import API_VERSION
from topicops.model.specs.environment import KafkaEndpoint, ZooKeeperEndpoint

REPOSITORY = "topicops/topicops"
"""The repository of topicops itself on GitHub, with its action and its reusable workflow."""
FIRST_FILES = "features/files/authoring/first_files/"
DAG_FILE = "topicops_dags.py"
SCHEMAS = ".schemas"
"""Folder next to the folder of specs, in which `topicops init` writes the JSON Schemas."""
SCHEMA_KINDS = ("topic", "profile", "environment", "exceptions", "owners")
DEFAULT_REPLICATION_FACTOR = 3
FIRST_TOPICS = ("first-topic", *(f"first-topic-{number}" for number in range(2, 21)))
"""Names to suggest, in order: a cluster for experiments may have the first of them already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a person says about the cluster."""

    name: str
    owner: str
    cluster_class: Literal["production", "sandbox"]
    zookeeper: ZooKeeperEndpoint | None
    """None means that there is none, or that it is not to be read: then the brokers are the source."""
    kafka: KafkaEndpoint | None
    """None means that its addresses are read from ZooKeeper."""
    topics: str
    """Folder of specs, relative to the working folder, with ``/``."""
    kind: Literal["own", "managed"] | None = None
    """None means as the names of the brokers say."""
    forge: ForgeKind = "github"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEnvironment:
    """What a person said about the cluster, with the brokers' addresses, and what the cluster answered."""

    start: Start
    cluster_id: str
    kafka_version: str | None
    """``3.9``; None means that no broker reported its release."""
    racks: Mapping[int, str | None]
    """Rack of each live broker."""
    vendor: str = ""
    """Vendor that runs the brokers, as their names say; empty where they tell none."""
    first_topic: str = FIRST_TOPICS[0]
    """Name that no live topic has, for the command that makes the first own topic."""

    @property
    def is_managed(self) -> bool:
        return self.start.kind == "managed" or (self.start.kind is None and bool(self.vendor))

    @property
    def sentence(self) -> str:
        """``Cluster x9Zk: 3 live brokers on 3 racks (a, b, c).``"""
        racks = sorted({rack for rack in self.racks.values() if rack is not None})
        place = f"on {plural(len(racks), 'rack')} ({', '.join(racks)})" if racks else "without racks"
        version = f", Kafka {self.kafka_version}" if self.kafka_version else ""
        return f"Cluster {self.cluster_id}: {plural(len(self.racks), 'live broker')} {place}{version}."


def schema_line(kind: str) -> str:
    """Give the first line of a file in a folder of ``topics/``, for every editor that runs the YAML language server.

    Source: yaml-language-server, README, "Using inlined schema"; a relative path begins at the file itself.
    """
    return f"# yaml-language-server: $schema=../../{SCHEMAS}/{kind}.v1.json"


def environment_text(found: FirstEnvironment) -> str:
    """Give ``environments/<name>.yaml``; every value that another cluster would need otherwise is in it."""
    return "".join(f"{line}\n" for line in _environment_lines(found))


def _environment_lines(found: FirstEnvironment) -> Iterator[str]:
    start, replicas = found.start, min(DEFAULT_REPLICATION_FACTOR, max(1, len(found.racks)))
    yield from (schema_line("environment"), f"# {printable(found.sentence)}")
    yield from (f"apiVersion: {API_VERSION}", "kind: Environment", "metadata:", f"  name: {scalar(start.name)}")
    yield from ("spec:", "  cluster:")
    if start.cluster_class != "sandbox":
        yield f"    id: {scalar(found.cluster_id)}  # nothing is sent to a cluster with another id"
    yield f"    class: {start.cluster_class}"
    if found.is_managed:
        yield f"    kind: managed  # {found.vendor or 'a service'} runs the brokers, which place the replicas"
    if found.kafka_version:
        yield f'    kafkaVersion: "{found.kafka_version}"'
    yield f"    source: {'zookeeper' if start.zookeeper else 'kafka'}"
    for name, endpoint in (("zookeeper", start.zookeeper), ("kafka", start.kafka)):
        if values := {key: value for key, value in msgspec.to_builtins(endpoint or {}).items() if value}:
            yield from (f"    {name}:", *(f"      {key}: {scalar(value)}" for key, value in values.items()))
    file = "file  # keeps apart the runs of this account on this host"
    yield f"    lease: {'zookeeper' if start.zookeeper else file}"
    yield f"    minLiveBrokers: {replicas}  # with fewer, nothing is created, expanded or deleted"
    yield from ("  defaults:", f"    replicationFactor: {replicas}")
    yield from ("  policy:", "    unattended: notice  # a change of higher risk waits for an approval")


def editor_settings(topics: str) -> str:
    """Give ``.vscode/settings.json``, which the YAML extension reads: the schema of each file below ``topics``."""
    environments, profiles = f"{topics}/environments/*.yaml", f"{topics}/profiles/*.yaml"
    exceptions = f"{topics}/environments/*.exceptions.yaml"
    patterns = {
        "topic": [f"{topics}/*/*.yaml", f"!{environments}", f"!{profiles}"],
        "profile": [profiles],
        "environment": [environments, f"!{exceptions}"],
        "exceptions": [exceptions],
        "owners": [f"{topics}/owners.yaml"],
    }
    schemas = {f"./{schemas_folder(topics)}/{kind}.v1.json": patterns[kind] for kind in SCHEMA_KINDS}
    return json.dumps({"yaml.schemas": schemas}, indent=2) + "\n"


def schemas_folder(topics: str) -> str:
    parent = topics.rpartition("/")[0]
    return f"{parent}/{SCHEMAS}" if parent else SCHEMAS


def filled(template: str, values: Mapping[str, str]) -> str:
    """Give a packaged text with ``@NAME@`` replaced."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def packaged(path: str) -> str:
    return resources.files("topicops").joinpath(path).read_text(encoding="utf-8")


def dag_file() -> str:
    """Give the text of the DAG file that people put beside their topics. Airflow itself is not needed."""
    return packaged(FIRST_FILES + DAG_FILE)
