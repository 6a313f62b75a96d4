"""Which live topics a spec can describe exactly, and why it cannot describe the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from topicops.features.authoring.owners import TopicOwners
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.release import Release
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS, canonical, canonical_overrides, configs_of
from topicops.steps.planning.blocking import config_edits
from topicops.steps.specs.rules.names import name_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A live topic that gets no spec."""

    topic: str
    code: Code | None
    """Code of the reason; None means that no code fits."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InexpressibleOverride:
    """A live override that no spec may name. It stays, and each plan reports it as drift."""

    topic: str
    config: str
    code: Code
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportContext:
    """What the rules need beside the live topic."""

    environment: Environment
    desired: Desired
    live: ClusterSnapshot
    files_by_topic: Mapping[str, str]
    """Every topic file of every environment, by the topic that it describes."""
    owners: TopicOwners


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedTopics:
    """Every live topic that matches ``only``, in exactly one of four groups; each is sorted by name."""

    importable: tuple[LiveTopic, ...]
    described: tuple[str, ...]
    """A spec of this environment describes them already."""
    protected: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def sort_topics(context: ImportContext, *, only: str | None = None) -> SortedTopics:
    """Put each live topic into one of the four groups.

    Args:
        only: A glob; topics that do not match it are in no group.
    """
    importable, described, protected, left_out = [], [], [], []
    for name, topic in sorted(context.live.topics.items()):
        if only is not None and not fnmatchcase(name, only):
            continue
        if name in context.desired.topics:
            described.append(name)
        elif context.environment.protecting_pattern(name):
            protected.append(name)
        elif (reason := _left_out(topic, context)) is not None:
            left_out.append(reason)
        else:
            importable.append(topic)
    return SortedTopics(
        importable=tuple(importable),
        described=tuple(described),
        protected=tuple(protected),
        left_out=tuple(left_out),
    )


def expressible_configs(topic: LiveTopic, release: Release) -> dict[str, str]:
    """Canonical values of the overrides that a spec may name where brokers are of this release."""
    return {
        name: canonical(name, text)
        for name, text in sorted(topic.overrides.items())
        if _override_problem(name, text, release) is None
    }


def inexpressible_overrides(topic: LiveTopic, release: Release) -> tuple[InexpressibleOverride, ...]:
    """The overrides that no spec may name where brokers are of this release, each with the reason.

    What is no override to ``canonical_overrides``, and so no drift, is none here.
    """
    names = sorted(topic.overrides.keys() & canonical_overrides(topic.overrides).keys())
    found = ((name, _override_problem(name, topic.overrides[name], release)) for name in names)
    return tuple(
        InexpressibleOverride(topic=topic.name, config=name, code=problem[0], reason=problem[1])
        for name, problem in found
        if problem is not None
    )


def _override_problem(name: str, text: str, release: Release) -> tuple[Code, str] | None:
    if name in THROTTLE_LISTS:
        return Code.THROTTLE, f"{name} belongs to Kafka's reassignment tools"
    if name not in TOPIC_CONFIGS:
        return Code.UNKNOWN_CONFIG, f"Kafka has no topic config {name}"
    problem = config_problem(name, text, release)
    if not problem:
        return None
    return (
        (Code.INVALID_CONFIG, f"{name} cannot be {text!r}: {problem}")
        if name in configs_of(release)
        else (Code.UNUSABLE_CONFIG, problem)
    )


# ---- rules ----

CodedReason = tuple[Code | None, str]
"""Code and reason."""
Rule = Callable[[LiveTopic, ImportContext], CodedReason | None]


def _left_out(topic: LiveTopic, context: ImportContext) -> LeftOut | None:
    for rule in RULES:
        found = rule(topic, context)
        if found is not None:
            return LeftOut(topic=topic.name, code=found[0], reason=found[1])
    return None


def _illegal_name(topic: LiveTopic, _: ImportContext) -> CodedReason | None:
    return name_problem(topic.name)


def _file_of_another_environment(topic: LiveTopic, context: ImportContext) -> CodedReason | None:
    file = context.files_by_topic.get(topic.name)
    if file is None:
        return None
    name = context.environment.name
    return Code.DEFINED_TWICE, f"{file} describes this name, but not for {name}; add that to its environments"


def _no_owner(topic: LiveTopic, context: ImportContext) -> CodedReason | None:
    if context.owners.of(topic.name) is not None:
        return None
    return None, "no pattern of the owners fits its name; add one, or give --owner for all such topics"


def _being_deleted(topic: LiveTopic, context: ImportContext) -> CodedReason | None:
    return (Code.BEING_DELETED, "it is marked for deletion") if topic.name in context.live.deleting else None


def _unstable(topic: LiveTopic, _: ImportContext) -> CodedReason | None:
    return (Code.KEPT_CHANGING, "it kept changing while it was read; import it again later") if topic.unstable else None


def _no_partitions(topic: LiveTopic, _: ImportContext) -> CodedReason | None:
    return None if topic.assignment else (Code.MALFORMED_PARTITIONS, "it has no partitions")


def _gaps(topic: LiveTopic, _: ImportContext) -> CodedReason | None:
    if sorted(topic.assignment) == list(range(topic.partitions)):
        return None
    missing = min(set(range(topic.partitions)) - topic.assignment.keys())
    reason = f"its partition ids have gaps: of {topic.partitions} partitions none has the id {missing}"
    return Code.MALFORMED_PARTITIONS, reason


def _mixed_replication(topic: LiveTopic, _: ImportContext) -> CodedReason | None:
    found = sorted(topic.replication_factors)
    if len(found) > 1:
        reason = f"its partitions have {' and '.join(map(str, found))} replicas; a spec has one number"
        return Code.MIXED_REPLICATION_FACTOR, reason
    return (Code.MALFORMED_PARTITIONS, "its partitions have no replicas") if found == [0] else None


def _overrides_to_be_removed(topic: LiveTopic, context: ImportContext) -> CodedReason | None:
    """With ``unlistedConfigs: remove`` the next plan would remove the overrides that no spec may name."""
    release, policy = context.environment.spec.cluster.release, context.environment.spec.policy
    edits = config_edits(expressible_configs(topic, release), topic.overrides, policy)
    problems = inexpressible_overrides(topic, release)
    first = next((problem for problem in problems if problem.config in edits.after), None)
    if first is None:
        return None
    return first.code, f"{first.reason}, and policy.unlistedConfigs would remove it"


RULES: tuple[Rule, ...] = (
    _illegal_name,
    _file_of_another_environment,
    _no_owner,
    _being_deleted,
    _unstable,
    _no_partitions,
    _gaps,
    _mixed_replication,
    _overrides_to_be_removed,
)
"""The first rule with a finding gives the reason."""
