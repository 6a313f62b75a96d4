"""From what a reader found to topic files, by the way of `topicops import`: as if all of it were live."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePosixPath

from topicops.features.files.authoring.drafts import ImportResult
from topicops.features.files.authoring.importable import Given, LeftOut, NotConverted, TopicOwners
from topicops.features.files.authoring.importing import import_inputs, write_import
from topicops.features.files.authoring.specs import LONGEST_OWNER, is_placeholder
from topicops.features.files.authoring.takeover.edges.texts import Value, read_files
from topicops.features.files.authoring.takeover.formats import FORMATS
from topicops.features.files.authoring.takeover.found import SourceTopic
from topicops.flow.runs.run import EnvironmentRun
from topicops.model.cluster.snapshot import Broker, ClusterSnapshot, LiveTopic
from topicops.model.codes import Code
from topicops.model.errors import UsageError
from topicops.model.printable import printable
from topicops.model.release import ONE_MESSAGE_FORMAT, Release
from topicops.model.specs.broker_settings import MESSAGE_FORMAT
from topicops.model.specs.config_checks import config_problem
from topicops.model.specs.environment import Environment
from topicops.model.specs.topic_config import THROTTLE_LISTS, TopicConfig, canonical, config_of, configs_of
from topicops.steps.specs.rules.names import folded

_LONGEST_DESCRIPTION = 2000
_LONGEST_NUMBER = 40
_MOST = 2**31 - 1
_LABEL = re.compile(r"[A-Za-z0-9._-]{1,63}")
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_OWNER_LABELS = ("owner", "team")


@dataclass(kw_only=True)
class _Taken:
    topics: dict[str, SourceTopic] = field(default_factory=dict)
    live: dict[str, LiveTopic] = field(default_factory=dict)
    given: dict[str, Given] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    not_converted: list[NotConverted] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    format_name: str
    """One of ``FORMATS``."""
    path: Path | None
    cluster: str | None
    owner_from: str | None
    """``label:KEY``, ``folder``, ``project`` or None."""

    def require_sound(self) -> Path:
        """Return the path. Raises ``UsageError``."""
        if self.format_name not in FORMATS:
            known = ", ".join(FORMATS)
            raise UsageError(f"--from {self.format_name!r} is not known; there are: {known}")
        if self.path is None or not self.path.exists():
            named = "name the file or folder" if self.path is None else f"{self.path}: there is no such file or folder"
            raise UsageError(f"{named}, as in: topicops import --from {self.format_name} PATH")
        is_known = self.owner_from in (None, "folder", "project") or str(self.owner_from).startswith("label:")
        if not is_known:
            raise UsageError(f"--owner-from {self.owner_from!r}: write label:KEY, folder or project")
        return self.path


def take_over(
    run: EnvironmentRun, owners: TopicOwners, source: Source, *, domain: str | None, only: str | None
) -> ImportResult:
    """Write files for the topics of another tool. Raises ``UsageError`` for a file that is not read, or no topic."""
    path = source.require_sound()
    reader = FORMATS[source.format_name]
    taken = _Taken()

    def as_if_live(environment: Environment) -> ClusterSnapshot:
        for found in reader.read(read_files(path, reader.suffixes), source.cluster):
            match found:
                case NotConverted():
                    taken.not_converted.append(found)
                case LeftOut():
                    taken.left_out.append(found)
                case SourceTopic():
                    _take(found, taken, environment, source.owner_from)
        if not taken.live and not taken.left_out:
            raise UsageError(f"{path}: no topic of the form {source.format_name} was found there")
        return _snapshot(taken.live)

    inputs = import_inputs(run, owners, as_if_live, domain=domain, only=only)
    result = write_import(replace(inputs, given=taken.given))
    protected = (LeftOut(name, Code.RESERVED_NAME, "Kafka or another system owns it") for name in result.protected)
    placed = [
        replace(entry, file=taken.topics[entry.topic].file, line=taken.topics[entry.topic].line)
        for entry in (*result.left_out, *protected)
    ]
    return replace(
        result,
        left_out=tuple(sorted((*taken.left_out, *placed), key=lambda entry: entry.topic)),
        protected=(),
        missing=(),
        not_converted=tuple(taken.not_converted),
    )


def _take(topic: SourceTopic, taken: _Taken, environment: Environment, owner_from: str | None) -> None:
    try:
        live, given, notes = _converted(topic, environment, owner_from)
        _require_new_name(topic, taken, live)
    except _NoSpecError as error:
        taken.left_out.append(LeftOut(topic.name, error.code, str(error), topic.file, topic.line))
        if error.code is Code.DEFINED_TWICE:
            taken.live.pop(topic.name)
        return
    taken.topics[topic.name], taken.live[topic.name], taken.given[topic.name] = topic, live, given
    taken.not_converted += [NotConverted(topic.name, note, topic.file, topic.line) for note in notes]


class _NoSpecError(Exception):
    """The topic gets no file."""

    def __init__(self, code: Code | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def _require_new_name(topic: SourceTopic, taken: _Taken, live: LiveTopic) -> None:
    for name, other in taken.topics.items():
        place = f"{other.file}:{other.line}"
        if name == topic.name and name in taken.live and taken.live[name] != live:
            raise _NoSpecError(Code.DEFINED_TWICE, f"{place} and {topic.file}:{topic.line} have it with other values")
        if name != topic.name and folded(name) == folded(topic.name):
            raise _NoSpecError(Code.NAMES_COLLIDE, f"{name} in {place} is the same name to Kafka's metrics")
        if name != topic.name and name.lower() == topic.name.lower():
            raise _NoSpecError(Code.DIFFERS_BY_CASE, f"{name} in {place} differs by case only")


def _converted(
    topic: SourceTopic, environment: Environment, owner_from: str | None
) -> tuple[LiveTopic, Given, Sequence[str]]:
    """Return the topic as if it were live, what else its file says, and what was not converted."""
    notes: list[str] = []
    release, defaults = environment.spec.cluster.release, environment.spec.defaults
    set_name, set_values = topic.shared or ("", {})
    shared = dict(_configs(set_values, release, notes))
    overrides = {**shared, **dict(_configs(topic.configs, release, notes))}
    if topic.assignment:
        rows = {partition: tuple(row) for partition, row in enumerate(topic.assignment)}
    else:
        partitions = _number("partitions", topic.partitions, defaults.partitions, notes)
        replicas = tuple(range(_number("replicas", topic.factor, defaults.replication_factor, notes)))
        rows = dict.fromkeys(range(partitions), replicas)
    owner, labels = _owner_and_labels(topic, owner_from, notes)
    given = Given(
        owner=owner,
        description=_description(topic.description, notes),
        labels=labels,
        assignment=",".join(":".join(map(str, row)) for row in topic.assignment),
        profile=(set_name, {name: canonical(name, text) for name, text in shared.items()}) if shared else None,
    )
    return LiveTopic(name=topic.name, topic_id=None, assignment=rows, overrides=overrides), given, notes


def _number(what: str, written: Value, default: int | None, notes: list[str]) -> int:
    text = written.strip() if isinstance(written, str) else ""
    if text in ("", "-1"):
        if default is None:
            raise _NoSpecError(Code.MISSING_FIELD, f"it gives no {what}, and neither do the environment's defaults")
        notes.append(f"{what} {text or 'not given'}: the environment's default, {default}, is used")
        return default
    whole = _whole(text)
    if whole is None or not 0 < int(whole) <= _MOST:
        raise _NoSpecError(Code.OUT_OF_RANGE, f"{what} {printable(text[:40])} is no whole number from 1")
    return int(whole)


def _configs(written: Mapping[str, Value], release: Release, notes: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the configs as a broker of this release stores them."""
    for name, value in written.items():
        if value is None:
            continue
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        config = config_of(name)
        is_ignored = name == MESSAGE_FORMAT and release >= ONE_MESSAGE_FORMAT
        if config is None or name in THROTTLE_LISTS or is_ignored:
            why = "does nothing in this release" if is_ignored else "is no topic config that a file may set"
            notes.append(f"{printable(name)} {why}")
            continue
        text = _spelled(text.strip(), config)
        if problem := config_problem(name, text, release):
            code = Code.INVALID_CONFIG if name in configs_of(release) else Code.UNUSABLE_CONFIG
            raise _NoSpecError(code, f"{name} cannot be {printable(text[:40])!r}: {problem}")
        yield name, text


def _spelled(text: str, config: TopicConfig) -> str:
    """Return a text in the spelling that brokers take; one that has none stays."""
    if config.type == "BOOLEAN":
        return next((word[0] for word in (_TRUE, _FALSE) if text.lower() in word), text)
    return (_whole(text) or text) if config.is_whole_number else text


def _whole(text: str) -> str | None:
    """Return ``2700000000`` for ``2.7e+9``; None for what is no whole number of a usual size."""
    try:
        number = Decimal(text) if len(text) <= _LONGEST_NUMBER else Decimal("NaN")
    except InvalidOperation:
        return None
    is_whole = number.is_finite() and number.adjusted() < _LONGEST_NUMBER and number == number.to_integral_value()
    return str(int(number)) if is_whole else None


def _owner_and_labels(
    topic: SourceTopic, owner_from: str | None, notes: list[str]
) -> tuple[str | None, Mapping[str, str]]:
    """Return the first owner that the source gives; a label that gave it is no label any more."""
    labels = {key.replace("/", "."): str(value) for key, value in topic.labels.items() if value is not None}
    of_label = owner_from.removeprefix("label:").replace("/", ".") if owner_from else None
    places = {"folder": PurePosixPath(topic.file).parent.name, "project": topic.project}
    asked = places.get(owner_from or "") or labels.get(of_label or "")
    for found in (topic.owner, *(labels.get(key) for key in _OWNER_LABELS), asked):
        owner = found if isinstance(found, str) and not is_placeholder(found) else None
        if owner is not None:
            break
    kept: dict[str, str] = {}
    for key, value in labels.items():
        if key in (*_OWNER_LABELS, of_label) and value == owner:
            continue
        if not _LABEL.fullmatch(key) or len(value) > LONGEST_OWNER:
            notes.append(f"label {printable(key[:80])}: a key of at most 63 letters, digits, dots and dashes is needed")
            continue
        kept[key] = value
    return owner, kept


def _description(written: Value, notes: list[str]) -> str:
    text = written.rstrip() if isinstance(written, str) else ""
    if len(text) <= _LONGEST_DESCRIPTION:
        return text
    notes.append(f"description: cut at a word, since {_LONGEST_DESCRIPTION} characters fit")
    return text[: _LONGEST_DESCRIPTION - 1].rpartition(" ")[0] + "…"


def _snapshot(topics: Mapping[str, LiveTopic]) -> ClusterSnapshot:
    """Return a cluster that has these topics, with brokers for their replicas."""
    ids = {broker for topic in topics.values() for row in topic.assignment.values() for broker in row}
    return ClusterSnapshot(
        cluster_id="",
        chroot="",
        source="kafka",
        controller_id=None,
        controller_epoch=None,
        brokers={broker: Broker(id=broker, rack=None, endpoints=()) for broker in ids},
        topics=topics,
        deleting={},
    )
