"""The only module that mutates a cluster: Kafka's Admin API, one answer for each change.

Create, expand and configure go through confluent-kafka; delete by topic id through kafka-python, which alone has it.
Nothing is ever sent twice from here: what an unclear answer means, the caller settles by reading back. An answer is
no longer waited for once another broker has become the controller.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar, assert_never

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stub re-exports without saying so
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from kafka.protocol.admin import DeleteTopicsRequest
from kafka.protocol.metadata import MetadataRequest

from topicops.edges.connections.lookup import principal_of
from topicops.edges.kafka.clients import (
    BrokerConnections,
    Confluent,
    Deadline,
    in_background,
    kafka_python_settings,
    settled,
)
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.changes import Action, Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import Answer, AnswerKind

AnyChange = TypeVar("AnyChange", CreateTopic, ExpandTopic, ConfigureTopic)

ACCEPTED = Answer(AnswerKind.ACCEPTED)
NO_CONTROLLER = Answer(AnswerKind.RETRY, "the brokers have elected no controller; nothing was sent", left=False)
NOBODY = -1
GRACE_S = 5.0
"""How much longer than librdkafka's own deadline a future is waited for."""
ELECTION_S = 20.0
"""How long a request waits for the election of a controller; a dead one's session lasts 18 s by default."""
WATCH_S = 1.0
"""How often it is asked, while an answer is awaited, whether another broker has become the controller."""
DELETE_BY_ID_VERSION = 6
"""The first DeleteTopics that carries topic ids; an older broker must refuse, not guess."""

RETRY_CODES = frozenset(
    {
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.OPERATION_NOT_ATTEMPTED,
        KafkaError.REASSIGNMENT_IN_PROGRESS,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.REBOOTSTRAP_REQUIRED,
    }
)
"""The broker says that it did nothing, and that this passes."""

CONTROLLER_CODES = frozenset({KafkaError.NOT_CONTROLLER, KafkaError.STALE_CTRL_EPOCH, KafkaError.UNKNOWN_CONTROLLER_ID})
"""It went to a former controller. The client may have sent it before, and the next one finishes what this one began."""

UNCLEAR_CODES = frozenset(
    {
        KafkaError.UNKNOWN,  # thrown anywhere between the first znode and the last
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.STALE_BROKER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    }
)

FAILED_CODES = frozenset(
    {
        # Also the echo of a request that the client repeated by itself: one look at the znodes tells.
        KafkaError.UNKNOWN_TOPIC_OR_PART,  # deleted already, or being deleted
        KafkaError.TOPIC_ALREADY_EXISTS,  # or its deletion is not over
        KafkaError.INVALID_PARTITIONS,  # the total is reached already
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        # What an administrator's request can meet.
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_REQUEST,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_DELETION_DISABLED,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.SECURITY_DISABLED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.ELECTION_NOT_NEEDED,
        KafkaError.NO_REASSIGNMENT_IN_PROGRESS,
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.RESOURCE_NOT_FOUND,
        KafkaError.DUPLICATE_RESOURCE,
        KafkaError.PRINCIPAL_DESERIALIZATION_FAILURE,
        KafkaError.MISMATCHED_ENDPOINT_TYPE,
        KafkaError.UNSUPPORTED_ENDPOINT_TYPE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.LOG_DIR_NOT_FOUND,
    }
)

LOCAL_FAILED_CODES = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's own codes are written so
        KafkaError._INVALID_ARG,  # noqa: SLF001
        KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001
    }
)
"""Librdkafka's own: the request never left."""

LOCAL_UNCLEAR_CODES = frozenset(range(-199, -136)) - LOCAL_FAILED_CODES
"""All its others: what became of the request they do not tell."""

FOREIGN_CODES = frozenset(
    {*range(1, 3), 4, 6, *range(9, 11), 12, *range(18, 29), 32, 43, *range(45, 54), 59}
    | {*range(61, 72), *range(74, 77), 78, 79, 81, 82, 87, 88, 90, *range(93, 97)}
    | {*range(110, 114), *range(117, 129), *range(130, 134)}
)
"""Answers to producers, consumers, groups, transactions, tokens, features and voters: none is ours to meet."""

RIGHTS: Mapping[Action, str] = {
    "create": "Create",
    "expand": "Alter",
    "configure": "AlterConfigs",
    "delete": "Delete or Describe (a delete takes both)",
}
"""What a change takes on its topic. Source: kafka.server.KafkaApis, ControllerApis (3.9)."""

TRANSPORT_CODES = CONTROLLER_CODES | {KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION}
"""After these the client's picture of the cluster is not worth keeping."""


class KafkaAdmin:
    """Fills ``TopicAdmin`` with Kafka's Admin API.

    Args:
        applier: Librdkafka's properties of the identity that creates, expands and configures.
        deleter: Of the one that deletes; without it the applier does.
        operation_timeout_s: How long a broker may take over one request.
        request_timeout_s: How long one request may take in all; a quota mutes a connection for tens of seconds.
    """

    def __init__(
        self,
        applier: Mapping[str, str],
        *,
        deleter: Mapping[str, str] | None = None,
        topics_per_request: int = 20,
        partitions_per_request: int = 500,
        operation_timeout_s: float = 45.0,
        request_timeout_s: float = 60.0,
    ) -> None:
        self._applier_properties = applier
        self._applier = Confluent(applier)
        self._deleter_properties = applier if deleter is None else deleter
        self._deleter = Confluent(self._deleter_properties)
        self._watch = _ControllerWatch(applier)
        self._deletes_resume_at = 0.0
        """When a quota lets the next delete by id through; until then kafka-python sends nothing."""
        self._connections: BrokerConnections | None = None
        self._topics_per_request = topics_per_request
        self._partitions_per_request = partitions_per_request
        self._operation_timeout_s = operation_timeout_s
        self._request_timeout_s = request_timeout_s

    def cluster_id(self) -> str:
        """The brokers' word for the cluster they form.

        Raises:
            ConnectionSecurityError: They do not let this identity in, or this client does not trust them.
            ClusterUnreachableError: No broker answers.
        """
        deadline = Deadline(self._request_timeout_s / 4)
        while True:
            try:
                # Not describe_cluster, which waits for the controller: any broker knows this.
                return str(self._applier.client().cluster_id(timeout=min(1.0, deadline.left_s)))
            except KafkaException as error:
                # A refused login ends no call of librdkafka's before its time.
                if deadline.is_over or self._applier.is_refused():
                    failure = self._applier.failure("the brokers do not tell their cluster id")
                    self._applier.discard()
                    raise failure from error

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Each change as the brokers' dry run judges it; here nothing can have happened, so nothing is unclear."""
        answers: dict[int, Answer] = {}
        for kind, send in self._dry_runs():
            chosen = [index for index, change in enumerate(changes) if isinstance(change, kind)]
            answers |= zip(chosen, send([changes[index] for index in chosen]), strict=True)
        return [_dry(answers[index]) for index in range(len(changes))]

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]:
        """Create topics, each with the replicas of its plan."""
        return self._create(changes, validate_only=False)

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]:
        """Bring topics to their new total of partitions, the new ones placed as planned."""
        return self._expand(changes, validate_only=False)

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]:
        """Set and remove the overrides that a change names; all others stay."""
        return self._configure(changes, validate_only=False)

    def delete(self, change: DeleteTopic) -> Answer:
        """Delete one topic by its id; by its name only where the cluster gives no ids."""
        return self._delete_by_name(change) if change.topic_id is None else self._delete_by_id(change)

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._applier.discard()
        self._deleter.discard()
        self._drop_connections()
        self._watch.close()

    def _dry_runs(self) -> Iterator[tuple[type[Change], Callable[[Any], Sequence[Answer]]]]:
        yield CreateTopic, lambda changes: self._create(changes, validate_only=True)
        yield ExpandTopic, lambda changes: self._expand(changes, validate_only=True)
        yield ConfigureTopic, lambda changes: self._configure(changes, validate_only=True)
        yield DeleteTopic, lambda changes: [self._deletable(change) for change in changes]

    def _create(self, changes: Sequence[CreateTopic], *, validate_only: bool) -> list[Answer]:
        def call(batch: Sequence[CreateTopic]) -> Mapping[str, Future[Any]]:
            topics = [_new_topic(change) for change in batch]
            futures: Mapping[str, Future[Any]] = self._applier.client().create_topics(
                topics, **self._timeouts, validate_only=validate_only
            )
            return futures

        return self._in_batches(changes, call)

    def _expand(self, changes: Sequence[ExpandTopic], *, validate_only: bool) -> list[Answer]:
        def call(batch: Sequence[ExpandTopic]) -> Mapping[str, Future[Any]]:
            partitions = [_new_partitions(change) for change in batch]
            futures: Mapping[str, Future[Any]] = self._applier.client().create_partitions(
                partitions, **self._timeouts, validate_only=validate_only
            )
            return futures

        return self._in_batches(changes, call)

    def _configure(self, changes: Sequence[ConfigureTopic], *, validate_only: bool) -> list[Answer]:
        def call(batch: Sequence[ConfigureTopic]) -> Mapping[str, Future[Any]]:
            futures: Mapping[ConfigResource, Future[Any]] = self._applier.client().incremental_alter_configs(
                [_config_resource(change) for change in batch],
                request_timeout=self._request_timeout_s,
                validate_only=validate_only,
            )
            return {resource.name: future for resource, future in futures.items()}

        return self._in_batches(changes, call)

    def _in_batches(
        self,
        changes: Sequence[AnyChange],
        call: Callable[[Sequence[AnyChange]], Mapping[str, Future[Any]]],
    ) -> list[Answer]:
        found = batches(changes, self._topics_per_request, self._partitions_per_request)
        return [answer for batch in found for answer in self._answers(batch, call)]

    def _answers(
        self, batch: Sequence[AnyChange], call: Callable[[Sequence[AnyChange]], Mapping[str, Future[Any]]]
    ) -> list[Answer]:
        if not self._watch.has_controller(self._applier.discard):
            return [NO_CONTROLLER] * len(batch)
        try:
            futures = call(batch)
        except (KafkaException, ValueError, TypeError) as error:
            if len(batch) > 1:
                # Refused by the client before anything was sent: one by one, so that only the bad one fails.
                return [answer for change in batch for answer in self._answers([change], call)]
            return [Answer(AnswerKind.FAILED, _text_of(error), left=False)]
        moved = self._await(list(futures.values()))
        wait_s = self._applier.throttle_left_s()
        answers = [replace(self._answer(change, futures[change.topic], moved), wait_s=wait_s) for change in batch]
        return self._after_doubt(answers)

    def _after_doubt(self, answers: Sequence[Answer]) -> list[Answer]:
        """A connection that broke may mean that the controller died: then another one is about to take over."""
        if any(answer.kind is AnswerKind.UNCLEAR for answer in answers) and (moved := self._watch.succeeded()):
            return [_moved(answer, moved) if answer.kind is AnswerKind.UNCLEAR else answer for answer in answers]
        return list(answers)

    def _await(self, futures: Sequence[Future[Any]]) -> str:
        """Wait for all; when another broker becomes the controller meanwhile, no longer, and the answer is why."""
        deadline = Deadline(self._request_timeout_s + GRACE_S)
        while not settled(futures, min(WATCH_S, deadline.left_s)) and not deadline.is_over:
            if moved := self._watch.moved():
                return moved
        return ""

    def _answer(self, change: Change, future: Future[Any], moved: str) -> Answer:
        if not future.done():
            self._applier.discard()
            return _no_answer(moved)
        error = future.exception()
        if error is None:
            return ACCEPTED
        return _with_right(_refusal(error, self._applier), _code_of(error), change, self._applier_properties)

    def _deletable(self, change: DeleteTopic) -> Answer:
        """Deletes have no dry run; but a connection that cannot be used is better known before the first change."""
        if change.topic_id is None:
            return ACCEPTED
        try:
            kafka_python_settings(self._deleter_properties)
        except UsageError as error:
            return Answer(AnswerKind.FAILED, str(error))
        return ACCEPTED

    def _delete_by_name(self, change: DeleteTopic) -> Answer:
        if not self._watch.has_controller(self._deleter.discard):
            return NO_CONTROLLER
        try:
            future: Future[Any] = self._deleter.client().delete_topics([change.topic], **self._timeouts)[change.topic]
        except (KafkaException, ValueError) as error:
            return Answer(AnswerKind.FAILED, _text_of(error), left=False)
        self._await([future])
        wait_s = self._deleter.throttle_left_s()
        if not future.done():
            self._deleter.discard()
            return _no_answer("")
        refused = future.exception()
        if refused is None:
            return replace(ACCEPTED, wait_s=wait_s)
        answer = _with_right(_refusal(refused, self._deleter), _code_of(refused), change, self._deleter_properties)
        return replace(_never_again(answer), wait_s=wait_s)

    def _delete_by_id(self, change: DeleteTopic) -> Answer:
        topic_id = _uuid_of(change.topic_id or "")
        if topic_id is None:
            return Answer(AnswerKind.FAILED, f"{change.topic_id!r} is not a topic id; plan again", left=False)
        if (wait_s := self._deletes_resume_at - time.monotonic()) > 0:
            return Answer(AnswerKind.RETRY, "a quota holds back the next delete; nothing was sent", wait_s, left=False)
        try:
            if not self._watch.has_controller(self._drop_connections):
                return NO_CONTROLLER
            connections = self._connected()
            controller = self._controller_for(connections)
        except ClusterError as error:
            self._drop_connections()
            return Answer(AnswerKind.RETRY, str(error), left=False)
        except UsageError as error:
            return Answer(AnswerKind.FAILED, str(error), left=False)
        return self._delete_at(controller, change, topic_id, connections)

    def _controller_for(self, connections: BrokerConnections) -> int:
        """As just seen, where these connections know the way to it; it refuses if it is the controller no more."""
        seen = self._watch.just_seen
        return seen if seen is not None and connections.has_heard_of(seen) else connections.controller()

    def _delete_at(
        self, controller: int, change: DeleteTopic, topic_id: uuid.UUID, connections: BrokerConnections
    ) -> Answer:
        request = {controller: self._delete_request(topic_id)}
        future = in_background(lambda: connections.ask(request, timeout_s=self._request_timeout_s))
        moved = self._await([future])
        if not future.done():
            self._connections = None  # closing it would wait for the broker that is silent
            return _no_answer(moved)
        [answer] = self._after_doubt([self._answer_of_reply(future.result()[controller], controller, change)])
        return answer

    def _answer_of_reply(self, reply: Any, controller: int, change: DeleteTopic) -> Answer:
        if isinstance(reply, str):
            self._drop_connections()
            return Answer(AnswerKind.UNCLEAR, f"broker {controller} {reply}")
        wait_s = reply.throttle_time_ms / 1000
        self._deletes_resume_at = time.monotonic() + wait_s
        code, message = reply.responses[0].error_code, reply.responses[0].error_message
        if code == KafkaError.NO_ERROR:
            return replace(ACCEPTED, wait_s=wait_s)
        if code in TRANSPORT_CODES:
            self._drop_connections()
        error = KafkaError(code)
        # It was sent once, so a broker that is not the controller has surely done nothing.
        kind = AnswerKind.RETRY if code == KafkaError.NOT_CONTROLLER else kind_of(code)
        answer = Answer(kind, f"{error.name()} ({code}): {message or error.str()}", wait_s)
        return _with_right(answer, code, change, self._deleter_properties)

    def _delete_request(self, topic_id: uuid.UUID) -> Any:
        return DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(topic_id=topic_id)],
            timeout_ms=int(self._operation_timeout_s * 1000),
            min_version=DELETE_BY_ID_VERSION,
        )

    def _connected(self) -> BrokerConnections:
        if self._connections is None:
            self._connections = BrokerConnections(self._deleter_properties)
        return self._connections

    def _drop_connections(self) -> None:
        if self._connections is not None:
            self._connections.close()
        self._connections = None

    @property
    def _timeouts(self) -> dict[str, float]:
        return {"operation_timeout": self._operation_timeout_s, "request_timeout": self._request_timeout_s}


class _ControllerWatch:
    """Which broker the others take for the controller, asked anew each time.

    Librdkafka asks once and goes on with the one that it knew: after that broker died, until the request's time is up.
    Where kafka-python cannot use the connection, nothing is known, and nothing is held up.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._connections: BrokerConnections | None = None
        self._is_usable = True
        self._controller: int | None = None
        """At the last request."""
        self.just_seen: int | None = None
        """What the last look of ``has_controller`` found; None where nobody could tell."""

    def has_controller(self, forget: Callable[[], None]) -> bool:
        """Wait for an election where there is none; ``forget`` is called when it is another broker than before."""
        deadline = Deadline(ELECTION_S)
        while (found := self._look()) == NOBODY:
            if deadline.is_over:
                return False
            time.sleep(WATCH_S / 4)
        self.just_seen = found
        if found is not None:
            if self._controller not in (None, found):
                forget()
            self._controller = found
        return True

    def moved(self) -> str:
        """A sentence when by now another broker is the controller than at the last request; else nothing."""
        found = self._look()
        if found in (None, NOBODY, self._controller):
            return ""
        return f"broker {found} has become the controller since it was sent to broker {self._controller}"

    def succeeded(self) -> str:
        """Like ``moved``, and waits for the election where the controller of the last request is silent."""
        deadline = Deadline(ELECTION_S)
        while not (moved := self.moved()) and not self._answers() and not deadline.is_over:
            time.sleep(WATCH_S / 4)
        return moved

    def _answers(self) -> bool:
        """Whether the controller does; True where nobody can tell, since nothing is to be waited for then."""
        if self._controller is None or self._connections is None:
            return True
        answers = self._connections.ask({self._controller: MetadataRequest(topics=[])})
        return not isinstance(answers[self._controller], str)

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()
        self._connections = None

    def _look(self) -> int | None:
        """Its id; ``NOBODY`` while there is none; None where nobody can tell."""
        if not self._is_usable:
            return None
        try:
            self._connections = self._connections or BrokerConnections(self._properties, request_timeout_s=WATCH_S)
            found = self._connections.elected()
        except UsageError:
            self._is_usable = False
            return None
        except ClusterError:
            self.close()
            return None
        return NOBODY if found is None else found


def kind_of(code: int) -> AnswerKind:
    """What an error code, of a broker or of librdkafka itself (negative), means for the change it answers.

    A code nobody thought of is unclear: reading back is never wrong.
    Source: org.apache.kafka.common.protocol.Errors (3.9).
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


def batches(
    changes: Sequence[AnyChange], topics_per_request: int, partitions_per_request: int
) -> Iterator[Sequence[AnyChange]]:
    """The changes in their order, cut where a request would grow over a limit; one that is too big goes alone."""
    batch: list[AnyChange] = []
    partitions = 0
    for change in changes:
        added = new_partitions(change)
        if batch and (len(batch) >= topics_per_request or partitions + added > partitions_per_request):
            yield batch
            batch, partitions = [], 0
        batch.append(change)
        partitions += added
    if batch:
        yield batch


def new_partitions(change: CreateTopic | ExpandTopic | ConfigureTopic) -> int:
    """How many partitions the controller has to make for it."""
    match change:
        case CreateTopic():
            return change.partitions
        case ExpandTopic():
            return change.partitions - change.partitions_before
        case ConfigureTopic():
            return 0
        case _:
            assert_never(change)


def _new_topic(change: CreateTopic) -> NewTopic:
    rows = [list(change.assignment[partition]) for partition in sorted(change.assignment)]
    return NewTopic(change.topic, change.partitions, replica_assignment=rows, config=dict(change.configs))


def _new_partitions(change: ExpandTopic) -> NewPartitions:
    rows = [list(change.assignment[partition]) for partition in sorted(change.assignment)]
    return NewPartitions(change.topic, change.partitions, replica_assignment=rows)


def _config_resource(change: ConfigureTopic) -> ConfigResource:
    entries = [
        ConfigEntry(name, value, incremental_operation=_operation(value)) for name, value in change.configs.items()
    ]
    return ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)


def _operation(value: str | None) -> AlterConfigOpType:
    return AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET


def _refusal(error: BaseException, client: Confluent) -> Answer:
    if not isinstance(error, KafkaException):
        client.discard()
        return Answer(AnswerKind.UNCLEAR, _text_of(error))
    reason: KafkaError = error.args[0]
    text = _text_of(error)
    if reason.code() in TRANSPORT_CODES or reason.code() < KafkaError.UNKNOWN:
        text = _with_last_words(text, client)
        client.discard()
    return Answer(kind_of(reason.code()), text, left=reason.code() not in LOCAL_FAILED_CODES)


def _code_of(error: BaseException) -> int:
    return int(error.args[0].code()) if isinstance(error, KafkaException) else KafkaError.UNKNOWN


def _with_right(answer: Answer, code: int, change: Change, properties: Mapping[str, str]) -> Answer:
    """Where a right is missing: which one, whose, and the two ways out. Brokers name none of it."""
    if code not in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return answer
    role = "deleter" if isinstance(change, DeleteTopic) else "applier"
    lacking = f"{principal_of(properties)} lacks {RIGHTS[change.action]} on {change.topic} (TOP804)"
    way_out = f"grant it, or name a connection that has it as cluster.kafka.{role}"
    return replace(answer, error=f"{answer.error}; {lacking}: {way_out}")


def _no_answer(moved: str) -> Answer:
    if moved:
        return _moved(Answer(AnswerKind.UNCLEAR, "no answer yet"), moved)
    return Answer(AnswerKind.UNCLEAR, "no answer within the deadline")


def _moved(answer: Answer, moved: str) -> Answer:
    return replace(answer, kind=AnswerKind.CONTROLLER_MOVED, error=f"{answer.error}; {moved} (TOP508)")


def _never_again(answer: Answer) -> Answer:
    """A delete by name may meet a topic that was made anew: it is not repeated after a doubt."""
    return replace(answer, kind=AnswerKind.UNCLEAR) if answer.kind is AnswerKind.CONTROLLER_MOVED else answer


def _dry(answer: Answer) -> Answer:
    doubtful = answer.kind in (AnswerKind.UNCLEAR, AnswerKind.CONTROLLER_MOVED)
    return replace(answer, kind=AnswerKind.RETRY) if doubtful else answer


def _text_of(error: BaseException) -> str:
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        reason = error.args[0]
        return f"{reason.name()} ({reason.code()}): {reason.str()}"
    return str(error) or "no answer within the deadline"


def _with_last_words(text: str, client: Confluent) -> str:
    words = client.last_words()
    return f"{text}; last heard: {words}" if words else text


def _uuid_of(topic_id: str) -> uuid.UUID | None:
    """The 16 bytes behind a topic id, which znodes hold as URL-safe base64 without padding."""
    try:
        return uuid.UUID(bytes=base64.b64decode(topic_id + "==", altchars=b"-_", validate=True))
    except ValueError:
        return None
