"""The first files of a repository of topics: look at one cluster, then write them. The cluster is only read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from topicops import __version__
from topicops.edges.connections.lookup import from_environment
from topicops.edges.durable_files import create_atomically
from topicops.edges.specs.git import main_branch, name_in_repository
from topicops.edges.specs.reader import read_tree
from topicops.features.authoring.first_environment import (
    FIRST_FILES,
    FIRST_TOPICS,
    REPOSITORY,
    SCHEMA_KINDS,
    SCHEMAS,
    Described,
    FirstEnvironment,
    branch_filter,
    code_owner_lines,
    editor_settings,
    environment_text,
    filled,
    packaged,
)
from topicops.flow.runs.access import Access, kafka_reader
from topicops.flow.runs.run import home_folder
from topicops.model.choices import ForgeKind
from topicops.model.cluster.snapshot import Broker
from topicops.model.errors import SpecFileError, UsageError, WrongTargetError
from topicops.model.specs.desired import Lifecycle
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec, KafkaEndpoint, ZooKeeperEndpoint
from topicops.steps.specs.validate import validate

ClusterClass = Literal["production", "sandbox"]
BOOTSTRAP_BROKERS = 3
"""Number of the registered addresses that become bootstrap servers."""
BROKERS_S = 20.0
"""The least time that the brokers get for one question."""
PLAIN = "PLAINTEXT"
HOME_LINE = ".topicops/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a person says about the cluster."""

    name: str
    owner: str
    cluster_class: ClusterClass
    zookeeper: ZooKeeperEndpoint | None
    """None means that there is none, or that it is not to be read."""
    kafka: KafkaEndpoint | None
    """None means that its addresses are read from ZooKeeper."""
    topics: str
    """Folder of specs, relative to the working folder, with ``/``."""
    forge: ForgeKind = "github"
    """Kind of the forge with the repository's pull requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The files that were written, and those that were there already."""

    environment: FirstEnvironment
    written: tuple[str, ...]
    left_alone: tuple[str, ...]
    hints: tuple[str, ...]
    """Sentences: what to add by hand to a file that was left alone."""
    described: Described | None
    """None means that the topic files have errors."""


_FORGE_FILES: Mapping[ForgeKind, Mapping[str, str]] = {
    "github": {".github/CODEOWNERS": "CODEOWNERS", ".github/workflows/topics.yml": "workflow.yml"},
    "gitlab": {".gitlab/CODEOWNERS": "CODEOWNERS", ".gitlab-ci.yml": "gitlab-ci.yml"},
}
"""The packaged file of each path."""
_JOBS: Mapping[ForgeKind, Sequence[str]] = {"github": ("/.github/",), "gitlab": ("/.gitlab/", "/.gitlab-ci.yml")}
"""What CODEOWNERS must protect besides policy: the jobs that get the secrets, and CODEOWNERS itself."""


def start(wanted: Start, *, progress: Callable[[str], None]) -> Started:
    """Look at the cluster and write the first files. A file that is there stays as it is.

    Raises:
        ClusterError: A server does not answer, or refuses to.
        UsageError: An address or a connection cannot be used; or the working folder is below the root of a repository.
        WrongTargetError: ZooKeeper and the brokers belong to different clusters, or the brokers run with KRaft.
        SpecFileError: The disk refuses a file.
    """
    _require_root(wanted)
    progress("Reading the cluster")
    found = _look(wanted)
    written, left_alone = list[str](), list[str]()
    for name, text in _texts(wanted, found).items():
        (written if _write(name, text) else left_alone).append(name)
    return Started(
        environment=found,
        written=tuple(written),
        left_alone=tuple(left_alone),
        hints=tuple(_hints(left_alone)),
        described=_described(wanted),
    )


def _require_root(wanted: Start) -> None:
    inside = name_in_repository(Path())
    if inside:
        read = " and ".join(sorted(_FORGE_FILES[wanted.forge]))
        raise UsageError(
            f"this folder is {inside} of a git repository, and {read} count only at its root: run it at the "
            f"repository's root with --topics {shlex.quote(inside + wanted.topics)}"
        )


def _look(wanted: Start) -> FirstEnvironment:
    if wanted.kafka:
        _access(wanted).kafka("reader")  # before ZooKeeper is asked
    with _access(wanted).reader() as reader:
        traces = reader.traces(FIRST_TOPICS)
        cluster_id, brokers = reader.cluster_id(), reader.brokers()
    kafka = wanted.kafka or KafkaEndpoint(bootstrap_servers=_registered(brokers))
    by_brokers, kafka_version = _asked_of_brokers(_access(replace(wanted, kafka=kafka)))
    if by_brokers != cluster_id:
        raise WrongTargetError(
            f"ZooKeeper belongs to cluster {cluster_id}, the brokers to {by_brokers}; correct one of the two "
            "addresses; nothing was written"
        )
    return FirstEnvironment(
        name=wanted.name,
        cluster_class=wanted.cluster_class,
        zookeeper=wanted.zookeeper,
        kafka=kafka,
        cluster_id=cluster_id,
        kafka_version=kafka_version,
        racks={broker.id: broker.rack for broker in brokers.values()},
        first_topic=next((name for name in FIRST_TOPICS if traces[name].is_gone), FIRST_TOPICS[-1]),
    )


def _described(wanted: Start) -> Described | None:
    desired = validate(read_tree(Path(wanted.topics)), environment=wanted.name, now=datetime.now(UTC)).desired
    if desired is None:
        return None
    names = [name for name, topic in desired.topics.items() if topic.lifecycle is Lifecycle.PRESENT]
    if not names:
        return Described(topics=0, missing=0)
    with _access(wanted).reader() as reader:
        traces = reader.traces(names)
    return Described(topics=len(names), missing=sum(traces[name].live is None for name in names))


def _access(wanted: Start) -> Access:
    cluster = Cluster(
        cluster_class=wanted.cluster_class,
        source="zookeeper" if wanted.zookeeper else "kafka",
        zookeeper=wanted.zookeeper,
        kafka=wanted.kafka,
    )
    environment = Environment(name=wanted.name, spec=EnvironmentSpec(cluster=cluster), file="the command line")
    return Access(environment=environment, run="init", home=home_folder(), connections=from_environment)


def _asked_of_brokers(access: Access) -> tuple[str, str | None]:
    """The id of their cluster, and the oldest release among them, whose topic configs all of them know."""
    access.require_reachable_brokers(["reader"])
    with kafka_reader(access) as reader, access.questions(timeout_s=BROKERS_S) as questions:
        releases = questions.releases()
        return reader.cluster_id(), str(releases.oldest) if releases else None


def _registered(brokers: Mapping[int, Broker]) -> str:
    """Addresses that the brokers registered in ZooKeeper, of listeners without TLS and login."""
    plain = [found for broker in brokers.values() if (found := _plain_address(broker))]
    if not plain:
        raise UsageError(
            "no live broker has registered a listener without TLS and login: give --bootstrap-servers, or with "
            "--kafka-connection the id of a connection that has TLS or a login"
        )
    return ",".join(plain[:BOOTSTRAP_BROKERS])


def _plain_address(broker: Broker) -> str | None:
    """Of the listener whose name is its protocol, or names clients, before one that may be for brokers alone."""
    registered = zip(broker.endpoints, broker.protocols, strict=False)
    plain = [endpoint.partition("://") for endpoint, protocol in registered if protocol == PLAIN]
    plain.sort(key=lambda parts: (parts[0].upper() != PLAIN, "CLIENT" not in parts[0].upper()))
    return plain[0][2] if plain else None


def _texts(wanted: Start, found: FirstEnvironment) -> dict[str, str]:
    """Give the text of each file, by its path below the working folder; the environment is the first."""
    values = {
        "TOPICS": wanted.topics,
        "OWNER": wanted.owner,
        "ENVIRONMENT": wanted.name,
        "VERSION": __version__,
        "REPOSITORY": REPOSITORY,
        "BRANCH": branch_filter(main_branch(Path()) or "main"),
        "JOBS_LINES": code_owner_lines(_JOBS[wanted.forge], wanted.owner),
    }
    beside = wanted.topics.rpartition("/")[0]
    schemas = f"{beside}/{SCHEMAS}" if beside else SCHEMAS
    texts = {
        f"{wanted.topics}/README.md": packaged(FIRST_FILES + "topics.md"),
        ".gitignore": packaged(FIRST_FILES + "gitignore"),
        ".pre-commit-config.yaml": packaged(FIRST_FILES + "pre-commit-config.yaml"),
        **{name: packaged(FIRST_FILES + file) for name, file in _FORGE_FILES[wanted.forge].items()},
    }
    return {
        f"{wanted.topics}/environments/{wanted.name}.yaml": environment_text(found),
        **{name: filled(text, values) for name, text in texts.items()},
        ".vscode/settings.json": editor_settings(wanted.topics),
        **{f"{schemas}/{kind}.v1.json": packaged(f"schema/{kind}.v1.json") for kind in SCHEMA_KINDS},
    }


def _write(name: str, text: str) -> bool:
    """Make a file; False means that there is one already."""
    try:
        create_atomically(Path(name), text.encode())
    except FileExistsError:
        return False
    except OSError as error:
        raise SpecFileError(f"{name}: cannot be written: {error.strerror}") from error
    return True


def _hints(left_alone: list[str]) -> Iterator[str]:
    if ".gitignore" in left_alone:
        lines = Path(".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        if HOME_LINE not in [line.strip() for line in lines]:
            yield f".gitignore has no line {HOME_LINE}: add it, or keep runs elsewhere with TOPICOPS_HOME"
