"""One sentence about each topic config, for the schema that editors show."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from topicops.model.release import ONE_MESSAGE_FORMAT

CONFIG_WORDS: Mapping[str, str] = MappingProxyType({
    "cleanup.policy": "delete removes old segments, compact keeps the last value of each key; both may be given.",
    "compression.gzip.level": "The level of gzip, if the topic is compressed with gzip.",
    "compression.lz4.level": "The level of lz4, if the topic is compressed with lz4.",
    "compression.type": "How brokers compress records; producer keeps the compression of the producer.",
    "compression.zstd.level": "The level of zstd, if the topic is compressed with zstd.",
    "delete.retention.ms": "How long the mark of a deleted key stays in a compacted topic.",
    "errors.deadletterqueue.group.enable": "Whether share groups may put records here that they cannot process.",
    "file.delete.delay.ms": "How long a removed file stays on the disk.",
    "flush.messages": "After how many records the log is flushed to the disk; Kafka recommends the default.",
    "flush.ms": "After what time the log is flushed to the disk; Kafka recommends the default.",
    "follower.replication.throttled.replicas": "Owned by Kafka's reassignment tools.",
    "index.interval.bytes": "After how many bytes of records the index gets an entry.",
    "leader.replication.throttled.replicas": "Owned by Kafka's reassignment tools.",
    "local.retention.bytes": "With tiered storage, how much of a partition stays on the brokers' disks; -2: all.",
    "local.retention.ms": "With tiered storage, how long records stay on the brokers' disks; -2: retention.ms.",
    "max.compaction.lag.ms": "The longest time until a record can be compacted.",
    "max.decompressed.message.bytes": "The largest record, after decompression, that a broker accepts.",
    "max.message.bytes": "The largest batch of records, compressed, that a broker accepts.",
    "message.downconversion.enable": "Whether very old consumers get their old format.",
    "message.format.version": f"The format of records on the disk; without effect since Kafka {ONE_MESSAGE_FORMAT}.",
    "message.timestamp.after.max.ms": "How far in the future a record's time may be.",
    "message.timestamp.before.max.ms": "How far in the past a record's time may be.",
    "message.timestamp.difference.max.ms": "The older name for both limits of a record's time.",
    "message.timestamp.type": "Whether a record's time is the producer's or the broker's.",
    "min.cleanable.dirty.ratio": "The part of a log that must be new before the log is compacted.",
    "min.compaction.lag.ms": "How long a record is never compacted.",
    "min.insync.replicas": "How many replicas must have a record before acks=all is answered.",
    "preallocate": "Whether a segment's file gets its full size when it is created.",
    "remote.copy.lag.bytes": "How much newer data a segment waits for before it is copied to tiered storage; 0: none.",
    "remote.copy.lag.ms": "How old a segment must be before it is copied to tiered storage; 0: any age.",
    "remote.log.copy.disable": "Stops copying to tiered storage; not with ZooKeeper.",
    "remote.log.delete.on.disable": "Deletes the data in tiered storage when it is turned off; not with ZooKeeper.",
    "remote.storage.enable": "Whether old segments move to tiered storage.",
    "retention.bytes": "How much of a partition is kept; -1: no limit.",
    "retention.ms": "How long records are kept; -1: for ever.",
    "segment.bytes": "The size at which a new segment begins; old data is deleted in whole segments.",
    "segment.index.bytes": "The size of a segment's index.",
    "segment.jitter.ms": "The largest random delay, so that not all segments begin at the same time.",
    "segment.ms": "The age at which a new segment begins, full or not.",
    "unclean.leader.election.enable": "Whether a replica that lacks records may become leader if no other is left.",
})  # fmt: skip
"""By config."""
