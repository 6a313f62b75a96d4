"""The environment's own rules, ``policy.rules``: ranges and choices for the merged values of some topics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fnmatch import fnmatchcase

from topicops.model.codes import Code
from topicops.model.specs.document import Span
from topicops.model.specs.spellings import human_unit
from topicops.model.specs.topic_config import (
    AS_TOTAL,
    ConfigValue,
    ConfigValueError,
    TopicConfig,
    canonical_written,
    config_of,
    parse,
)
from topicops.steps.specs.fields import Section, Value
from topicops.steps.specs.findings import Finding, note_at
from topicops.steps.specs.layers import NUMBERS, EnvironmentView, MergedTopic, Setting
from topicops.steps.specs.rules.configs import UNLIMITED, code_of_refusal, hint_for_config, refusal_of, release_problem
from topicops.steps.specs.suggestions import meant

_UNLIMITED_BELOW_0 = frozenset({"retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes"})


def rules_can_be_judged(view: EnvironmentView) -> Iterator[Finding]:
    for rule in _rules(view):
        yield from _match_problems(rule, view)
        numbers = [rule.section(name) for name in NUMBERS if name in rule]
        configs = rule.section("configs")
        limits = [*numbers, *(found.value for found in configs.values.values() if isinstance(found.value, Section))]
        if not limits or not all(each.values for each in limits):
            yield _empty(rule, rule.first, "a rule needs configs, partitions or replicationFactor, each with a limit")
        for name in NUMBERS:
            yield from _order_problem(name, rule.section(name))
        for name, found in configs.values.items():
            if problem := _name_problem(name, view):
                yield Finding(problem[0], rule.file, found.key, *problem[1:])
            else:
                yield from _value_problems(view.topic_configs[name], configs.section(name))
                yield from _order_problem(name, configs.section(name))


def topics_fit_the_rules(view: EnvironmentView) -> Iterator[Finding]:
    """A value that cannot be read has an error that no exception lifts, so it is not judged here."""
    for rule in _rules(view):
        configs = rule.section("configs")
        for topic in (topic for topic in view.merged if _is_for(rule.section("match"), topic)):
            for name in NUMBERS:
                if (setting := topic.settings.get(name)) is not None and setting.number is not None:
                    yield from _violations(name, setting, setting.number, rule, rule.section(name), topic)
            for name in configs.values:
                setting, limits = topic.configs.get(name), configs.section(name)
                if setting is not None and setting.text is not None:
                    yield from _violations(name, setting, _config_value(name, topic), rule, limits, topic)
                elif limits.get("required", bool) and topic.complete and (setting is None or setting.value is None):
                    yield _not_given(name, setting, rule, topic)


def _rules(view: EnvironmentView) -> Iterator[Section]:
    items = view.environment_spec.section("policy").items("rules")
    return (item.value for item in items if isinstance(item.value, Section))


def _is_for(match: Section, topic: MergedTopic) -> bool:
    """Return whether a topic fits; what cannot be read of it or of the match fits."""
    names, owners = match.get("names", str), match.texts_or_none("owners")
    owner = topic.source.metadata.get("owner", str)
    fits_name = names is None or fnmatchcase(topic.label, names)
    return fits_name and (owners is None or owner is None or any(fnmatchcase(owner, each) for each in owners))


def _match_problems(rule: Section, view: EnvironmentView) -> Iterator[Finding]:
    match = rule.section("match")
    given = [part for part in (match.get("names", str), match.get("owners", tuple)) if part is not None]
    if "match" in rule and (not given or not all(given)):
        yield _empty(rule, rule.values["match"].span, "the match names no topics")
    known = [name for entry in view.owner_entries if (name := entry.get("owner", str))]
    for item in match.items("owners") if view.owners is not None else ():
        if isinstance(item.value, str) and not any(fnmatchcase(owner, item.value) for owner in known):
            remedy = meant(item.value, known, "owners.yaml names every owner")
            yield Finding(Code.OUT_OF_RANGE, rule.file, item.span, f"owners.yaml has no owner {item.value}", remedy)


def _empty(rule: Section, span: Span, summary: str) -> Finding:
    remedy = 'as in {match: {names: "pay.*"}, partitions: {max: 24}}'
    return Finding(Code.MISSING_FIELD, rule.file, span, summary, remedy)


def _name_problem(name: str, view: EnvironmentView) -> tuple[Code, str, str] | None:
    if config_of(name) is None:
        return Code.UNKNOWN_CONFIG, f"Kafka has no topic config {name}", hint_for_config(name)
    problem = release_problem(name, view)
    return (Code.UNUSABLE_CONFIG, problem, "take it out, or correct cluster.kafkaVersion") if problem else None


def _value_problems(config: TopicConfig, limits: Section) -> Iterator[Finding]:
    if limits.get("oneOf", tuple) == ():
        yield limits.finding(Code.OUT_OF_RANGE, "oneOf", "no value is allowed", "name one")
    for item in (*(limits.values[name] for name in ("min", "max") if name in limits), *limits.items("oneOf")):
        if isinstance(item.value, str) and (refusal := refusal_of(config, item.value)):
            summary = f"{config.name} cannot be {item.value!r}: {refusal}"
            yield Finding(code_of_refusal(refusal), limits.file, item.span, summary, f"valid: {config.valid}")
    for limit in ("min", "max") if config.type not in ("INT", "LONG", "DOUBLE") else ():
        if limit in limits:
            yield limits.finding(Code.OUT_OF_RANGE, limit, f"{config.name} has no order", "write oneOf: [...] instead")


def _order_problem(name: str, limits: Section) -> Iterator[Finding]:
    low, high = (_bound(name, limits.values.get(limit)) for limit in ("min", "max"))
    if low is not None and high is not None and low > high:
        yield limits.finding(Code.OUT_OF_RANGE, "min", "min is above max, so nothing fits", "correct one of the two")


def _violations(
    name: str, setting: Setting, value: object, rule: Section, limits: Section, topic: MergedTopic
) -> Iterator[Finding]:
    """Yield what a value breaks; one that is not a known number breaks each ``min`` and ``max``."""
    size = value if isinstance(value, int | float) else math.nan
    low, high = (_bound(name, limits.values.get(limit)) for limit in ("min", "max"))
    words = limits.texts("oneOf")
    is_one = setting.text in {_canonical(name, word) for word in words}
    fits = {
        "min": (low is None or size >= low, f"at least {limits.get('min', object)}"),
        "max": (high is None or size <= high, f"at most {limits.get('max', object)}"),
        "oneOf": (is_one or not words, f"only {' or '.join(words)}"),
    }
    config, shown = config_of(name), setting.text or str(setting.number)
    unit = human_unit(config, shown) if config else None
    for limit, allowed in ((limit, allowed) for limit, (is_good, allowed) in fits.items() if not is_good):
        note = note_at(limits.file, limits.values[limit].span, "the rule")
        summary = f"{name} is {shown}{f' ({unit})' if unit else ''}; {_named(rule)} allows {allowed}"
        remedy = "choose another value, or write an exception"
        yield Finding(Code.POLICY_RULE, setting.file, setting.span, summary, remedy, topic.label, note=note)


def _named(rule: Section) -> str:
    match = rule.section("match")
    parts = [match.get_or("names", ""), " or ".join(match.texts("owners"))]
    return f"the rule for {' of '.join(part for part in parts if part)}"


def _not_given(name: str, setting: Setting | None, rule: Section, topic: MergedTopic) -> Finding:
    file, span = (setting.file, setting.span) if setting else (topic.source.file, topic.source.spec.first)
    note = note_at(rule.file, rule.section("configs").values[name].key, "the rule")
    summary, remedy = f"no layer gives {name}; {_named(rule)} requires it", "write it below configs"
    return Finding(Code.POLICY_RULE, file, span, summary, remedy, topic.label, note=note)


def _config_value(name: str, topic: MergedTopic) -> object:
    """Return the value as it will be live, no limit as infinity; None where it cannot be read or is not known."""
    value = _size(name, topic.config(name))
    if value == AS_TOTAL and name.startswith("local."):
        total = name.removeprefix("local.")
        return _size(total, topic.config(total))
    return value


def _bound(name: str, written: Value | None) -> float | None:
    match written.value if written else None:
        case int(number):
            return number
        case str(text):
            found = _size(name, _canonical(name, text))
            return found if isinstance(found, int | float) else None
        case _:
            return None


def _size(name: str, canonical: str | None) -> ConfigValue | None:
    value = None if canonical is None else parse(name, canonical)
    return math.inf if value == UNLIMITED and name in _UNLIMITED_BELOW_0 else value


def _canonical(name: str, text: str) -> str | None:
    try:
        return canonical_written(name, text)
    except ConfigValueError:
        return None
