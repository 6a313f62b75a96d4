"""Which live topics a spec can describe exactly, and why it cannot describe the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from topicops.features.files.authoring.profiles import Values
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.printable import plural
from topicops.model.release import Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.desired import Desired
from topicops.model.specs.document import Tree
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import (
    THROTTLE_LISTS,
    canonical,
    canonical_overrides,
    config_of,
    configs_of,
    vendor_config,
)
from topicops.steps.planning.blocking import config_edits
from topicops.steps.specs.layers import TopicSource
from topicops.steps.specs.rules.names import name_problem

CodedReason = tuple[Code | None, str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A live topic that gets no spec."""

    topic: str
    code: Code | None
    """Code of the reason; None means that no code fits."""
    reason: str
    file: str | None = None
    """File of another tool that describes it, and the line there; None: it is live."""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class NotConverted:
    """What the files of another tool say and topicops has no place for."""

    topic: str | None
    """Whose it is; None means that it belongs to no single topic."""
    message: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class InexpressibleOverride:
    """A live override that no spec may name. It stays, and each plan reports it as drift."""

    topic: str
    config: str
    code: Code
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOwners:
    patterns: tuple[tuple[str, str], ...] = ()
    """Glob patterns with their owners, as a file of owners has them."""
    otherwise: str | None = None

    def of(self, topic: str) -> str | None:
        """Give the owner by the first pattern that fits; None means nobody."""
        return next((owner for pattern, owner in self.patterns if fnmatchcase(topic, pattern)), self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What another tool's file says of a topic, and no cluster knows."""

    owner: str | None = None
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    assignment: str = ""
    """In Kafka's form: ``1:2,2:3``."""
    profile: tuple[str, Values] | None = None
    """A set of configs that has a name there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportInputs:
    """Valid existing files, the live cluster, and the options of the command line."""

    topics: Path
    tree: Tree
    environment: Environment
    desired: Desired
    live: ClusterSnapshot
    exceptions_text: str | None
    """The environment's file of exceptions; None means that there is none."""
    now: datetime
    owners: TopicOwners
    domain: str | None = None
    """Folder of every new topic file; None means the first dotted part of the topic's name."""
    only: str | None = None
    """Glob of topics to import; None means all."""
    given: Mapping[str, Given] = field(default_factory=dict)
    """By topic, what the cluster does not say."""

    def given_of(self, name: str) -> Given:
        return self.given.get(name) or Given()

    def owner_of(self, name: str) -> str | None:
        """Return who is responsible for a live topic of this name; None means that nobody is."""
        return self.given_of(name).owner or self.owners.of(name.removeprefix(self.prefix))

    @property
    def prefix(self) -> str:
        return self.environment.prefix

    @property
    def release(self) -> Release:
        return self.environment.spec.cluster.release


def expressible_configs(topic: LiveTopic, release: Release) -> dict[str, str]:
    """Return canonical values of the overrides that a spec may name where brokers are of this release."""
    return {
        name: canonical(name, text)
        for name, text in sorted(topic.overrides.items())
        if override_problem(name, text, release) is None
    }


def inexpressible_overrides(topic: LiveTopic, release: Release) -> list[InexpressibleOverride]:
    """Return the overrides that no spec may name where brokers are of this release, each with the reason.

    What is no override to ``canonical_overrides``, and so no drift, is none here.
    """
    names = sorted(topic.overrides.keys() & canonical_overrides(topic.overrides).keys())
    found = ((name, override_problem(name, topic.overrides[name], release)) for name in names)
    return [InexpressibleOverride(topic.name, name, *problem) for name, problem in found if problem is not None]


def override_problem(name: str, text: str, release: Release) -> tuple[Code, str] | None:
    """Return why no spec may have this override where brokers are of this release; None: one may."""
    if name in THROTTLE_LISTS:
        return Code.THROTTLE, f"{name} belongs to Kafka's reassignment tools"
    if config_of(name) is None:
        return Code.UNKNOWN_CONFIG, f"Kafka has no topic config {name}"
    if not (problem := config_problem(name, text, release)):
        return None
    if name not in configs_of(release) and vendor_config(name) is None:
        return Code.UNUSABLE_CONFIG, problem
    return Code.INVALID_CONFIG, f"{name} cannot be {text!r}: {problem}"


def reason_to_leave_out(topic: LiveTopic, inputs: ImportInputs, source: TopicSource | None) -> CodedReason | None:
    """Return why no spec can describe the topic, None if one can; ``source`` is the file of that name."""
    name = topic.name.removeprefix(inputs.prefix)
    if problem := name_problem(name):
        return problem
    if source is not None and not (source.shall_exist and source.state is None):
        return Code.DEFINED_TWICE, f"{source.file} has this name, and it is a tombstone or a pause"
    if source is None and inputs.owner_of(topic.name) is None:
        return None, "no pattern of the owners fits its name; add one, or give --owner for all such topics"
    if topic.name in inputs.live.deleting:
        return Code.BEING_DELETED, "it is marked for deletion"
    if topic.unstable:
        return Code.KEPT_CHANGING, "it kept changing while it was read; import it again later"
    return _malformed(topic) or _overrides_to_be_removed(topic, inputs)


def _malformed(topic: LiveTopic) -> CodedReason | None:
    factors = sorted(topic.replication_factors)
    if not topic.assignment:
        return Code.MALFORMED_PARTITIONS, "it has no partitions"
    if missing := set(range(topic.partitions)) - topic.assignment.keys():
        reason = (
            f"its partition ids have gaps: of {plural(topic.partitions, 'partition')} none has the id {min(missing)}"
        )
        return Code.MALFORMED_PARTITIONS, reason
    if len(factors) > 1:
        reason = f"its partitions have {' and '.join(map(str, factors))} replicas; a spec has one number"
        return Code.MIXED_REPLICATION_FACTOR, reason
    return (Code.MALFORMED_PARTITIONS, "its partitions have no replicas") if factors == [0] else None


def _overrides_to_be_removed(topic: LiveTopic, inputs: ImportInputs) -> CodedReason | None:
    """With ``unlistedConfigs: remove`` the next plan would remove the overrides that no spec may name."""
    edits = config_edits(expressible_configs(topic, inputs.release), topic.overrides, inputs.environment.spec.policy)
    problems = inexpressible_overrides(topic, inputs.release)
    first = next((problem for problem in problems if problem.config in edits.after), None)
    return None if first is None else (first.code, f"{first.reason}, and policy.unlistedConfigs would remove it")
