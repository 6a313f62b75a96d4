"""Which live topics a spec can say as they are, and why the others not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic
from topicops.model.specs.desired import Desired
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import THROTTLE_LISTS, TOPIC_CONFIGS, ConfigValueError, canonical
from topicops.steps.planning.config_edits import config_edits
from topicops.steps.specs.rules.names import name_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A live topic that gets no spec."""

    topic: str
    code: str
    """Empty where no code says it."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsayableOverride:
    """A live override that stays and that no spec may name; the plan goes on to report it as drift."""

    topic: str
    config: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What decides whether a live topic can be described."""

    environment: Environment
    desired: Desired
    live: ClusterSnapshot
    files_by_topic: Mapping[str, str]
    """Every topic file of every environment, by the name that it describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Every live topic that was asked for, in exactly one of four."""

    adoptable: tuple[LiveTopic, ...]
    described: tuple[str, ...]
    """A spec of this environment names them already."""
    protected: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def sort_topics(around: Surroundings, *, only: str | None = None) -> Sorted:
    """Each in order of names.

    Args:
        only: A glob; topics that do not match it are in none of the four.
    """
    names = [name for name in sorted(around.live.topics) if only is None or fnmatchcase(name, only)]
    described = tuple(name for name in names if name in around.desired.topics)
    rest = [name for name in names if name not in around.desired.topics]
    protected = tuple(name for name in rest if around.environment.protecting_pattern(name))
    judged = {name: _first_trouble(around.live.topics[name], around) for name in rest if name not in protected}
    return Sorted(
        adoptable=tuple(around.live.topics[name] for name, trouble in judged.items() if trouble is None),
        described=described,
        protected=protected,
        left_out=tuple(trouble for trouble in judged.values() if trouble is not None),
    )


def sayable_configs(topic: LiveTopic) -> dict[str, str]:
    """Canonical values of the overrides that a spec may name."""
    return {
        name: canonical(name, text)
        for name, text in sorted(topic.overrides.items())
        if _override_trouble(name, text) is None
    }


def unsayable_overrides(topic: LiveTopic) -> tuple[UnsayableOverride, ...]:
    found = ((name, _override_trouble(name, text)) for name, text in sorted(topic.overrides.items()))
    return tuple(
        UnsayableOverride(topic=topic.name, config=name, code=trouble[0], reason=trouble[1])
        for name, trouble in found
        if trouble is not None
    )


def _override_trouble(name: str, text: str) -> tuple[str, str] | None:
    if name in THROTTLE_LISTS:
        return "TOP313", f"{name} belongs to Kafka's reassignment tools"
    if name not in TOPIC_CONFIGS:
        return "TOP305", f"Kafka has no topic config {name}"
    try:
        canonical(name, text)
    except ConfigValueError as error:
        return "TOP306", f"{name} cannot be {text!r}: {error}"
    return None


# ---- why a topic cannot be described ----

Trouble = tuple[str, str]
"""Code and reason."""
Rule = Callable[[LiveTopic, Surroundings], Trouble | None]


def _first_trouble(topic: LiveTopic, around: Surroundings) -> LeftOut | None:
    for rule in RULES:
        found = rule(topic, around)
        if found is not None:
            return LeftOut(topic=topic.name, code=found[0], reason=found[1])
    return None


def _illegal_name(topic: LiveTopic, _: Surroundings) -> Trouble | None:
    return name_problem(topic.name)


def _file_of_another_environment(topic: LiveTopic, around: Surroundings) -> Trouble | None:
    file = around.files_by_topic.get(topic.name)
    if file is None:
        return None
    return "TOP301", f"{file} describes this name, not for {around.environment.name}; add it to its environments"


def _being_deleted(topic: LiveTopic, around: Surroundings) -> Trouble | None:
    return ("TOP418", "it is marked for deletion") if topic.name in around.live.deleting else None


def _unstable(topic: LiveTopic, _: Surroundings) -> Trouble | None:
    return ("TOP421", "it kept changing while it was read; import again when it rests") if topic.unstable else None


def _no_partitions(topic: LiveTopic, _: Surroundings) -> Trouble | None:
    return None if topic.assignment else ("", "it has no partitions")


def _gaps(topic: LiveTopic, _: Surroundings) -> Trouble | None:
    if sorted(topic.assignment) == list(range(topic.partitions)):
        return None
    missing = min(set(range(topic.partitions)) - topic.assignment.keys())
    return "TOP426", f"its partition ids have gaps: of {topic.partitions} partitions none has the id {missing}"


def _mixed_replication(topic: LiveTopic, _: Surroundings) -> Trouble | None:
    found = sorted(topic.replication_factors)
    if len(found) > 1:
        return "TOP423", f"its partitions have {' and '.join(map(str, found))} replicas; a spec says one number"
    return ("", "its partitions have no replicas") if found == [0] else None


def _overrides_that_would_go(topic: LiveTopic, around: Surroundings) -> Trouble | None:
    """With ``unlistedConfigs: remove`` the next plan would take away what no spec may name."""
    edits = config_edits(sayable_configs(topic), topic.overrides, around.environment.spec.policy)
    first = next((trouble for trouble in unsayable_overrides(topic) if trouble.config in edits.after), None)
    if first is None:
        return None
    return first.code, f"{first.reason}, and policy.unlistedConfigs would remove it"


RULES: tuple[Rule, ...] = (
    _illegal_name,
    _file_of_another_environment,
    _being_deleted,
    _unstable,
    _no_partitions,
    _gaps,
    _mixed_replication,
    _overrides_that_would_go,
)
"""The first that finds something gives the reason."""
