"""What Kafka's error codes mean for a change, and the answers that apply gets for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from confluent_kafka import KafkaError

from topicops.edges.connections.lookup import principal_of
from topicops.model.codes import Code
from topicops.model.plans.changes import Action, Change, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import Answer, AnswerKind

ACCEPTED = Answer(AnswerKind.ACCEPTED)
NO_CONTROLLER = Answer(AnswerKind.RETRY, "the brokers have elected no controller; nothing was sent", left=False)


UNNAMED_CODES: Mapping[str, int] = {
    "INCONSISTENT_TOPIC_ID": 103,
    "MISMATCHED_ENDPOINT_TYPE": 114,
    "UNSUPPORTED_ENDPOINT_TYPE": 115,
    "UNKNOWN_CONTROLLER_ID": 116,
}
"""Codes that confluent-kafka before 2.15 has no name for. Source: org.apache.kafka.common.protocol.Errors (3.9)."""


def _codes(names: str) -> frozenset[int]:
    return frozenset(UNNAMED_CODES.get(name) or getattr(KafkaError, name) for name in names.split())


RETRY_CODES = _codes(
    """
    BROKER_NOT_AVAILABLE LEADER_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
    OPERATION_NOT_ATTEMPTED REASSIGNMENT_IN_PROGRESS THROTTLING_QUOTA_EXCEEDED REBOOTSTRAP_REQUIRED
    """
)
"""The broker says that it did nothing, and that this passes."""
CONTROLLER_CODES = _codes("NOT_CONTROLLER STALE_CTRL_EPOCH UNKNOWN_CONTROLLER_ID")
"""The request went to a former controller. The client may have sent it before; the new one finishes what began."""
FAILED_CODES = _codes(
    """
    UNKNOWN_TOPIC_OR_PART TOPIC_ALREADY_EXISTS INVALID_PARTITIONS UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID

    TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED
    INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG INVALID_REQUEST POLICY_VIOLATION
    TOPIC_DELETION_DISABLED UNSUPPORTED_VERSION SECURITY_DISABLED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE
    SASL_AUTHENTICATION_FAILED PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED
    NO_REASSIGNMENT_IN_PROGRESS GROUP_SUBSCRIBED_TO_TOPIC RESOURCE_NOT_FOUND DUPLICATE_RESOURCE
    PRINCIPAL_DESERIALIZATION_FAILURE MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE LISTENER_NOT_FOUND
    LOG_DIR_NOT_FOUND
    """
)
"""Refusals of an administrator's request. The first line is also the answer to a request that the client repeated by
itself, as of a topic that is deleted or being deleted, or of which the total is reached; reading it once shows that."""
LOCAL_FAILED_CODES = _codes("_AUTHENTICATION _INVALID_ARG _NOT_IMPLEMENTED _UNSUPPORTED_FEATURE")
"""Librdkafka's own codes for a request that never left."""

RIGHTS: Mapping[Action, str] = {
    "create": "Create",
    "expand": "Alter",
    "configure": "AlterConfigs",
    "delete": "Delete or Describe (a delete needs both)",
}
"""The right that a change needs on its topic. Source: kafka.server.KafkaApis, ControllerApis (3.9)."""

TRANSPORT_CODES = CONTROLLER_CODES | {KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION}
"""Errors after which the client must read the cluster's metadata again."""


def answer_kind(code: int) -> AnswerKind:
    """Return the meaning of an error code, of a broker or of librdkafka itself (negative), for the change it answers.

    An unknown code is unclear: reading back is never wrong. Source: org.apache.kafka.common.protocol.Errors (3.9).
    """
    if code == KafkaError.NO_ERROR:
        return AnswerKind.ACCEPTED
    if code in RETRY_CODES:
        return AnswerKind.RETRY
    if code in CONTROLLER_CODES:
        return AnswerKind.CONTROLLER_MOVED
    if code in FAILED_CODES | LOCAL_FAILED_CODES:
        return AnswerKind.FAILED
    return AnswerKind.UNCLEAR


REQUESTS: Mapping[Action, str] = {
    "create": "CreateTopics",
    "expand": "CreatePartitions",
    "configure": "IncrementalAlterConfigs or AlterConfigs",
    "delete": "DeleteTopics",
}
REFUSED_BY_CLUSTER = _codes(
    "POLICY_VIOLATION INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT UNSUPPORTED_VERSION"
)
"""Refusals of what the cluster never takes, whoever asks."""


def with_advice(answer: Answer, code: int, change: Change, properties: Mapping[str, str]) -> Answer:
    """Add which right is missing, or which request the cluster refuses, and what to do: the brokers name none of it."""
    if code in REFUSED_BY_CLUSTER:
        return replace(answer, error=f"{answer.error}; the brokers refuse this {REQUESTS[change.action]}{_way(change)}")
    if code not in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return answer
    role = "deleter" if isinstance(change, DeleteTopic) else "applier"
    missing = f"{principal_of(properties)} lacks {RIGHTS[change.action]} on {change.topic} ({Code.MISSING_RIGHT})"
    advice = f"grant it, or name a connection that has it as cluster.kafka.{role}"
    return replace(answer, error=f"{answer.error}; {missing}: {advice}")


def _way(change: Change) -> str:
    if isinstance(change, CreateTopic | ExpandTopic) and change.assignment:
        return ", which names the brokers of each replica: where a service runs them, write cluster.kind: managed"
    return f" with replication factor {change.replication_factor}" if isinstance(change, CreateTopic) else ""


def no_answer(successor: str = "") -> Answer:
    """Answer for a request without reply; ``successor`` says that another broker has become the controller."""
    if successor:
        return controller_moved(Answer(AnswerKind.UNCLEAR, "no answer yet"), successor)
    return Answer(AnswerKind.UNCLEAR, "no answer within the deadline")


def controller_moved(answer: Answer, successor: str) -> Answer:
    return replace(
        answer, kind=AnswerKind.CONTROLLER_MOVED, error=f"{answer.error}; {successor} ({Code.CONTROLLER_MOVED})"
    )


def without_repeat(answer: Answer) -> Answer:
    """Return ``answer``, but never sent again: a delete by name could hit a new topic of that name."""
    return replace(answer, kind=AnswerKind.UNCLEAR) if answer.kind is AnswerKind.CONTROLLER_MOVED else answer


def dry_run_answer(answer: Answer) -> Answer:
    """Return ``answer``, but safe to ask for again: a dry run changes nothing."""
    unclear = answer.kind in (AnswerKind.UNCLEAR, AnswerKind.CONTROLLER_MOVED)
    return replace(answer, kind=AnswerKind.RETRY) if unclear else answer
