"""A release of Kafka as two numbers, and since when brokers can what topicops needs of them.

The only module that names a release. Where a docstring says *protocol*, the brokers'
``inter.broker.protocol.version`` decides, which during an upgrade is older than the release they run.
"""

from __future__ import annotations

from typing import NamedTuple, Self


class Release(NamedTuple):
    """``3.9``: all its patch releases, such as 3.9.2, are one release here."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The release of ``3.9``, ``3.9.2`` or ``3.9-IV0``; None if the text is none of these."""
        parts = text.partition("-IV")[0].split(".")
        if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
            return None
        return cls(int(parts[0]), int(parts[1]))


OLDEST = Release(1, 0)
"""That topicops supports."""
NEWEST = Release(4, 4)
"""Whose topic configs topicops knows; a newer release is taken for this one, and a notice says so."""
USUAL = Release(3, 9)
"""Where an environment names none: the last one with ZooKeeper."""

CONFIG_SOURCES = Release(1, 1)
"""DescribeConfigs tells where each value comes from (KIP-226); before, only whether it is a default."""
SINGLE_CONFIGS = Release(2, 3)
"""IncrementalAlterConfigs (KIP-339); before, a request replaces all overrides of a topic."""
OWN_RIGHTS = Release(2, 3)
"""Brokers tell what an identity may do (KIP-430), and so whether it sees every group."""
REASSIGNMENTS_IN_TOPICS = Release(2, 4)
"""Protocol. A topic's znode names the replicas that a reassignment adds and removes (KIP-455)."""
TOPIC_IDS = Release(2, 8)
"""Protocol. Topics have ids (KIP-516)."""
ONE_MESSAGE_FORMAT = Release(3, 0)
"""Protocol. ``message.format.version`` has no effect any more (KIP-724)."""
CAPPED_MIN_ISR = Release(3, 7)
"""``min.insync.replicas`` above the number of replicas counts as that number.

Source: kafka.cluster.Partition#effectiveMinIsr, which 3.6.2 lacks and 3.7.2 has.
"""
NO_ZOOKEEPER = Release(4, 0)
"""Brokers run with KRaft alone (KIP-866)."""
