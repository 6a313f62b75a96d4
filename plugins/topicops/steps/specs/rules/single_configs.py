"""Topic configs one by one, in every layer: known, usable on this cluster, and with a value that a broker takes."""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.codes import Code
from topicops.model.release import ONE_MESSAGE_FORMAT
from topicops.model.specs.config_checks import check_written, no_such_config
from topicops.model.specs.spellings import (
    config_name_of_broker_setting,
    exact_word,
    known_unit,
    plain_number,
)
from topicops.model.specs.topic_config import (
    THROTTLE_LISTS,
    TOPIC_CONFIGS,
    UNITS,
    AmbiguousNumberError,
    ConfigValueError,
    TopicConfig,
    Unit,
    UnknownUnitError,
)
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import ConfigsPlace, EnvironmentView
from topicops.steps.specs.suggestions import similar_word

_ONLY_IN_KRAFT = frozenset({"remote.log.copy.disable", "remote.log.delete.on.disable"})
_LONGEST = 20
"""The digits of the largest number that a config takes."""
_MESSAGE_FORMAT = "message.format.version"


def configs_are_valid(view: EnvironmentView) -> Iterator[Finding]:
    for name, value, places in view.written_configs():
        config = view.topic_configs.get(name)
        if name not in TOPIC_CONFIGS:
            yield from (_unknown(name, place) for place in places)
        elif config is None or _release_problem(name, view):  # one problem, not two
            continue
        elif isinstance(value, str) and name not in THROTTLE_LISTS and (refusal := _refusal(config, value)):
            yield from (_refused_value(config, value, refusal, place) for place in places)


def configs_are_usable(view: EnvironmentView) -> Iterator[Finding]:
    allowed = _allow_list(view)
    for name, value, places in view.written_configs():
        if name not in TOPIC_CONFIGS:
            continue
        found = [problem] if (problem := _why_unusable(name, value, view)) else []
        if allowed is not None and name not in allowed:
            summary = f"this environment does not let {name} change"
            found.append((Code.CONFIG_NOT_ALLOWED, summary, "take it out, or add it to policy.alterableConfigs"))
        for code, summary, remedy in found:
            for place in (place for place in places if place.is_used_in(view.environment_name)):
                yield Finding(code, place.section.file, place.section.values[name].key, summary, remedy, place.label)


def small_numbers_have_a_unit(view: EnvironmentView) -> Iterator[Finding]:
    """Warn of ``retention.ms: 7``: Kafka takes it for 7 ms, and whoever wrote it meant 7 days."""
    for name, value, places in view.written_configs():
        config = view.topic_configs.get(name)
        unit = config.unit if config and config.is_whole_number else None
        if config is None or unit is None or not isinstance(value, str) or not _is_small(value.strip(), unit):
            continue
        if _refusal(config, value):  # one problem, not two
            continue
        smallest, *larger = UNITS[unit]
        summary = f"{name}: {value} without a unit is {value} {'bytes' if smallest == 'B' else smallest}"
        remedy = f"write {value}{smallest} if that is meant, or one of {', '.join(f'{value}{word}' for word in larger)}"
        for place in places:
            yield Finding(
                Code.NUMBER_WITHOUT_UNIT,
                place.section.file,
                place.section.values[name].span,
                summary,
                remedy,
                place.label,
            )


def _is_small(text: str, unit: Unit) -> bool:
    """Whether it is a plain number below the first larger unit: below 1,000 ms, below 1,024 bytes."""
    _, larger, *_ = UNITS[unit].values()
    return text.isascii() and text.isdecimal() and 0 < int(text[:_LONGEST]) < larger


def _unknown(name: str, place: ConfigsPlace) -> Finding:
    key, summary = place.section.values[name].key, f"Kafka has no topic config {name}"
    return Finding(Code.UNKNOWN_CONFIG, place.section.file, key, summary, _hint(name))


def _refused_value(config: TopicConfig, text: str, refusal: ConfigValueError, place: ConfigsPlace) -> Finding:
    shown = text if len(text) <= 60 else f"{text[:57]}…"
    summary = f"{config.name} cannot be {shown!r}: {refusal}"
    suggestion = _certain_value(config, text, refusal)
    valid = f"valid in Kafka {config.release}" if config.differs_by_release else "valid"
    remedy = f"write {suggestion}" if suggestion else f"{valid}: {config.valid}"
    span = place.section.values[config.name].span
    return Finding(_code_of(refusal), place.section.file, span, summary, remedy, place.label)


def _certain_value(config: TopicConfig, text: str, error: ConfigValueError) -> str | None:
    """The only value that ``text`` can stand for, if a broker takes it."""
    match error:
        case AmbiguousNumberError():
            suggestion = plain_number(text)
        case UnknownUnitError():
            suggestion = known_unit(text, config.unit) if config.unit else None
        case _:
            suggestion = exact_word(text, config.constraint.values or config.constraint.items)
    return suggestion if suggestion is not None and _refusal(config, suggestion) is None else None


def _refusal(config: TopicConfig, text: str) -> ConfigValueError | None:
    """Why brokers refuse ``text`` for this config; None: they take it."""
    try:
        check_written(config, text)
    except ConfigValueError as error:
        return error
    return None


def _code_of(error: ConfigValueError) -> Code:
    match error:
        case AmbiguousNumberError():
            return Code.AMBIGUOUS_SCALAR
        case UnknownUnitError():
            return Code.UNKNOWN_UNIT
        case _:
            return Code.INVALID_CONFIG


def _why_unusable(name: str, value: object, view: EnvironmentView) -> tuple[Code, str, str] | None:
    if name in THROTTLE_LISTS:
        return Code.THROTTLE, f"{name} belongs to Kafka's reassignment tools", "take it out"
    problem = _release_problem(name, view)
    if problem:
        return Code.UNUSABLE_CONFIG, problem, "take it out, or correct cluster.kafkaVersion"
    if name in _ONLY_IN_KRAFT and view.reads_zookeeper and _is_true(value):
        return Code.UNUSABLE_CONFIG, f"{name} can be true only without ZooKeeper", "take it out"
    return None


def _is_true(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() == "true"


def _release_problem(name: str, view: EnvironmentView) -> str | None:
    """Why a config of Kafka is not one of the environment's release, or does nothing there."""
    if name not in view.topic_configs:
        by_default = "" if "kafkaVersion" in view.environment_spec.section("cluster") else ", by default"
        return f"{no_such_config(name, view.release)}; cluster.kafkaVersion is {view.release}{by_default}"
    if name == _MESSAGE_FORMAT and view.release >= ONE_MESSAGE_FORMAT:
        return f"{name} does nothing since Kafka {ONE_MESSAGE_FORMAT}"
    return None


def _allow_list(view: EnvironmentView) -> frozenset[str] | None:
    policy = view.environment_spec.section("policy")
    if "alterableConfigs" not in policy or policy.is_unreadable("alterableConfigs"):
        return None
    return frozenset(policy.texts("alterableConfigs"))


def _hint(name: str) -> str:
    of_broker = config_name_of_broker_setting(name)
    if of_broker:
        return f"that is a broker's setting; a topic's is {of_broker}"
    close = similar_word(name.lower().replace("_", "."), TOPIC_CONFIGS, cutoff=0.75)
    return f"did you mean {close}?" if close else "see Kafka's list of topic configs"
