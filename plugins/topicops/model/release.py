"""A release of Kafka as two numbers; since when brokers can do what topicops needs, and which requests they lack.

The only module that names a release. Where a docstring says *protocol*, the brokers' ``inter.broker.protocol.version``
decides, which during an upgrade is older than the release they run. A broker lists the requests that it takes in its
answer to ApiVersions; the release alone is not enough, because a service may leave some out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self


class Release(NamedTuple):
    """``3.9``: all its patch releases, such as 3.9.2, are one release here."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def shown(self) -> str:
        """For a release that brokers showed: theirs may be later than the last one that topicops knows."""
        return f"{self} or later" if self == NEWEST else str(self)

    def may_be(self, written: Release) -> bool:
        """Return whether a broker that showed this release may run ``written``, which somebody wrote down."""
        return written >= self if self == NEWEST else written == self

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the release of ``3.9``, ``3.9.2`` or ``3.9-IV0``; None if the text is none of these."""
        parts = text.partition("-IV")[0].split(".")
        if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
            return None
        return cls(int(parts[0]), int(parts[1]))


OLDEST = Release(1, 0)
"""Oldest release that topicops supports."""
NEWEST = Release(4, 4)
"""Newest release whose topic configs topicops knows; a later one is treated as this one, with a warning (TOP334)."""
USUAL = Release(3, 9)
"""Release of an environment that names none: the last one with ZooKeeper."""

DELETES_NEVER_LED = Release(2, 0)
"""A topic that never had a leader can be deleted. Source: kafka.controller.ReplicaStateMachine of each release."""
SINGLE_CONFIGS = Release(2, 3)
"""IncrementalAlterConfigs (KIP-339); before, a request replaces all overrides of a topic."""
OWN_RIGHTS = Release(2, 3)
"""Brokers tell what an identity may do (KIP-430), and so whether it sees every group."""
ELECTS_BY_TOOL = Release(2, 4)
"""Kafka's own tools: ``kafka-leader-election`` (KIP-460); before, ``kafka-preferred-replica-election`` alone."""
CONFIGURES_TOPICS_BY_BROKERS = Release(2, 5)
"""Kafka's own tools: ``kafka-configs --bootstrap-server`` takes topics; 2.3 needs ``--zookeeper``, 2.5 does not."""
REASSIGNMENTS_IN_TOPICS = Release(2, 4)
"""Protocol. A topic's znode names the replicas that a reassignment adds and removes (KIP-455)."""
CANCELS_MOVES = Release(2, 6)
"""Kafka's own tool, not its brokers: ``kafka-reassign-partitions`` has ``--cancel`` (KIP-455)."""
MISSES_MOVES = Release(3, 7)
"""Kafka's own tool until 3.9: ``--cancel`` does not find a move that only adds replicas, and says that none is active;
nevertheless it removes the throttles of all brokers. Seen with 3.9.2; 4.0 finds them again.

Source: org.apache.kafka.tools.reassign.ReassignPartitionsCommand#cancelReassignment.
"""
TOPIC_IDS = Release(2, 8)
"""Protocol. Topics have ids (KIP-516)."""
NEWEST_RECORDS = Release(3, 0)
"""Brokers give the timestamp of a partition's newest record (KIP-734)."""
ONE_MESSAGE_FORMAT = Release(3, 0)
"""Protocol. ``message.format.version`` has no effect any more (KIP-724)."""
KRAFT = Release(3, 3)
"""Brokers run without ZooKeeper, outside of previews (KIP-833)."""
TIERED_STORAGE = Release(3, 6)
"""Local retention is compared with the total only where remote storage is on (KIP-405); 3.0 to 3.5 always compare.

Source: LogConfig$RemoteLogConfig, which 3.0 to 3.5 make for each topic, and 3.6 reads where it is asked for.
"""
CAPPED_MIN_ISR = Release(3, 7)
"""``min.insync.replicas`` above the number of replicas counts as that number.

Source: kafka.cluster.Partition#effectiveMinIsr, which 3.6.2 lacks and 3.7.2 has.
"""
AWAITS_WHOLE_TARGET = Release(3, 8)
"""Under KRaft, and until 4.2, a move does not end before each replica of its target is in sync, those that stay too.

With ZooKeeper it never does. Source: PartitionReassignmentReplicas#maybeCompleteReassignment (KAFKA-15665,
KAFKA-19975).
"""
AWAITS_ADDED_AGAIN = Release(4, 3)
"""Under KRaft a move ends again as soon as the added replicas are in sync, as until 3.7; seen with 3.7.2 and 4.4.0."""
CORDONS = Release(4, 3)
"""Log directories can be cordoned: they get no new replicas (KIP-1066)."""
NO_ZOOKEEPER = Release(4, 0)
"""Brokers run with KRaft alone (KIP-866)."""


FIRST_REQUESTS: Mapping[Release, tuple[int, int]] = {
    Release(0, 11): (3, 4),  # Metadata
    Release(1, 0): (3, 5),
    Release(1, 1): (1, 7),  # Fetch
    Release(2, 0): (3, 6),
    Release(2, 1): (3, 7),
    Release(2, 2): (2, 5),  # ListOffsets
    Release(2, 3): (3, 8),
    Release(2, 4): (3, 9),
    Release(2, 5): (29, 2),  # DescribeAcls
    Release(2, 6): (48, 0),  # DescribeClientQuotas
    Release(2, 7): (1, 12),
    Release(2, 8): (3, 10),
    Release(3, 0): (2, 7),
    Release(3, 1): (1, 13),
    Release(3, 2): (11, 9),  # JoinGroup
    Release(3, 3): (29, 3),
    Release(3, 4): (4, 7),  # LeaderAndIsr, with ZooKeeper alone
    Release(3, 5): (1, 15),
    Release(3, 6): (24, 4),  # AddPartitionsToTxn
    Release(3, 7): (1, 16),
    Release(3, 8): (0, 11),  # Produce
    Release(3, 9): (1, 17),
    Release(4, 0): (2, 10),
    Release(4, 1): (1, 18),
    Release(4, 2): (2, 11),
    Release(4, 3): (35, 5),  # DescribeLogDirs
    Release(4, 4): (18, 5),  # ApiVersions
}
"""A request, as API key and version, that brokers answer since each release and not before.

Source: org.apache.kafka.common.protocol.ApiKeys in kafka-clients of all these releases.
"""
LIKE_3_4 = Release(3, 3)
"""Under KRaft no request shows a difference from 3.4."""
SETTING_OF_3_4 = "producer.id.expiration.ms"
"""Brokers have this setting since 3.4, and not in 3.3. Source: kafka.server.KafkaConfig."""


class Releases(NamedTuple):
    """Those of a cluster's brokers: two during an upgrade, and for most of the time one."""

    oldest: Release
    newest: Release

    def __str__(self) -> str:
        return self.oldest.shown if self.oldest == self.newest else f"{self.oldest} and {self.newest.shown}"

    @classmethod
    def of(cls, releases: Iterable[Release]) -> Self | None:
        """Return None if there are none."""
        found = sorted(releases)
        return cls(found[0], found[-1]) if found else None


def release_of(offered: Mapping[int, int], settings: Collection[str] = ()) -> Release:
    """Return the newest release whose first request a broker answers; 0.10 for one that answers none.

    Args:
        offered: The last version that the broker answers, by API key.
        settings: Names of the broker's settings; all are not needed, but ``SETTING_OF_3_4`` is under KRaft.
    """
    known = [release for release, (key, version) in FIRST_REQUESTS.items() if offered.get(key, -1) >= version]
    found = max(known, default=Release(0, 10))
    return max(found, Release(3, 4)) if SETTING_OF_3_4 in settings else found


@dataclass(frozen=True, slots=True)
class Ability:
    """One request, from the version on that does what topicops needs."""

    request: str
    """Kafka's name of it."""
    key: int
    version: int
    since: Release
    """The release since which Kafka's own brokers offer it."""
    cost: str
    """Function that does not work without it."""

    def __str__(self) -> str:
        return f"{self.request} of version {self.version} or later" if self.version else self.request


NO_DELETE = "no topic can be deleted, because it is not known which groups use it"
OWN_OPERATIONS = Ability(
    "Metadata", 3, 8, OWN_RIGHTS, "they do not tell whether the reader sees every group, so some deletes are refused"
)
GIVE_TOPIC_IDS = Ability("Metadata", 3, 10, TOPIC_IDS, "they give no topic ids, so source: kafka cannot be used")
CREATE_TOPICS = Ability("CreateTopics", 19, 0, OLDEST, "no topic can be created")
CREATE_PARTITIONS = Ability("CreatePartitions", 37, 0, OLDEST, "no topic can get more partitions")
SINGLE_OVERRIDES = Ability(
    "IncrementalAlterConfigs",
    44,
    0,
    SINGLE_CONFIGS,
    "each change of a config sends all overrides of its topic, and one that is set by hand right before it is lost",
)
ALL_OVERRIDES = Ability(
    "AlterConfigs", 33, 0, OLDEST, "no config can be changed, unless IncrementalAlterConfigs is there"
)
DELETE_TOPICS = Ability("DeleteTopics", 20, 0, OLDEST, "no topic can be deleted")
DELETE_BY_ID = Ability("DeleteTopics", 20, 6, TOPIC_IDS, "no topic that has a topic id can be deleted")
DESCRIBE_CONFIGS = Ability(
    "DescribeConfigs",
    32,
    0,
    OLDEST,
    "their defaults are not known, so the worse risk counts, and source: kafka cannot be used",
)
LOG_DIRECTORIES = Ability(
    "DescribeLogDirs", 35, 0, OLDEST, "verify cannot see the logs on their disks, and says that it did not check them"
)
END_OFFSETS = Ability("ListOffsets", 2, 1, OLDEST, "no topic can be deleted, because its end offsets are not known")
LAST_RECORDS = Ability(
    "ListOffsets",
    2,
    7,
    NEWEST_RECORDS,
    "they do not tell when the last record of a topic was written, so with policy.restsFor no topic can be deleted",
)
LIST_GROUPS = Ability("ListGroups", 16, 0, OLDEST, NO_DELETE)
DESCRIBE_GROUPS = Ability("DescribeGroups", 15, 0, OLDEST, NO_DELETE)
COMMITS = Ability("OffsetFetch", 9, 2, OLDEST, NO_DELETE)
ALTER_REASSIGNMENTS = Ability("AlterPartitionReassignments", 45, 0, REASSIGNMENTS_IN_TOPICS, "no replica can be moved")
REASSIGNMENTS = Ability(
    "ListPartitionReassignments",
    46,
    0,
    REASSIGNMENTS_IN_TOPICS,
    "it is not known which replicas move, so source: kafka cannot be used",
)

ABILITIES = (
    OWN_OPERATIONS,
    GIVE_TOPIC_IDS,
    CREATE_TOPICS,
    CREATE_PARTITIONS,
    SINGLE_OVERRIDES,
    ALL_OVERRIDES,
    DELETE_TOPICS,
    DELETE_BY_ID,
    DESCRIBE_CONFIGS,
    LOG_DIRECTORIES,
    END_OFFSETS,
    LAST_RECORDS,
    LIST_GROUPS,
    DESCRIBE_GROUPS,
    COMMITS,
    ALTER_REASSIGNMENTS,
    REASSIGNMENTS,
)
"""Abilities that topicops needs of brokers, besides Metadata and ApiVersions themselves.

Source: org.apache.kafka.common.protocol.ApiKeys in kafka-clients of each release.
"""

MissingRequests = Mapping[str, tuple[int, ...]]
"""Brokers that do not offer an ability, by its text; one that all of them offer is left out."""


def lacking(offered: Mapping[int, int]) -> tuple[Ability, ...]:
    """Return what a broker lacks, by the last version that it takes of each request, by API key."""
    return tuple(ability for ability in ABILITIES if offered.get(ability.key, -1) < ability.version)


def missing_requests(brokers: Mapping[int, Iterable[Ability]]) -> MissingRequests:
    """Put together what each broker lacks."""
    found: dict[str, tuple[int, ...]] = {}
    for broker, abilities in sorted(brokers.items()):
        for ability in abilities:
            found[str(ability)] = (*found.get(str(ability), ()), broker)
    return found


def of_release(release: Release) -> tuple[Ability, ...]:
    """Return what Kafka's own brokers of a release lack."""
    return tuple(ability for ability in ABILITIES if release < ability.since)
