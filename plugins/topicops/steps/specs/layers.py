"""The files of one environment laid over each other; later wins.

The layers: defaults, profile, topic, the topic's override for this environment, the environment's override.

Only configs merge by key. Each value keeps the place where it was written, so that a rule can point there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import msgspec

from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.release import Release
from topicops.model.specs.config_checks import value_problem
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.document import Document, Node, Span
from topicops.model.specs.environment import BUILT_IN_PROTECTED_TOPICS, Cluster
from topicops.model.specs.files import TopicSpec
from topicops.model.specs.topic_config import ConfigTable, ConfigValueError, canonical_written, configs_of
from topicops.steps.specs.fields import Section, Value, read_assignment
from topicops.steps.specs.findings import UNREADABLE, Finding, Unreadable, note_at

TOPIC_DEFAULTS = TopicSpec()
CLUSTER_DEFAULTS = Cluster(cluster_class="sandbox")
"""Read only fields that have a default in the model."""


class ReadFile:
    """A file after its fields were read; values that every rule needs are looked up once."""

    __slots__ = ("body", "document", "file", "metadata", "name", "spec")

    def __init__(self, document: Document, body: Section) -> None:
        self.document = document
        self.body = body
        self.file = document.file
        self.metadata = body.section("metadata")
        self.spec = body.section("spec")
        self.name = self.metadata.get("name", str)


class TopicSource(ReadFile):
    """A topic's own file."""

    __slots__ = (
        "_layers",
        "environments",
        "keyed",
        "label",
        "lifecycle",
        "overrides",
        "profile",
        "shall_exist",
        "state",
    )

    def __init__(self, document: Document, body: Section) -> None:
        super().__init__(document, body)
        self.label = self.name or document.stem
        """The name, or the file's where the name cannot be read."""
        self.environments = self.metadata.texts_or_none("environments")
        """Environments; None means all."""
        self.lifecycle = body.section("lifecycle")
        self.state = self.lifecycle.get("state", str)
        """``absent``, ``paused``, or None for a topic that simply is."""
        has_spec = body.get("spec", Section) is not None
        self.shall_exist = self.state != "absent" and not body.is_unreadable("lifecycle") and has_spec
        self.profile = self.spec.get("profile", str)
        self.keyed = self.spec.get_or("keyed", TOPIC_DEFAULTS.keyed)
        self.overrides = self.spec.section("overrides")
        """By environment, what it has in another way."""
        self._layers: dict[Release, Layer] = {}

    def layer(self, release: Release) -> Layer:
        """Return what the topic gives to all environments of one release."""
        found = self._layers.get(release)
        if found is None:
            found = self._layers[release] = layer_of(self.spec, release)
        return found

    def is_for(self, environment: str | None) -> bool:
        return environment is None or self.environments is None or environment in self.environments

    def shares_environment(self, other: TopicSource) -> bool:
        if self.environments is None or other.environments is None:
            return True
        return not set(self.environments).isdisjoint(other.environments)


class Setting(msgspec.Struct, frozen=True, gc=False):
    """One merged value and where it was written."""

    value: object
    """int, canonical text, None (a config that shall have no override), or ``UNREADABLE``."""
    file: str
    span: Span
    key: Span

    @property
    def number(self) -> int | None:
        return self.value if isinstance(self.value, int) else None

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None

    @property
    def location(self) -> Location:
        return Location(self.file, self.span.line, self.span.column)

    def finding(
        self, code: Code, summary: str, remedy: str = "", *, topic: str, against: Setting | None = None, why: str = ""
    ) -> Finding:
        """Report a problem of this value; ``against`` is the value that it does not fit, and ``why`` describes that."""
        note = note_at(against.file, against.span, why) if against else None
        return Finding(code, self.file, self.span, summary, remedy, topic, note=note)


class Layer(msgspec.Struct, frozen=True, gc=False):
    """Numbers and configs of a topic from one of their places, or from several laid over each other."""

    settings: Mapping[str, Setting]
    configs: Mapping[str, Setting]
    complete: bool

    def under(self, above: Layer) -> Layer:
        settings, configs = {**self.settings, **above.settings}, {**self.configs, **above.configs}
        return Layer(settings, configs, self.complete and above.complete)


def layer_of(spec: Section, release: Release, *, complete: bool = True) -> Layer:
    """Return what ``spec`` itself gives; a value that brokers of this release refuse is unreadable."""
    file, values = spec.file, spec.values
    configs = spec.section("configs")
    return Layer(
        {name: Setting(v.value, file, v.span, v.key) for name in NUMBERS if (v := values.get(name)) is not None},
        {
            name: Setting(_canonical_or_unreadable(name, value.value, release), configs.file, value.span, value.key)
            for name, value in configs.values.items()
        },
        complete and not spec.is_unreadable("configs"),
    )


NUMBERS = ("partitions", "replicationFactor")


class MergedTopic(msgspec.Struct, frozen=True, gc=False):
    """A topic of one environment that shall exist, all layers merged."""

    source: TopicSource
    settings: Mapping[str, Setting]
    """``partitions`` and ``replicationFactor``, where a layer gives them."""
    configs: Mapping[str, Setting]
    assignment: Assignment | None = None
    complete: bool = True
    """Whether every layer could be read; else a missing value may be in the unread one."""

    @property
    def label(self) -> str:
        return self.source.label

    def number(self, field_name: str) -> int | None:
        setting = self.settings.get(field_name)
        return setting.number if setting else None

    def config(self, name: str) -> str | None:
        """Return the canonical text of an override that shall be live and could be read."""
        setting = self.configs.get(name)
        return setting.text if setting else None

    def config_number(self, name: str) -> int | None:
        text = self.config(name)
        return int(text) if text is not None else None

    def conflict(
        self, name: str, code: Code, summary: str, remedy: str, *, against: str | Setting, why: str
    ) -> Finding:
        """Return a config that does not go with another one, or another setting; ``why`` says what that is."""
        other = self.configs[against] if isinstance(against, str) else against
        return self.configs[name].finding(code, summary, remedy, topic=self.label, against=other, why=why)

    @property
    def policies(self) -> frozenset[str] | None:
        """The words of ``cleanup.policy``; None where no layer gives it."""
        text = self.config("cleanup.policy")
        return None if text is None else frozenset(text.split(","))


class ConfigsPlace(NamedTuple):
    """A ``configs`` block in a file."""

    section: Section
    topic: TopicSource | None
    """Topic of the block; None means that it is not in a topic's file."""

    @property
    def label(self) -> str | None:
        return self.topic.label if self.topic else None

    def is_used_in(self, environment: str | None) -> bool:
        return self.topic is None or self.topic.is_for(environment)


PlacesByConfig = Mapping[tuple[str, object], Sequence[ConfigsPlace]]
"""The places of each name and value; most pairs are in many files."""


def places_by_config(places: Iterable[ConfigsPlace]) -> PlacesByConfig:
    found: defaultdict[tuple[str, object], list[ConfigsPlace]] = defaultdict(list)
    for place in places:
        for name, value in place.section.values.items():
            found[name, value.value].append(place)
    return found


@dataclass(frozen=True, kw_only=True)
class EnvironmentView:
    """The input of the rules: every file, and the topics as one environment has them."""

    topics: tuple[TopicSource, ...]
    profiles: Mapping[str, ReadFile | None]
    """Profiles by name; None means that the file exists and cannot be read."""
    environment: ReadFile | None
    exceptions: ReadFile | None
    """The environment's file of exceptions."""
    now: datetime
    unread_topics: frozenset[str] = field(default_factory=frozenset)
    """Names of topic files that cannot be read."""
    environment_unreadable: bool = False
    environments: tuple[ReadFile, ...] = ()
    """The files of all environments and of their exceptions."""
    environment_names: frozenset[str] = field(default_factory=frozenset)
    """Names of environments, also of those with unreadable files."""
    owners: ReadFile | None = None
    """The file of owners; None means that there is none, or it cannot be read."""
    shared_configs: PlacesByConfig = field(default_factory=dict)
    """The configs in profiles and topics."""

    @cached_property
    def environment_name(self) -> str | None:
        return self.environment.document.stem if self.environment else None

    @property
    def here(self) -> Iterator[TopicSource]:
        """Topics of this environment, tombstones included."""
        return (topic for topic in self.topics if topic.is_for(self.environment_name))

    @cached_property
    def merged(self) -> tuple[MergedTopic, ...]:
        """Topics of this environment that shall exist; none where the environment cannot be read."""
        if self.environment_unreadable:
            return ()
        return tuple(self.merge(topic) for topic in self.here if topic.shall_exist)

    @cached_property
    def complete(self) -> tuple[MergedTopic, ...]:
        """Those of ``merged`` of which all layers could be read."""
        return tuple(topic for topic in self.merged if topic.complete)

    @cached_property
    def owner_entries(self) -> tuple[Section, ...]:
        """The entries of the file of owners."""
        items = self.owners.spec.items("owners") if self.owners else ()
        return tuple(item.value for item in items if isinstance(item.value, Section))

    def giving(self, config: str) -> Sequence[MergedTopic]:
        """Return those of ``complete`` for which a layer gives this config."""
        return self._complete_by_config.get(config, ())

    @cached_property
    def _complete_by_config(self) -> Mapping[str, Sequence[MergedTopic]]:
        found: defaultdict[str, list[MergedTopic]] = defaultdict(list)
        for topic in self.complete:
            for config in topic.configs:
                found[config].append(topic)
        return found

    @cached_property
    def environment_spec(self) -> Section:
        return self.environment.spec if self.environment else Section("")

    @cached_property
    def release(self) -> Release:
        """Of ``cluster.kafkaVersion``."""
        text = self.environment_spec.section("cluster").get_or("kafkaVersion", CLUSTER_DEFAULTS.kafka_version)
        return Release.parse(text) or CLUSTER_DEFAULTS.release

    @cached_property
    def topic_configs(self) -> ConfigTable:
        """The configs of the environment's Kafka release."""
        return configs_of(self.release)

    @cached_property
    def reads_zookeeper(self) -> bool:
        """Whether the brokers surely use ZooKeeper; with source kafka they may use ZooKeeper or KRaft."""
        cluster = self.environment_spec.section("cluster")
        source = cluster.get_or("source", CLUSTER_DEFAULTS.source)
        return source == "zookeeper" and not cluster.is_unreadable("source")

    @cached_property
    def prefix(self) -> str:
        """What this environment puts before the names of the files."""
        return self.environment_spec.section("cluster").section("topics").get("prefix", str) or ""

    @property
    def protected_patterns(self) -> tuple[str, ...]:
        return (*BUILT_IN_PROTECTED_TOPICS, *self.environment_spec.section("policy").texts("protectedTopics"))

    def written_configs(self) -> Iterator[tuple[str, object, Sequence[ConfigsPlace]]]:
        """Yield each name and value that stands below a ``configs``, once, with all its places, used here or not."""
        for configs in (self._environment_configs, self.shared_configs):
            for (name, value), places in configs.items():
                yield name, value, places

    @cached_property
    def _environment_configs(self) -> PlacesByConfig:
        defaults, overrides = self.environment_spec.section("defaults"), self.environment_spec.section("overrides")
        shared = (
            ConfigsPlace(s.section("configs"), None) for s in (defaults, *map(overrides.section, overrides.values))
        )
        own = (ConfigsPlace(s.section("configs"), topic) for topic in self.here if (s := self.override_of(topic)))
        return places_by_config(chain(shared, own))

    def override_of(self, topic: TopicSource) -> Section | None:
        """Return what the topic's own file gives to this environment alone."""
        return topic.overrides.get(self.environment_name or "", Section)

    def merge(self, topic: TopicSource) -> MergedTopic:
        """Return the topic as this environment has it, or would have it."""
        lower, upper = self._lower.get(topic.profile), self._upper.get(topic.label)
        is_known = lower is not None and (topic.profile is not None or "profile" not in topic.spec.values)
        merged = (lower or self._lower[None]).under(topic.layer(self.release))
        own = self.override_of(topic)
        if own is not None:
            merged = merged.under(layer_of(own, self.release))
        is_known &= not (
            topic.spec.is_unreadable("overrides") or topic.overrides.is_unreadable(self.environment_name or "")
        )
        if upper is not None:
            merged = merged.under(upper)
        assignment, settings = None, merged.settings
        if (written := assignment_in(topic, own)) is not None:
            assignment, sizes = _assigned(written, topic.file)
            settings = {**settings, **sizes}
        return MergedTopic(topic, settings, merged.configs, assignment, is_known and merged.complete)

    @cached_property
    def _lower(self) -> Mapping[str | None, Layer]:
        """What lies below a topic, by its profile; None means the defaults alone."""
        defaults = layer_of(self.environment_spec.section("defaults"), self.release)
        lower: dict[str | None, Layer] = {None: defaults}
        for name, profile in self.profiles.items():
            if profile is not None:
                complete = not profile.body.is_unreadable("spec")
                lower[name] = defaults.under(layer_of(profile.spec, self.release, complete=complete))
        return lower

    @cached_property
    def _upper(self) -> Mapping[str, Layer]:
        """What lies above a topic, by its name."""
        overrides = self.environment_spec.section("overrides")
        return {name: layer_of(overrides.section(name), self.release) for name in overrides.values}


@lru_cache(maxsize=4096)
def _canonical_or_unreadable(name: str, value: object, release: Release) -> str | Unreadable | None:
    if not isinstance(value, str):
        return None if value is None else UNREADABLE
    try:
        canonical = canonical_written(name, value)
    except ConfigValueError:
        return UNREADABLE
    return UNREADABLE if value_problem(name, canonical, release) else canonical


def assignment_in(topic: TopicSource, override: Section | None) -> Value | None:
    """Return the assignment where ``override`` is the topic's own for an environment."""
    own = override.values.get("assignment") if override is not None else None
    return own or topic.spec.values.get("assignment")


def _assigned(written: Value, file: str) -> tuple[Assignment | None, dict[str, Setting]]:
    """Return an assignment, if it can be read, and the numbers in it, which stand above every other layer."""
    assignment = read_assignment(written.value, file)[0] if isinstance(written.value, Node) else None
    sizes = (len(assignment), len(assignment[0])) if assignment else (UNREADABLE, UNREADABLE)
    return assignment, {
        n: Setting(size, file, written.span, written.key) for n, size in zip(NUMBERS, sizes, strict=True)
    }
