"""Configs: each valid and usable alone, and no two that are wrong together; only written values count.

Source: org.apache.kafka.storage.internals.log.LogConfig#validate (3.9) for what Kafka refuses; the warnings are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.codes import Code
from topicops.model.release import CAPPED_MIN_ISR, ONE_MESSAGE_FORMAT, TIERED_STORAGE
from topicops.model.specs.broker_settings import MESSAGE_FORMAT
from topicops.model.specs.config_checks import check_written, no_such_config
from topicops.model.specs.spellings import (
    config_name_of_broker_setting,
    exact_word,
    known_unit,
    likely_unit,
    plain_number,
)
from topicops.model.specs.topic_config import (
    AS_TOTAL,
    THROTTLE_LISTS,
    TOPIC_CONFIGS,
    UNITS,
    AmbiguousNumberError,
    ConfigValueError,
    TopicConfig,
    Unit,
    UnknownUnitError,
    config_of,
    local_retention,
    vendor_config,
)
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import ConfigsPlace, EnvironmentView, MergedTopic, Setting
from topicops.steps.specs.suggestions import similar_word

_ONLY_IN_KRAFT = frozenset({"remote.log.copy.disable", "remote.log.delete.on.disable"})
_LONGEST = 20
"""The digits of the largest number that a config takes."""


def configs_are_valid(view: EnvironmentView) -> Iterator[Finding]:
    for name, value, places in view.written_configs():
        config = view.topic_configs.get(name) or vendor_config(name)
        if name not in TOPIC_CONFIGS and config is None:
            summary = f"Kafka has no topic config {name}"
            for section in (place.section for place in places):
                key = section.values[name].key
                yield Finding(Code.UNKNOWN_CONFIG, section.file, key, summary, hint_for_config(name))
        elif config is None or release_problem(name, view):  # one problem, not two
            continue
        elif isinstance(value, str) and name not in THROTTLE_LISTS and (refusal := refusal_of(config, value)):
            yield from (_refused_value(config, value, refusal, place) for place in places)


def configs_are_usable(view: EnvironmentView) -> Iterator[Finding]:
    allowed = view.environment_spec.section("policy").texts_or_none("alterableConfigs")
    for name, value, places in view.written_configs():
        if config_of(name) is None:
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
        if refusal_of(config, value):  # one problem, not two
            continue
        smallest, *larger = UNITS[unit]
        summary = f"{name}: {value} without a unit is {value} {'bytes' if smallest == 'B' else smallest}"
        remedy = f"write {value}{smallest} if that is meant, or one of {', '.join(f'{value}{word}' for word in larger)}"
        for at in places:
            yield at.section.finding(Code.NUMBER_WITHOUT_UNIT, name, summary, remedy, at.label)


def _is_small(text: str, unit: Unit) -> bool:
    """Return whether it is a plain number below the first larger unit: below 1,000 ms, below 1,024 bytes."""
    _, larger, *_ = UNITS[unit].values()
    return text.isascii() and text.isdecimal() and 0 < int(text[:_LONGEST]) < larger


def _refused_value(config: TopicConfig, text: str, refusal: ConfigValueError, place: ConfigsPlace) -> Finding:
    shown = text if len(text) <= 60 else f"{text[:57]}…"
    summary = f"{config.name} cannot be {shown!r}: {refusal}"
    suggestion = _certain_value(config, text, refusal)
    valid = f"valid in Kafka {config.release}" if config.differs_by_release else "valid"
    words = config.constraint.values or config.constraint.items
    remedy = f"write {suggestion}" if suggestion else f"{valid}: {', '.join(words) or config.valid}"
    if not suggestion and (near := similar_word(text.lower(), words)):
        remedy = f"did you mean {near}? {remedy}"
    if isinstance(refusal, UnknownUnitError) and config.unit and not suggestion:
        remedy = likely_unit(text, config.unit)
    return place.section.finding(code_of_refusal(refusal), config.name, summary, remedy, place.label)


def _certain_value(config: TopicConfig, text: str, error: ConfigValueError) -> str | None:
    """Return the only value that ``text`` can stand for, if a broker takes it."""
    match error:
        case AmbiguousNumberError():
            suggestion = plain_number(text)
        case UnknownUnitError():
            suggestion = known_unit(text, config.unit) if config.unit else None
        case _:
            suggestion = exact_word(text, config.constraint.values or config.constraint.items)
    return suggestion if suggestion is not None and refusal_of(config, suggestion) is None else None


def refusal_of(config: TopicConfig, text: str) -> ConfigValueError | None:
    """Return why brokers refuse ``text`` for this config; None means that they take it."""
    try:
        check_written(config, text)
    except ConfigValueError as error:
        return error
    return None


def code_of_refusal(error: ConfigValueError) -> Code:
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
    problem = release_problem(name, view)
    if problem:
        return Code.UNUSABLE_CONFIG, problem, "take it out, or correct cluster.kafkaVersion"
    if name in _ONLY_IN_KRAFT and view.reads_zookeeper and str(value).strip().lower() == "true":
        return Code.UNUSABLE_CONFIG, f"{name} can be true only without ZooKeeper", "take it out"
    return None


def release_problem(name: str, view: EnvironmentView) -> str | None:
    """Return why a config of Kafka is not one of the environment's release, or does nothing there."""
    if name not in view.topic_configs and vendor_config(name) is None:
        by_default = "" if "kafkaVersion" in view.environment_spec.section("cluster") else ", by default"
        return f"{no_such_config(name, view.release)}; cluster.kafkaVersion is {view.release}{by_default}"
    if name == MESSAGE_FORMAT and view.release >= ONE_MESSAGE_FORMAT:
        return f"{name} does nothing since Kafka {ONE_MESSAGE_FORMAT}"
    return None


_FIELDS_AS_CONFIGS = {
    **dict.fromkeys(("partitions", "num.partitions", "partition.count"), "partitions"),
    **dict.fromkeys(
        ("replicationFactor", "replication.factor", "default.replication.factor", "replicas"), "replicationFactor"
    ),
}


def hint_for_config(name: str) -> str:
    if field := _FIELDS_AS_CONFIGS.get(name):
        return f"take this line out; the number goes to {field} below spec, beside configs"
    of_broker = config_name_of_broker_setting(name)
    if of_broker:
        return f"that is a broker's setting; a topic's is {of_broker}"
    close = similar_word(name.lower().replace("_", "."), TOPIC_CONFIGS, cutoff=0.75)
    return f"did you mean {close}?" if close else "see Kafka's list of topic configs"


UNLIMITED = -1


def replicas_in_sync_fit_the_replication(view: EnvironmentView) -> Iterator[Finding]:
    name = "min.insync.replicas"
    for topic in view.giving(name):
        least, replicas = topic.config_number(name), topic.number("replicationFactor")
        if least is None or replicas is None or least < replicas:
            continue
        if least > replicas:
            most = max(1, replicas - 1)
            code, summary = Code.MIN_ISR_ABOVE_REPLICAS, f"{name} {least} is above the replication factor {replicas}"
            remedy = (
                f"write {most}: brokers before {CAPPED_MIN_ISR} refuse all writes with acks=all else"
                if view.release < CAPPED_MIN_ISR
                else f"write {most}: brokers take {least} as {replicas}; one replica away, and acks=all fails"
            )
        else:
            code, summary = Code.MIN_ISR_EQUALS_REPLICAS, f"{name} {least} equals the replication factor"
            remedy = "one broker's restart stops all writers"
        factor = topic.settings["replicationFactor"]
        yield topic.conflict(name, code, summary, remedy, against=factor, why="the replication factor")


def compaction_lags_agree(view: EnvironmentView) -> Iterator[Finding]:
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    for topic in view.giving(low):
        least, most = topic.config_number(low), topic.config_number(high)
        if least is not None and most is not None and least > most:
            summary = f"{low} {least} is above {high} {most}"
            yield topic.conflict(
                low, Code.COMPACTION_LAGS, summary, "Kafka refuses this", against=high, why="the other lag"
            )


def local_retention_fits_the_total(view: EnvironmentView) -> Iterator[Finding]:
    """Before tiered storage was released, brokers took any value and then could not open the topic's logs."""
    is_longer = _is_longer if view.release >= TIERED_STORAGE else _was_longer
    for unit in ("ms", "bytes"):
        for topic in view.giving(f"local.retention.{unit}"):
            if topic.config("remote.storage.enable") != "true" and view.release >= TIERED_STORAGE:
                continue
            local, total = topic.config_number(f"local.retention.{unit}"), topic.config_number(f"retention.{unit}")
            if local is not None and total is not None and is_longer(local, total):
                yield _local_retention(topic, unit, f"{local} is above retention.{unit} {total}")


def local_retention_is_the_total_where_nothing_is_copied(view: EnvironmentView) -> Iterator[Finding]:
    """Only without ZooKeeper: with it, the config cannot be used at all."""
    name = "remote.log.copy.disable"
    for topic in view.giving(name) if not view.reads_zookeeper else ():
        if topic.config(name) != "true" or topic.config("remote.storage.enable") != "true":
            continue
        for unit in ("ms", "bytes"):
            local, total = topic.config_number(f"local.retention.{unit}"), topic.config_number(f"retention.{unit}")
            if local is None or total is None or local_retention(local, total) == total or _is_longer(local, total):
                continue
            yield _local_retention(topic, unit, f"{local} is not retention.{unit} {total}, and {name} is true")


def _local_retention(topic: MergedTopic, unit: Unit, problem: str) -> Finding:
    name, total, remedy = f"local.retention.{unit}", f"retention.{unit}", "-2 means: as much as the total"
    summary = f"{name} {problem}"
    return topic.conflict(name, Code.LOCAL_RETENTION, summary, remedy, against=total, why="the total retention")


def _is_longer(local: int, total: int) -> bool:
    kept = local_retention(local, total)
    return total > UNLIMITED and (kept == UNLIMITED or kept > total)


def _was_longer(local: int, total: int) -> bool:
    """Compare as before ``TIERED_STORAGE``, where any number is above a total of -1."""
    return local != AS_TOTAL and (local > total or local == UNLIMITED != total)


def segments_roll_before_they_expire(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("segment.ms"):
        segment, kept = topic.config_number("segment.ms"), topic.config_number("retention.ms")
        expires = topic.policies is None or "delete" in topic.policies
        if segment is not None and kept is not None and expires and UNLIMITED < kept < segment:
            summary = f"segment.ms {segment} is longer than retention.ms {kept}"
            remedy, against = "nothing expires before its segment is closed", "retention.ms"
            yield topic.conflict("segment.ms", Code.LONG_SEGMENT, summary, remedy, against=against, why="the retention")


def segments_hold_the_largest_batch(view: EnvironmentView) -> Iterator[Finding]:
    small, large = "segment.bytes", "max.message.bytes"
    for topic in view.giving(small):
        segment, largest = topic.config_number(small), topic.config_number(large)
        if segment is not None and largest is not None and segment < largest:
            summary, remedy = (
                f"{small} {segment} is below {large} {largest}",
                "a larger batch than a segment is refused",
            )
            yield topic.conflict(small, Code.SMALL_SEGMENT, summary, remedy, against=large, why="the largest batch")


def segments_keep_most_of_their_age(view: EnvironmentView) -> Iterator[Finding]:
    name, other = "segment.jitter.ms", "segment.ms"
    for topic in view.giving(name):
        jitter, age = topic.config_number(name), topic.config_number(other)
        if jitter is not None and age is not None and jitter > age:
            summary = f"{name} {jitter} is above {other} {age}"
            remedy = "some segments would be replaced by a new one at once"
            why = "the age at which segments begin"
            yield topic.conflict(name, Code.SEGMENT_JITTER, summary, remedy, against=other, why=why)


def compaction_has_keys(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("cleanup.policy"):
        if not topic.source.keyed and topic.policies and "compact" in topic.policies:
            summary = "compaction needs keys, and keyed is false"
            remedy = "a broker refuses records without a key there"
            keyed = topic.source.spec.values["keyed"]
            says_so = Setting(False, topic.source.file, keyed.span, keyed.key)
            yield topic.conflict(
                "cleanup.policy", Code.COMPACTED_NOT_KEYED, summary, remedy, against=says_so, why="no keys"
            )


def tiered_topics_are_not_compacted(view: EnvironmentView) -> Iterator[Finding]:
    name, against = "remote.storage.enable", "cleanup.policy"
    for topic in view.giving(name):
        if topic.config(name) == "true" and topic.policies and "compact" in topic.policies:
            summary, why = "tiered storage and compaction exclude each other", "the compaction"
            yield topic.conflict(name, Code.REMOTE_AND_COMPACTED, summary, "choose one", against=against, why=why)


def unclean_elections_are_noticed(view: EnvironmentView) -> Iterator[Finding]:
    name = "unclean.leader.election.enable"
    for topic in view.giving(name):
        if topic.config(name) == "true":
            summary = "an unclean election may lose acknowledged records"
            yield topic.configs[name].finding(
                Code.UNCLEAN_ELECTION, summary, "wanted only where loss is fine", topic=topic.label
            )
