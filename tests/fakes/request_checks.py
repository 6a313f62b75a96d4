"""What brokers refuse of a request, with Kafka's errors, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fakes.controller.releases import CHECKS_IDS, CONFIGURES_KNOWN
from topicops.model.cluster.snapshot import Assignment, LiveTopic
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic, ReassignTopic
from topicops.model.release import REASSIGNMENTS_IN_TOPICS, SINGLE_OVERRIDES, USUAL, Release, of_release
from topicops.model.specs.config_checks import config_problem

NOT_GIVEN = -1
"""A count that the brokers choose: ``num.partitions``, ``default.replication.factor``."""
METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """One topic of a CreateTopics request. Ours always gives the rows; others may give counts.

    Source: org.apache.kafka.common.message.CreateTopicsRequestData (3.9), and the constants of
    org.apache.kafka.common.requests.CreateTopicsRequest.
    """

    topic: str
    partitions: int = NOT_GIVEN
    replication_factor: int = NOT_GIVEN
    assignment: Assignment = field(default_factory=dict)
    """Empty: the brokers place the replicas."""
    configs: Mapping[str, str] = field(default_factory=dict)
    validate_only: bool = False
    timeout_ms: int = 30_000
    """How long the brokers wait for the new leaders; at 0 and below not at all."""
    to_controller: bool = True
    """Sent to the broker that is the controller."""

    @classmethod
    def of(cls, change: CreateTopic) -> CreateRequest:
        """Ours: the client gives no counts beside the rows."""
        return cls(topic=change.topic, assignment=change.assignment, configs=change.configs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAnswer:
    error: str | None
    """``NAME (code): message``; None: done."""
    is_created: bool


CreatePolicy = Callable[[CreateRequest], str | None]
"""``create.topic.policy.class.name``: why the topic may not be made; None: it may.

It sees the request with the counts that the brokers chose, or with ``NOT_GIVEN`` where rows are given.
Source: kafka.server.ZkAdminManager#validateTopicCreatePolicy.
"""


UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION (3): This server does not host this topic-partition."
IS_MOVING = "REASSIGNMENT_IN_PROGRESS (60): A partition reassignment is in progress."
TIMED_OUT = "REQUEST_TIMED_OUT (7): The request timed out."


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChecks:
    """The checks of brokers of one release, under ZooKeeper.

    Source: kafka.server.ZkAdminManager, kafka.server.KafkaApis and kafka.zk.AdminZkClient (3.9).
    """

    release: Release = USUAL
    deletes_topics: bool = True
    """``delete.topic.enable``."""
    topics: Collection[str] = ()
    """Names of all topics that exist."""
    is_anything_moving: bool = False
    """``/admin/reassign_partitions`` is there."""
    default_partitions: int = 1
    """``num.partitions``."""
    default_replication_factor: int = 1
    """``default.replication.factor``."""
    create_policy: CreatePolicy | None = None
    sends_on: bool = False
    """A broker that is not the controller sends requests on to it, as brokers do that are being migrated to KRaft."""

    def error_of(
        self, change: Change, live: LiveTopic | None, *, is_deleting: bool, brokers: Collection[int]
    ) -> str | None:
        """Return ``NAME (code): message``; None: the request would be taken.

        Args:
            live: The topic of that name, as the controller knows it.
            brokers: Those that are registered.
        """
        match change:
            case CreateTopic():
                request = CreateRequest.of(change)
                return self.answer_to_create(request, live, is_deleting=is_deleting, brokers=brokers).error
            case ExpandTopic():
                return self._expand_error(change, live, is_deleting=is_deleting, brokers=brokers)
            case ConfigureTopic():
                return self._alter_error(change, live, is_deleting=is_deleting)
            case DeleteTopic():
                return self._delete_error(change, live, is_deleting=is_deleting)
            case ReassignTopic():
                raise ValueError(f"{change.topic}: a mover sends reassignments")

    def answer_to_create(
        self, request: CreateRequest, live: LiveTopic | None, *, is_deleting: bool, brokers: Collection[int]
    ) -> CreateAnswer:
        """Source: kafka.server.ZkAdminManager#createTopics, in its order. Arguments as for ``error_of``."""
        error = self._create_error(request, live, is_deleting=is_deleting, brokers=brokers)
        is_created = error is None and not request.validate_only
        return CreateAnswer(error=TIMED_OUT if is_created and request.timeout_ms <= 0 else error, is_created=is_created)

    def _create_error(
        self, request: CreateRequest, live: LiveTopic | None, *, is_deleting: bool, brokers: Collection[int]
    ) -> str | None:
        if not request.to_controller and not self.sends_on:
            return "NOT_CONTROLLER (41): This is not the correct controller for this cluster."
        if request.topic == METADATA_TOPIC:
            return f"INVALID_REQUEST (42): Creation of internal topic {METADATA_TOPIC} is prohibited."
        if live is not None and not is_deleting:
            return _exists_error(request.topic)
        resolved = self._resolved(request)
        return (
            _counts_error(request, resolved, brokers=brokers)
            or _name_error(request.topic)
            or (_exists_error(request.topic) if is_deleting else None)
            or _collision_error(request.topic, self.topics)
            # Unknown brokers are accepted: under ZooKeeper a broker does not check them on create.
            or (_rows_error(request.assignment.values()) if request.assignment else None)
            or (_ids_error(request.assignment) if self.release >= CHECKS_IDS else None)
            or self._config_error(request.configs)
            or self._policy_error(resolved)
        )

    def _resolved(self, request: CreateRequest) -> CreateRequest:
        """With the counts that the brokers choose."""
        if request.assignment:
            return request
        partitions, factor = request.partitions, request.replication_factor
        return replace(
            request,
            partitions=self.default_partitions if partitions == NOT_GIVEN else partitions,
            replication_factor=self.default_replication_factor if factor == NOT_GIVEN else factor,
        )

    def _policy_error(self, request: CreateRequest) -> str | None:
        reason = self.create_policy(request) if self.create_policy else None
        return None if reason is None else f"POLICY_VIOLATION (44): {reason}"

    def _expand_error(
        self, change: ExpandTopic, live: LiveTopic | None, *, is_deleting: bool, brokers: Collection[int]
    ) -> str | None:
        if live is None:
            return UNKNOWN_TOPIC
        if is_deleting:
            return "INVALID_TOPIC_EXCEPTION (17): the topic is queued for deletion"
        # Brokers that have one znode for all moves refuse it while anything moves.
        if live.is_reassigning or (self.release < REASSIGNMENTS_IN_TOPICS and self.is_anything_moving):
            return IS_MOVING
        if change.partitions <= live.partitions:
            return f"INVALID_PARTITIONS (37): The topic currently has {live.partitions} partitions."
        if unknown := {broker for row in change.assignment.values() for broker in row} - set(brokers):
            return f"INVALID_REPLICA_ASSIGNMENT (39): Unknown broker(s) in replica assignment: {sorted(unknown)}"
        if 0 not in live.assignment:
            return "UNKNOWN_SERVER_ERROR (-1): Unexpected existing replica assignment, partition id 0 is missing."
        return _rows_error([live.assignment[0], *change.assignment.values()])

    def _alter_error(self, change: ConfigureTopic, live: LiveTopic | None, *, is_deleting: bool) -> str | None:
        if live is None or (is_deleting and self.release >= CONFIGURES_KNOWN):
            return UNKNOWN_TOPIC
        if SINGLE_OVERRIDES in of_release(self.release) and not change.precondition.all_overrides:
            return "_UNSUPPORTED_FEATURE (-165): IncrementalAlterConfigs (KIP-339) not supported by broker"
        return self._config_error(change.configs)

    def _config_error(self, configs: Mapping[str, str | None]) -> str | None:
        for name, value in configs.items():
            if value is not None and (problem := config_problem(name, value, self.release)):
                return f"INVALID_CONFIG (40): {problem}"
        return None

    def _delete_error(self, change: DeleteTopic, live: LiveTopic | None, *, is_deleting: bool) -> str | None:
        if not self.deletes_topics:
            return "TOPIC_DELETION_DISABLED (73): Topic deletion is disabled."
        if change.topic_id is not None and (live is None or live.topic_id != change.topic_id):
            return "UNKNOWN_TOPIC_ID (100): This server does not host this topic ID."
        return UNKNOWN_TOPIC if live is None or is_deleting else None


def _counts_error(request: CreateRequest, resolved: CreateRequest, *, brokers: Collection[int]) -> str | None:
    """Source: the first lines of org.apache.kafka.admin.AdminUtils#assignReplicasToBrokers."""
    if request.assignment:
        if request.partitions == request.replication_factor == NOT_GIVEN:
            return None
        return "INVALID_REQUEST (42): Both numPartitions or replicationFactor and replicasAssignments were set."
    if resolved.partitions <= 0:
        return "INVALID_PARTITIONS (37): Number of partitions must be larger than 0."
    if resolved.replication_factor <= 0:
        return "INVALID_REPLICATION_FACTOR (38): Replication factor must be larger than 0."
    if resolved.replication_factor > len(brokers):
        return (
            f"INVALID_REPLICATION_FACTOR (38): Replication factor: {resolved.replication_factor} larger than available "
            f"brokers: {len(brokers)}."
        )
    return None


def _rows_error(rows: Iterable[Sequence[int]]) -> str | None:
    listed = list(rows)
    if any(len(set(row)) != len(row) for row in listed):
        return "INVALID_REPLICA_ASSIGNMENT (39): Duplicate replica assignment found"
    if len({len(row) for row in listed}) != 1:
        return "INVALID_REPLICA_ASSIGNMENT (39): All partitions should have the same number of replicas"
    return None


def _ids_error(rows: Assignment) -> str | None:
    """As Kafka checks it: by the sum of the ids."""
    if sum(p for p in rows if p >= 0) != len(rows) * (len(rows) - 1) // 2:
        return "INVALID_REPLICA_ASSIGNMENT (39): partitions should be a consecutive 0-based integer sequence"
    return None


def _exists_error(topic: str) -> str:
    return f"TOPIC_ALREADY_EXISTS (36): Topic '{topic}' already exists."


def _name_error(topic: str) -> str | None:
    """Source: org.apache.kafka.common.internals.Topic#validate."""
    if topic in (".", "..") or not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", topic):
        return f"INVALID_TOPIC_EXCEPTION (17): Topic name is invalid: '{topic}'"
    return None


def _collision_error(topic: str, others: Iterable[str]) -> str | None:
    """Source: org.apache.kafka.common.internals.Topic#hasCollisionChars and #hasCollision."""
    if not {".", "_"} & {*topic}:
        return None
    twins = sorted(other for other in others if other.replace(".", "_") == topic.replace(".", "_"))
    return f"INVALID_TOPIC_EXCEPTION (17): Topic '{topic}' collides with existing topics: {twins}" if twins else None
