"""Look at one cluster, and write the first files of a repository of topics. The cluster is only read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from topicops import __version__
from topicops.edges.connections.lookup import from_environment, kafka_properties
from topicops.edges.durable_files import create_atomically
from topicops.edges.specs.git import main_branch, name_in_repository
from topicops.edges.specs.reader import read_tree
from topicops.features.files.authoring.first_environment import (
    FIRST_FILES,
    FIRST_TOPICS,
    REPOSITORY,
    SCHEMA_KINDS,
    FirstEnvironment,
    Start,
    editor_settings,
    environment_text,
    filled,
    packaged,
    schemas_folder,
)
from topicops.features.shared.yaml_text import scalar
from topicops.flow.runs.access import Access, kafka_reader
from topicops.flow.runs.run import home_folder
from topicops.model.choices import ForgeKind
from topicops.model.cluster.snapshot import Broker
from topicops.model.errors import SpecFileError, UsageError, WrongTargetError
from topicops.model.printable import plural, printable
from topicops.model.specs.desired import Lifecycle
from topicops.model.specs.environment import Cluster, Environment, EnvironmentSpec, KafkaEndpoint
from topicops.model.specs.vendors import vendor_at
from topicops.steps.specs.validate import validate

BOOTSTRAP_BROKERS = 3
"""Number of the registered addresses that become bootstrap servers."""
BROKERS_S = 20.0
"""The least time that the brokers get for one question."""
PLAIN = "PLAINTEXT"
HOME_LINE = ".topicops/"
_FORGE_FILES: Mapping[ForgeKind, Mapping[str, str]] = {
    "github": {".github/CODEOWNERS": "CODEOWNERS", ".github/workflows/topics.yml": "workflow.yml"},
    "gitlab": {".gitlab/CODEOWNERS": "CODEOWNERS", ".gitlab-ci.yml": "gitlab-ci.yml"},
}
"""The packaged file of each path."""
_JOBS: Mapping[ForgeKind, Sequence[str]] = {"github": ("/.github/",), "gitlab": ("/.gitlab/", "/.gitlab-ci.yml")}
"""Paths that CODEOWNERS must protect besides policy: the jobs that get the secrets, and CODEOWNERS itself."""
SETUP_PAGE = f"https://github.com/{REPOSITORY}/blob/v{__version__}/docs/how-to/review-in-pull-requests.md"
"""Address of the page that lists the secrets, variables and environments of both forges."""
_NEEDED: Mapping[ForgeKind, str] = {
    "github": "make the environments topicops-reader and topicops-airflow on GitHub, with their secrets",
    "gitlab": "protect the default branch and set its variables (TOPICOPS_CONNECTIONS and others) on GitLab",
}


def start(wanted: Start, *, progress: Callable[[str], None]) -> str:
    """Look at the cluster and write the first files; says what was written, and what to type next.

    A file that is there stays as it is. Raises ``WrongTargetError`` where ZooKeeper and the brokers belong to different
    clusters, or the brokers run with KRaft.
    """
    if inside := name_in_repository(Path()):
        read = " and ".join(sorted(_FORGE_FILES[wanted.forge]))
        raise UsageError(
            f"this folder is {inside} of a git repository, and {read} count only at its root: run it at the "
            f"repository's root with --topics {shlex.quote(inside + wanted.topics)}"
        )
    progress("Reading the cluster")
    found = _look(wanted)
    lines, left_alone = [found.sentence, ""], list[str]()
    for name, text in _texts(found).items():
        if _write(name, text):
            lines.append(f"Wrote {name}")
        else:
            left_alone.append(name)
    lines += [f"Left alone, there already: {', '.join(left_alone)}"] if left_alone else []
    if ".gitignore" in left_alone:
        ignored = Path(".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        if HOME_LINE not in [line.strip() for line in ignored]:
            lines.append(f".gitignore has no line {HOME_LINE}: add it, or keep runs elsewhere with TOPICOPS_HOME")
    lines += _next_lines(found, _described(wanted))
    lines += ["", f"Before the first pull request, {_NEEDED[wanted.forge]}:", f"  {SETUP_PAGE}"]
    return "\n".join(map(printable, lines))


def _look(wanted: Start) -> FirstEnvironment:
    if wanted.kafka:
        _access(wanted).kafka("reader")  # before ZooKeeper is asked
    with _access(wanted).reader() as reader:
        traces = reader.traces(FIRST_TOPICS)
        cluster_id, brokers = reader.cluster_id(), reader.brokers()
    known = replace(wanted, kafka=wanted.kafka or KafkaEndpoint(bootstrap_servers=_registered(brokers)))
    access = _access(known)
    access.require_reachable_brokers(["reader"])
    with kafka_reader(access) as reader, access.questions(timeout_s=BROKERS_S) as questions:
        releases, by_brokers = questions.releases(), reader.cluster_id()
    if by_brokers != cluster_id:
        raise WrongTargetError(
            f"ZooKeeper belongs to cluster {cluster_id}, the brokers to {by_brokers}; correct one of the two "
            "addresses; nothing was written"
        )
    return FirstEnvironment(
        start=known,
        cluster_id=cluster_id,
        kafka_version=str(releases.oldest) if releases else None,  # all brokers know its topic configs
        racks={broker.id: broker.rack for broker in brokers.values()},
        vendor=_vendor(known),
        first_topic=next((name for name in FIRST_TOPICS if traces[name].is_gone), FIRST_TOPICS[-1]),
    )


def _vendor(wanted: Start) -> str:
    """Return who runs the brokers, by the names of their servers; no client is made for it."""
    if not wanted.kafka:
        return ""
    access = _access_as(wanted, "own")
    return vendor_at(kafka_properties(access.environment, "reader", access.connections)["bootstrap.servers"])


def _access(wanted: Start) -> Access:
    return _access_as(wanted, wanted.kind or ("managed" if _vendor(wanted) else "own"))


def _access_as(wanted: Start, kind: Literal["own", "managed"]) -> Access:
    cluster = Cluster(
        kind=kind,
        cluster_class=wanted.cluster_class,
        source="zookeeper" if wanted.zookeeper else "kafka",
        zookeeper=wanted.zookeeper,
        kafka=wanted.kafka,
    )
    environment = Environment(name=wanted.name, spec=EnvironmentSpec(cluster=cluster), file="the command line")
    return Access(environment=environment, run="init", home=home_folder(), connections=from_environment)


def _registered(brokers: Mapping[int, Broker]) -> str:
    """Return addresses that the brokers registered in ZooKeeper, of listeners without TLS and login.

    A listener whose name is its protocol, or names clients, comes before one that may be for brokers alone.
    """
    found = []
    for broker in brokers.values():
        registered = zip(broker.endpoints, broker.protocols, strict=False)
        plain = [endpoint.partition("://") for endpoint, protocol in registered if protocol == PLAIN]
        plain.sort(key=lambda parts: (parts[0].upper() != PLAIN, "CLIENT" not in parts[0].upper()))
        found += [address for _, _, address in plain[:1]]
    if not found:
        raise UsageError(
            "no live broker has registered a listener without TLS and login: give --bootstrap-servers, or with "
            "--kafka-connection the id of a connection that has TLS or a login"
        )
    return ",".join(found[:BOOTSTRAP_BROKERS])


def _texts(found: FirstEnvironment) -> dict[str, str]:
    """Give the text of each file, by its path below the working folder; the environment is the first."""
    wanted = found.start
    topics, places = wanted.topics, _JOBS[wanted.forge]
    # In a filter of branches + and ! are signs, and a backslash makes them plain. Source: docs.github.com, "Workflow
    # syntax". A line of CODEOWNERS counts once its # is removed.
    branch = re.sub(r"[+!]", r"\\\g<0>", main_branch(Path()) or "main")
    values = {
        "TOPICS": topics,
        "OWNER": wanted.owner,
        "ENVIRONMENT": wanted.name,
        "VERSION": __version__,
        "REPOSITORY": REPOSITORY,
        "BRANCH": scalar(branch, inside=True),
        "JOBS_LINES": "\n".join(f"# {place:<22} @your-organisation/{wanted.owner}" for place in places),
    }
    templates = {
        f"{topics}/README.md": "topics.md",
        ".gitignore": "gitignore",
        ".pre-commit-config.yaml": "pre-commit-config.yaml",
        **_FORGE_FILES[wanted.forge],
    }
    return {
        f"{topics}/environments/{wanted.name}.yaml": environment_text(found),
        **{name: filled(packaged(FIRST_FILES + file), values) for name, file in templates.items()},
        ".vscode/settings.json": editor_settings(topics),
        **{
            f"{schemas_folder(topics)}/{kind}.v1.json": packaged(f"made_schemas/{kind}.v1.json")
            for kind in SCHEMA_KINDS
        },
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


def _described(wanted: Start) -> tuple[int, int] | None:
    """Count the topics that the files ask for, and those that the cluster lacks; None means that they have errors."""
    desired = validate(read_tree(Path(wanted.topics)), environment=wanted.name, now=datetime.now(UTC)).desired
    if desired is None:
        return None
    names = [name for name, topic in desired.topics.items() if topic.lifecycle is Lifecycle.PRESENT]
    if not names:
        return 0, 0
    with _access(wanted).reader() as reader:
        traces = reader.traces(names)
    return len(names), sum(traces[name].live is None for name in names)


def _next_lines(found: FirstEnvironment, described: tuple[int, int] | None) -> Iterator[str]:
    """Yield what the first plan would do, then the commands from here to the first own topic, each with a remark."""
    name, owner, topics = found.start.name, found.start.owner, found.start.topics
    first_plan = "no changes yet"
    if described is None:
        first_plan = "once the topic files have no errors"
        yield from ("", f"The topic files have errors, so what they ask of {name} is not known: topicops validate")
    elif missing := described[1]:
        first_plan = f"would create {plural(missing, 'topic')}"
        verb, them = ("is", "it") if missing == 1 else ("are", "them")
        yield from (
            "",
            f"{missing} of {plural(described[0], 'described topic')} {verb} not in this cluster: the first plan would "
            f"create {them}.",
            f"To keep a topic out of {name}, write metadata.environments with the other environments into its file.",
        )
    below = "" if topics == "topics" else f" --topics {topics}"
    named = f"--environment {name}{below}"
    rows = [
        (f"topicops doctor {named}", "can the cluster be read, and is it healthy?"),
        (f"topicops import {named} --owner {owner}", "a file for each topic that is live now"),
        (f"topicops plan {named} --out plan.json", first_plan),
        (f"topicops new {found.first_topic} --owner {owner} --partitions 3{below}", "your first own topic"),
        (f"topicops plan {named} --out plan.json", "creates that one topic"),
        (f"topicops apply plan.json{below}", "sends it, and verifies it"),
    ]
    width = max(len(command) for command, _ in rows)
    yield from ("", "Next:", *(f"  {command:<{width}}  # {remark}" for command, remark in rows))
