"""A request to create a topic as brokers see it. Ours always gives the rows; others may give counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from topicops.model.cluster.snapshot import Assignment
from topicops.model.plans.changes import CreateTopic

NOT_GIVEN = -1
"""A count that the brokers choose: ``num.partitions``, ``default.replication.factor``."""
METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """One topic of a CreateTopics request.

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
