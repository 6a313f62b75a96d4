"""Values that are valid alone and wrong together; only written values count, never a broker's defaults.

Source: org.apache.kafka.storage.internals.log.LogConfig#validate (3.9) for what Kafka refuses; the warnings are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from topicops.model.codes import Code
from topicops.model.release import CAPPED_MIN_ISR, TIERED_STORAGE, Release
from topicops.model.specs.topic_config import AS_TOTAL, local_retention
from topicops.steps.specs.findings import Finding
from topicops.steps.specs.layers import EnvironmentView, Setting

UNLIMITED = -1


def replicas_in_sync_fit_the_replication(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("min.insync.replicas"):
        least, replicas = topic.config_number("min.insync.replicas"), topic.number("replicationFactor")
        if least is None or replicas is None or least < replicas:
            continue
        setting, factor = topic.configs["min.insync.replicas"], topic.settings["replicationFactor"]
        factor_is = "the replication factor"
        if least > replicas:
            summary = f"min.insync.replicas {least} is above the replication factor {replicas}"
            yield setting.finding(
                Code.MIN_ISR_ABOVE_REPLICAS,
                summary,
                _what_happens(replicas, view.release),
                topic=topic.label,
                against=factor,
                why=factor_is,
            )
        else:
            summary = f"min.insync.replicas {least} equals the replication factor"
            yield setting.finding(
                Code.MIN_ISR_EQUALS_REPLICAS,
                summary,
                "one broker's restart stops all writers",
                topic=topic.label,
                against=factor,
                why=factor_is,
            )


def _what_happens(replicas: int, release: Release) -> str:
    if release < CAPPED_MIN_ISR:
        return f"brokers before {CAPPED_MIN_ISR} refuse all writes with acks=all then"
    return f"brokers take it for {replicas}: with any replica away, writes with acks=all fail"


def compaction_lags_agree(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("min.compaction.lag.ms"):
        least, most = topic.config_number("min.compaction.lag.ms"), topic.config_number("max.compaction.lag.ms")
        if least is not None and most is not None and least > most:
            summary = f"min.compaction.lag.ms {least} is above max.compaction.lag.ms {most}"
            yield topic.configs["min.compaction.lag.ms"].finding(
                Code.COMPACTION_LAGS,
                summary,
                "Kafka refuses this",
                topic=topic.label,
                against=topic.configs["max.compaction.lag.ms"],
                why="the other lag",
            )


def local_retention_fits_the_total(view: EnvironmentView) -> Iterator[Finding]:
    """Before tiered storage was released, brokers took any value and then could not open the topic's logs."""
    for unit in ("ms", "bytes"):
        for topic in view.giving(f"local.retention.{unit}"):
            if topic.config("remote.storage.enable") != "true" and view.release >= TIERED_STORAGE:
                continue
            local, total = topic.config_number(f"local.retention.{unit}"), topic.config_number(f"retention.{unit}")
            is_longer = _is_longer if view.release >= TIERED_STORAGE else _was_longer
            if local is None or total is None or not is_longer(local, total):
                continue
            setting = topic.configs[f"local.retention.{unit}"]
            summary = f"local.retention.{unit} {local} is above retention.{unit} {total}"
            remedy, total_setting = "-2 means: as much as the total", topic.configs[f"retention.{unit}"]
            yield setting.finding(
                Code.LOCAL_RETENTION,
                summary,
                remedy,
                topic=topic.label,
                against=total_setting,
                why="the total retention",
            )


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
            summary = f"local.retention.{unit} {local} is not retention.{unit} {total}, and {name} is true"
            setting, total_setting = topic.configs[f"local.retention.{unit}"], topic.configs[f"retention.{unit}"]
            yield setting.finding(
                Code.LOCAL_RETENTION,
                summary,
                "-2 means: as much as the total",
                topic=topic.label,
                against=total_setting,
                why="the total retention",
            )


def _is_longer(local: int, total: int) -> bool:
    kept = local_retention(local, total)
    return total > UNLIMITED and (kept == UNLIMITED or kept > total)


def _was_longer(local: int, total: int) -> bool:
    """As before ``TIERED_STORAGE``, where any number is above a total of -1."""
    return local != AS_TOTAL and (local > total or local == UNLIMITED != total)


def segments_roll_before_they_expire(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("segment.ms"):
        segment, kept = topic.config_number("segment.ms"), topic.config_number("retention.ms")
        expires = topic.policies is None or "delete" in topic.policies
        if segment is not None and kept is not None and expires and UNLIMITED < kept < segment:
            summary = f"segment.ms {segment} is longer than retention.ms {kept}"
            remedy = "nothing expires before its segment is closed"
            yield topic.configs["segment.ms"].finding(
                Code.LONG_SEGMENT,
                summary,
                remedy,
                topic=topic.label,
                against=topic.configs["retention.ms"],
                why="the retention",
            )


def segments_hold_the_largest_batch(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("segment.bytes"):
        segment, largest = topic.config_number("segment.bytes"), topic.config_number("max.message.bytes")
        if segment is not None and largest is not None and segment < largest:
            summary = f"segment.bytes {segment} is below max.message.bytes {largest}"
            yield topic.configs["segment.bytes"].finding(
                Code.SMALL_SEGMENT,
                summary,
                "a batch that is larger than a segment is refused",
                topic=topic.label,
                against=topic.configs["max.message.bytes"],
                why="the largest batch",
            )


def segments_keep_most_of_their_age(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("segment.jitter.ms"):
        jitter, age = topic.config_number("segment.jitter.ms"), topic.config_number("segment.ms")
        if jitter is not None and age is not None and jitter > age:
            summary = f"segment.jitter.ms {jitter} is above segment.ms {age}"
            yield topic.configs["segment.jitter.ms"].finding(
                Code.SEGMENT_JITTER,
                summary,
                "some segments would be replaced by a new one at once",
                topic=topic.label,
                against=topic.configs["segment.ms"],
                why="the age at which segments begin",
            )


def compaction_has_keys(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("cleanup.policy"):
        if not topic.keyed and topic.policies and "compact" in topic.policies:
            summary = "compaction needs keys, and keyed is false"
            keyed, remedy = topic.source.spec.values["keyed"], "a broker refuses records without a key there"
            setting, says_so = topic.configs["cleanup.policy"], Setting(False, topic.source.file, keyed.span, keyed.key)
            yield setting.finding(
                Code.COMPACTED_NOT_KEYED, summary, remedy, topic=topic.label, against=says_so, why="no keys"
            )


def tiered_topics_are_not_compacted(view: EnvironmentView) -> Iterator[Finding]:
    for topic in view.giving("remote.storage.enable"):
        if topic.config("remote.storage.enable") == "true" and topic.policies and "compact" in topic.policies:
            yield topic.configs["remote.storage.enable"].finding(
                Code.REMOTE_AND_COMPACTED,
                "tiered storage and compaction exclude each other",
                "choose one",
                topic=topic.label,
                against=topic.configs["cleanup.policy"],
                why="the compaction",
            )


def unclean_elections_are_noticed(view: EnvironmentView) -> Iterator[Finding]:
    name = "unclean.leader.election.enable"
    for topic in view.giving(name):
        if topic.config(name) == "true":
            summary = "an unclean election may lose acknowledged records"
            yield topic.configs[name].finding(
                Code.UNCLEAN_ELECTION, summary, "wanted only where loss is fine", topic=topic.label
            )
