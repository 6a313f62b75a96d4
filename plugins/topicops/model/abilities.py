"""The requests that topicops sends to brokers, what each is for, and which of them some brokers do not offer.

A broker lists in its answer to ApiVersions what it takes. A release does not tell: a service may leave requests out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from topicops.model.release import (
    NEWEST_RECORDS,
    OLDEST,
    OWN_RIGHTS,
    REASSIGNMENTS_IN_TOPICS,
    SINGLE_CONFIGS,
    TOPIC_IDS,
    Release,
)


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
    """What does not work without it."""

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
    REASSIGNMENTS,
)
"""All that topicops needs of brokers, beside Metadata and ApiVersions themselves.

Source: org.apache.kafka.common.protocol.ApiKeys in kafka-clients of each release.
"""

MissingRequests = Mapping[str, tuple[int, ...]]
"""Brokers that do not offer an ability, by its text; one that all of them offer is left out."""


def lacking(offered: Mapping[int, int]) -> tuple[Ability, ...]:
    """What a broker does not offer.

    Args:
        offered: The last version that the broker takes of each request, by API key.
    """
    return tuple(ability for ability in ABILITIES if offered.get(ability.key, -1) < ability.version)


def missing_requests(brokers: Mapping[int, Iterable[Ability]]) -> MissingRequests:
    """Put together what each broker lacks."""
    found: dict[str, tuple[int, ...]] = {}
    for broker, abilities in sorted(brokers.items()):
        for ability in abilities:
            found[str(ability)] = (*found.get(str(ability), ()), broker)
    return found


def of_release(release: Release) -> tuple[Ability, ...]:
    """What Kafka's own brokers of a release lack."""
    return tuple(ability for ability in ABILITIES if release < ability.since)
