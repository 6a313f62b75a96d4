"""Where each value of a topic comes from: the layer that gives it, and the lower layers that it overrides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from topicops.edges.specs.reader import read_tree
from topicops.model.errors import UsageError
from topicops.model.json_types import FormatVersion
from topicops.model.printable import printable
from topicops.model.specs.config_checks import later_problem
from topicops.model.specs.document import Fields, Items, Text, Tree
from topicops.model.specs.files import TopicSpec, fields_of
from topicops.model.specs.spellings import human_unit
from topicops.model.specs.topic_config import canonical_written, config_of
from topicops.steps.specs.fields import Section, Value
from topicops.steps.specs.layers import EnvironmentView, MergedTopic, TopicSource
from topicops.steps.specs.suggestions import similar_word
from topicops.steps.specs.validate import validate, view_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value, as one layer gives it."""

    written: str
    """Text in the file."""
    layer: str
    """``environment defaults``, ``profile durable``, ``topic``, ``assignment``, ``built in`` and so on."""
    file: str | None = None
    """None, as line and column, means that no file gives the value: it is a default of the model."""
    line: int | None = None
    column: int | None = None

    @property
    def place(self) -> str:
        return f"{self.layer}, {self.file}:{self.line}" if self.file else self.layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Given):
    """One value of the topic after merging, and what gives it."""

    name: str
    """``partitions``, ``configs.retention.ms``, ``labels.tier``."""
    value: str | None
    """Canonical text; None means that no override may be live."""
    human: str | None = None
    """``7d`` for 604800000; None means that no larger unit fits."""
    later: str | None = None
    """Reason why brokers of a later release refuse it: ``Kafka 4.1 takes 1048576 or more``; None means that none do."""
    overrode: tuple[Given, ...]
    """Values of lower layers, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What ``explain`` prints."""

    format_version: FormatVersion = "1.0"
    topic: str
    environment: str
    state: str
    """``present``, ``absent`` or ``paused``."""
    file: str
    line: int
    kafka_version: str
    """Release by whose rules configs are checked."""
    kafka_version_place: str | None
    """Place of ``cluster.kafkaVersion``; None means that it is not written."""
    values: tuple[Explained, ...]


def explain(topics: Path, topic: str, environment: str) -> Explanation:
    """Find where each value of a topic comes from. Raises ``UsageError`` if the environment has no such topic."""
    tree, now = read_tree(topics), datetime.now(UTC)
    validate(tree, environment=environment, now=now).require()
    source, view = _source_of(tree, topic, environment, now)
    written = [each for each in _below(source.metadata) if each.name != "name"]
    written += _below(source.body.section("lifecycle"), "lifecycle.")
    merged = [each for one in view.merged for each in (*_settings(one, view), *_configs(one, view))]
    cluster, place = view.environment_spec.section("cluster"), source.metadata.location("name")
    return Explanation(
        topic=topic,
        environment=environment,
        state=source.state or "present",
        file=place.file,
        line=place.line,
        kafka_version=str(view.release),
        kafka_version_place=str(cluster.location("kafkaVersion")) if "kafkaVersion" in cluster else None,
        values=(*written, *merged),
    )


def _source_of(tree: Tree, topic: str, environment: str, now: datetime) -> tuple[TopicSource, EnvironmentView]:
    """Return the topic's file, and a view without any other topic."""
    names = [document.stem for document in tree.documents if document.kind == "Topic"]
    if topic not in names:  # a plan shows the name with the prefix
        prefix = view_of(Tree(documents=tree.documents, files=tree.files), environment, now).prefix
        topic = topic.removeprefix(prefix)
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


def _below(section: Section, prefix: str = "") -> Iterator[Explained]:
    for name, value in section.values.items():
        if isinstance(value.value, Section):
            yield from _below(value.value, f"{prefix}{name}.")
        else:
            yield _explained(f"{prefix}{name}", [_given("topic", section, name)])


def _settings(topic: MergedTopic, view: EnvironmentView) -> Iterator[Explained]:
    layers = _layers(topic, view)
    spec = topic.source.spec
    if "profile" in spec:
        yield _explained("profile", [_given("topic", spec, "profile")])
    assigned = [_given(label, layer, "assignment") for label, layer in layers if "assignment" in layer]
    if assigned:
        yield _explained("assignment", assigned)
    for name in ("partitions", "replicationFactor"):
        given = [_given(label, layer, name) for label, layer in layers if name in layer]
        if assigned:
            given.append(replace(assigned[-1], layer="assignment", written=str(topic.number(name))))
        yield _explained(name, given)
    built_in = {name: _written(field.default) for name, field in fields_of(TopicSpec).items()}
    for name in ("keyed", "placement", "rackAware"):  # no layer below the topic gives these
        built = Given(layer="built in", written=built_in[name])
        yield _explained(name, [_given("topic", spec, name) if name in spec else built])


def _configs(topic: MergedTopic, view: EnvironmentView) -> Iterator[Explained]:
    layers = [(label, layer.section("configs")) for label, layer in _layers(topic, view)]
    for name in sorted(topic.configs):
        given = [_given(label, layer, name) for label, layer in layers if name in layer]
        found = _explained(f"configs.{name}", given)
        if topic.configs[name].value is None:
            yield replace(found, value=None)
            continue
        value = canonical_written(name, found.written)
        config, later = config_of(name), later_problem(name, value, view.release) or None
        human = human_unit(config, value) if config else None
        yield replace(found, value=value, human=human, later=later)


def _layers(topic: MergedTopic, view: EnvironmentView) -> list[tuple[str, Section]]:
    """Return the layers by rank, the lowest first."""
    environment, spec = view.environment_spec, topic.source.spec
    name = spec.get("profile", str) or ""
    profile = view.profiles.get(name)
    return [
        ("environment defaults", environment.section("defaults")),
        (f"profile {name}", profile.spec if profile else Section(topic.source.file)),
        ("topic", spec),
        ("topic override", view.override_of(topic.source) or Section(topic.source.file)),
        ("environment override", environment.section("overrides").section(topic.label)),
    ]


def _explained(name: str, given: Sequence[Given]) -> Explained:
    *lower, last = given
    return Explained(**asdict(last), name=name, value=last.written, overrode=tuple(reversed(lower)))


def _given(layer: str, section: Section, name: str) -> Given:
    place, written = section.location(name), _written(section.values[name].value)
    return Given(layer=layer, written=written, file=place.file, line=place.line, column=place.column)


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
        case Text():
            return value.text
        case Items():
            return f"[{', '.join(map(_written, value.items))}]"
        case Fields():
            return f"{{{', '.join(f'{key.text}: {_written(below)}' for key, below in value.entries)}}}"
        case _:
            return str(value)


_WIDEST_VALUE = 60


def explain_text(explanation: Explanation) -> str:
    """Return one line for each value; indented below it, one for each value that it overrode."""
    place = f"{explanation.file}:{explanation.line}"
    head = [f"{explanation.topic} in {explanation.environment}, {explanation.state} ({place})"]
    if any(value.name.startswith("configs.") for value in explanation.values):
        place = explanation.kafka_version_place or "by default"
        head.append(f"  configs by the rules of Kafka {explanation.kafka_version} (cluster.kafkaVersion, {place})")
    rows: list[tuple[str, str, str]] = []
    for value in explanation.values:
        rows.append((printable(value.name), _value(value), printable(value.place)))
        rows += [("  instead of", _cut(given.written), printable(given.place)) for given in value.overrode]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {value:<{widths[1]}}  {place}" for name, value, place in rows]
    return "\n".join([*map(printable, head), *map(str.rstrip, lines)])


def _value(value: Explained) -> str:
    """Return ``2592000000 (30d)``; also the written form where it differs from both."""
    if value.value is None:
        return "no override (null)"
    written = "" if value.written in (value.value, value.human) else f"written {_cut(value.written)}"
    remarks = [remark for remark in (value.human, written, value.later) if remark]
    return _cut(value.value) + (f" ({', '.join(remarks)})" if remarks else "")


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST_VALUE else f"{shown[: _WIDEST_VALUE - 1]}…"
