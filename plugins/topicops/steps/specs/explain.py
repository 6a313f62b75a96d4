"""Where each value of a topic comes from: the layer that gives it, and the lower layers that it overrides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from topicops.model.errors import UsageError
from topicops.model.release import Release
from topicops.model.specs.config_checks import later_problem
from topicops.model.specs.diagnostics import Location
from topicops.model.specs.document import Fields, Items, Node, Text, Tree
from topicops.model.specs.files import TopicSpec
from topicops.model.specs.spellings import human_unit
from topicops.model.specs.topic_config import TOPIC_CONFIGS, canonical_written
from topicops.steps.specs.fields import Section, Value
from topicops.steps.specs.layers import EnvironmentView, MergedTopic, TopicSource
from topicops.steps.specs.suggestions import similar_word
from topicops.steps.specs.validate import view_of

_LAYERED = ("partitions", "replicationFactor")
_ONLY_IN_THE_TOPIC = ("keyed", "placement", "rackAware")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value, as one layer gives it."""

    layer: str
    """``environment defaults``, ``profile durable``, ``topic``, ``assignment``, ``built in`` and so on."""
    written: str
    """As it stands in the file."""
    location: Location | None
    """None: it is a default of the model, and in no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One value of the topic after merging."""

    name: str
    """``partitions``, ``configs.retention.ms``, ``labels.tier``."""
    value: str | None
    """Canonical; None: no override may be live."""
    human: str | None
    """``7d`` for 604800000; None where no larger unit fits."""
    later: str | None
    """Why brokers of a later release refuse the value: ``Kafka 4.1 takes 1048576 or more``; None: none does."""
    given: Given
    overrode: tuple[Given, ...]
    """The values of lower layers, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    topic: str
    environment: str
    state: str
    """``present``, ``absent`` or ``paused``."""
    location: Location
    release: Release
    """By whose rules configs are checked."""
    release_location: Location | None
    """Of ``cluster.kafkaVersion``; None: it is not written."""
    values: tuple[Explained, ...]


def explain(tree: Tree, topic: str, environment: str, *, now: datetime) -> Explanation:
    """All values of ``topic`` in ``environment``; the files are valid.

    Raises:
        UsageError: there is no such topic, or it is not for this environment.
    """
    source, view = _source_of(tree, topic, environment, now)
    merged = next(iter(view.merged), None)
    parts = [_metadata(source), _lifecycle(source)]
    if merged is not None:
        parts += [_settings(merged, view), _configs(merged, view)]
    cluster = view.environment_spec.section("cluster")
    return Explanation(
        topic=topic,
        environment=environment,
        state=source.state or "present",
        location=source.metadata.location("name"),
        release=view.release,
        release_location=cluster.location("kafkaVersion") if "kafkaVersion" in cluster else None,
        values=tuple(chain.from_iterable(parts)),
    )


def _source_of(tree: Tree, topic: str, environment: str, now: datetime) -> tuple[TopicSource, EnvironmentView]:
    """The topic's file, and a view without any other topic."""
    names = [document.stem for document in tree.documents if document.kind == "Topic"]
    if topic not in names:
        close = similar_word(topic, names)
        raise UsageError(f"no topic is called {topic!r}" + (f"; did you mean {close}?" if close else ""))
    documents = tuple(d for d in tree.documents if d.kind != "Topic" or d.stem == topic)
    view = view_of(Tree(documents=documents, files=len(documents)), environment, now)
    (source,) = view.topics
    if not source.is_for(environment):
        place = source.metadata.location("environments")
        raise UsageError(f"{topic} is not for {environment}: metadata.environments, {place}")
    return source, view


# ---- the parts ----


def _metadata(source: TopicSource) -> Iterator[Explained]:
    for name, value in source.metadata.values.items():
        if name == "labels":
            yield from _below(source.metadata.section(name), "labels")
        elif name != "name":
            yield _explained(name, [_given("topic", source.metadata, value, name)])


def _lifecycle(source: TopicSource) -> Iterator[Explained]:
    yield from _below(source.body.section("lifecycle"), "lifecycle")


def _below(section: Section, prefix: str) -> Iterator[Explained]:
    for name, value in section.values.items():
        if isinstance(value.value, Section):
            yield from _below(value.value, f"{prefix}.{name}")
        else:
            yield _explained(f"{prefix}.{name}", [_given("topic", section, value, name)])


def _settings(topic: MergedTopic, view: EnvironmentView) -> Iterator[Explained]:
    layers = _layers(topic, view)
    spec = topic.source.spec
    for name in ("profile", "assignment"):
        if name in spec:
            yield _explained(name, [_given("topic", spec, spec.values[name], name)])
    by_hand = spec.values.get("assignment")
    for name in _LAYERED:
        given = [_given(label, layer, layer.values[name], name) for label, layer in layers if name in layer]
        if by_hand is not None:
            place = spec.location("assignment")
            given.append(Given(layer="assignment", written=str(topic.number(name)), location=place))
        yield _explained(name, given)
    built_in = {info.alias or name: _written(info.default) for name, info in TopicSpec.model_fields.items()}
    for name in _ONLY_IN_THE_TOPIC:
        given = [Given(layer="built in", written=built_in[name], location=None)]
        if name in spec:
            given = [_given("topic", spec, spec.values[name], name)]
        yield _explained(name, given)


def _configs(topic: MergedTopic, view: EnvironmentView) -> Iterator[Explained]:
    layers = [(label, layer.section("configs")) for label, layer in _layers(topic, view)]
    for name in sorted(topic.configs):
        given = [_given(label, layer, layer.values[name], name) for label, layer in layers if name in layer]
        written = given[-1].written if topic.configs[name].value is not None else None
        yield _explained_config(name, written, given, view.release)


def _layers(topic: MergedTopic, view: EnvironmentView) -> list[tuple[str, Section]]:
    """By rank, the lowest first."""
    environment, spec = view.environment_spec, topic.source.spec
    name = spec.get("profile", str) or ""
    profile = view.profiles.get(name)
    return [
        ("environment defaults", environment.section("defaults")),
        (f"profile {name}", profile.spec if profile else Section(topic.source.file)),
        ("topic", spec),
        ("environment override", environment.section("overrides").section(topic.label)),
    ]


# ---- one value ----


def _explained(name: str, given: Sequence[Given]) -> Explained:
    *lower, last = given
    return Explained(name=name, value=last.written, human=None, later=None, given=last, overrode=tuple(reversed(lower)))


def _explained_config(name: str, written: str | None, given: Sequence[Given], release: Release) -> Explained:
    value = canonical_written(name, written) if written is not None else None
    human = human_unit(TOPIC_CONFIGS[name], value) if value is not None else None
    later = later_problem(name, value, release) if value is not None else ""
    *lower, last = given
    return Explained(
        name=f"configs.{name}",
        value=value,
        human=human,
        later=later or None,
        given=last,
        overrode=tuple(reversed(lower)),
    )


def _given(layer: str, section: Section, value: Value, name: str) -> Given:
    return Given(layer=layer, written=_written(value.value), location=section.location(name))


def _written(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case tuple():
            return f"[{', '.join(_written(item.value) for item in value if isinstance(item, Value))}]"
        case Text() | Items() | Fields():
            return _as_flow(value)
        case _:
            return str(value)


def _as_flow(node: Node) -> str:
    match node:
        case Text():
            return node.text
        case Items():
            return f"[{', '.join(_as_flow(item) for item in node.items)}]"
        case Fields():
            return f"{{{', '.join(f'{key.text}: {_as_flow(value)}' for key, value in node.entries)}}}"
