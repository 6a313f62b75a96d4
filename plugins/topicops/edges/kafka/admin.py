"""The only module that mutates a cluster: Kafka's Admin API, one answer for each change.

Create, expand and configure go through confluent-kafka; delete by topic id through kafka-python, which alone has it.
Nothing is ever sent twice from here: after an unclear answer the caller reads back what happened. The wait for an
answer ends when another broker becomes the controller.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType  # type: ignore[attr-defined]  # its stub re-exports without saying so
from kafka.protocol.admin import DeleteTopicsRequest

from topicops.edges.kafka.answers import (
    ACCEPTED,
    LOCAL_FAILED_CODES,
    NO_CONTROLLER,
    TRANSPORT_CODES,
    answer_kind,
    controller_moved,
    dry_run_answer,
    no_answer,
    with_advice,
    without_repeat,
)
from topicops.edges.kafka.clients.confluent import Confluent
from topicops.edges.kafka.clients.kafka_python_inside import Reconnecting
from topicops.edges.kafka.clients.settings import Deadline, error_text, wait_all
from topicops.edges.kafka.controller_watch import WATCH_S, ControllerWatch
from topicops.edges.threads import run_in_thread
from topicops.model.errors import ClusterError, UsageError
from topicops.model.plans.changes import Change, ConfigureTopic, CreateTopic, DeleteTopic, ExpandTopic
from topicops.model.ports import Answer, AnswerKind, Unoffered
from topicops.model.waits import waiting_for

AnyChange = TypeVar("AnyChange", CreateTopic, ExpandTopic, ConfigureTopic)
Futures: TypeAlias = Mapping[str, Future[Any]]
"""Futures of a request, one for each topic."""

GRACE_S = 5.0
"""Seconds that a future is waited for beyond librdkafka's own deadline."""
STOP_S = 4.0
"""Seconds that an answer is waited for after the run is asked to stop."""
DELETE_BY_ID_VERSION = 6
"""The first DeleteTopics that carries topic ids; an older broker must refuse, not guess."""


def cluster_id_of(client: Any, *, timeout_s: float) -> str:
    """Return the id that any broker gives. Raises ``KafkaException``.

    confluent-kafka 2.15, which Airflow 3.3 installs, has only ``describe_cluster``: it waits for the controller.
    """
    if hasattr(client, "cluster_id"):
        return str(client.cluster_id(timeout=timeout_s))
    return str(client.describe_cluster(request_timeout=timeout_s).result().cluster_id)


class KafkaAdmin:
    """Fills ``TopicAdmin`` with Kafka's Admin API.

    Args:
        applier: Librdkafka's properties of the identity that creates, expands and configures.
        deleter: Those of the identity that deletes; by default the applier's.
        operation_timeout_s: How long a broker may take over one request.
        request_timeout_s: How long one request may take in all; a quota mutes a connection for tens of seconds.
        interrupted: Once true, waits end early; what became of a request that was sent is then read back.
    """

    def __init__(
        self,
        applier: Mapping[str, str],
        *,
        deleter: Mapping[str, str] | None = None,
        operation_timeout_s: float = 45.0,
        request_timeout_s: float = 60.0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._applier = Confluent(applier)
        self._deleter = Confluent(applier if deleter is None else deleter)
        self._interrupted = interrupted
        self._watch = ControllerWatch(applier, interrupted)
        self._has_controller: bool | None = None
        """Answer of ``get_ready`` for the next request; None means that it did not ask."""
        self._delete_target: int | Answer | None = None
        """The controller that ``get_ready`` found for the next delete by id, or why not; None means not asked."""
        self._deletes_resume_at = 0.0
        """Time at which a quota lets the next delete by id through; nothing is sent before."""
        self._connections = Reconnecting(self._deleter.properties)
        self._operation_timeout_s = operation_timeout_s
        self._request_timeout_s = request_timeout_s
        self._timeouts = {"operation_timeout": operation_timeout_s, "request_timeout": request_timeout_s}

    def cluster_id(self) -> str:
        """Return the id of the cluster. Raises ``ConnectionSecurityError`` or ``ClusterUnreachableError``."""
        deadline = Deadline(self._request_timeout_s / 4)
        with waiting_for("the brokers' cluster id", limit_s=deadline.left_s):
            while True:
                try:
                    return cluster_id_of(self._applier.client(), timeout_s=min(1.0, deadline.left_s))
                except KafkaException as error:
                    # Librdkafka waits for the whole timeout although the login was refused.
                    if deadline.is_over or self._interrupted() or self._applier.is_refused():
                        failure = self._applier.failure("the brokers do not give their cluster id")
                        self._applier.discard()
                        raise failure from error

    def validate(self, changes: Sequence[Change]) -> Sequence[Answer]:
        """Return the answer of the brokers' dry run to each change; never unclear, since a dry run changes nothing."""
        answers: dict[int, Answer] = {}
        requests: Mapping[type[Change], Any] = {
            CreateTopic: self._create,
            ExpandTopic: self._expand,
            ConfigureTopic: self._configure,
        }
        for kind, request in requests.items():
            chosen = [index for index, change in enumerate(changes) if isinstance(change, kind)]
            dry_run = partial(request, validate_only=True)
            answers |= zip(chosen, self._dry_run([changes[index] for index in chosen], dry_run), strict=True)
        # A delete has no dry run.
        return [dry_run_answer(answers.get(index, ACCEPTED)) for index in range(len(changes))]

    def get_ready(self, change: Change) -> None:
        """Wait for a controller, and connect to it, so that the next request of this kind goes out at once."""
        if isinstance(change, DeleteTopic) and change.topic_id is not None:
            self._delete_target = self._found_delete_target()
            return
        client = self._deleter if isinstance(change, DeleteTopic) else self._applier
        self._has_controller = self._watch.has_controller(client.discard)

    def create(self, changes: Sequence[CreateTopic]) -> Sequence[Answer]:
        return self._answers(changes, self._create)

    def expand(self, changes: Sequence[ExpandTopic]) -> Sequence[Answer]:
        return self._answers(changes, self._expand)

    def configure(self, changes: Sequence[ConfigureTopic]) -> Sequence[Answer]:
        """Set and remove the overrides that a change names; all others stay.

        Brokers without ``SINGLE_OVERRIDES`` replace all overrides of a topic, so all are sent to them.
        """
        return self._answers(changes, self._configure)

    def delete(self, change: DeleteTopic) -> Answer:
        """Delete one topic by its id; by its name only where the cluster gives no ids."""
        return self._delete_by_name(change) if change.topic_id is None else self._delete_by_id(change)

    def close(self) -> None:
        self._applier.discard()
        self._deleter.discard()
        self._connections.close()
        self._watch.close()

    def _dry_run(self, changes: Sequence[Any], call: Callable[[Sequence[Any]], Futures]) -> list[Answer]:
        answers = self._answers(changes, call)
        is_alone = any(answer.kind is AnswerKind.SEND_ALONE for answer in answers)
        return [answer for c in changes for answer in self._answers([c], call)] if is_alone else answers

    def _may_send(self, forget: Callable[[], None]) -> bool:
        """Return whether there is a controller; asks only where no ``get_ready`` came before."""
        known, self._has_controller = self._has_controller, None
        return self._watch.has_controller(forget) if known is None else known

    def _create(self, changes: Sequence[CreateTopic], *, validate_only: bool = False) -> Futures:
        topics = [NewTopic(c.topic, c.partitions, config=dict(c.configs), **_placed(c)) for c in changes]
        futures: Futures = self._applier.client().create_topics(topics, **self._timeouts, validate_only=validate_only)
        return futures

    def _expand(self, changes: Sequence[ExpandTopic], *, validate_only: bool = False) -> Futures:
        partitions = [NewPartitions(c.topic, c.partitions, **_placed(c)) for c in changes]
        futures: Futures = self._applier.client().create_partitions(
            partitions, **self._timeouts, validate_only=validate_only
        )
        return futures

    def _configure(self, changes: Sequence[ConfigureTopic], *, validate_only: bool = False) -> Futures:
        """Send one request for the changes of single overrides, and one for those that replace all of a topic."""
        client = self._applier.client()
        single = [_config_resource(change) for change in changes if not change.precondition.all_overrides]
        whole = [
            ConfigResource(ResourceType.TOPIC, change.topic, set_config=dict(change.all_configs))
            for change in changes
            if change.precondition.all_overrides
        ]
        options = {"request_timeout": self._request_timeout_s, "validate_only": validate_only}
        futures: dict[ConfigResource, Future[Any]] = {}
        if single:
            futures |= client.incremental_alter_configs(single, **options)
        if whole:
            futures |= client.alter_configs(whole, **options)
        return {str(resource.name): future for resource, future in futures.items()}

    def _answers(self, changes: Sequence[AnyChange], call: Callable[[Sequence[AnyChange]], Futures]) -> list[Answer]:
        """Send the changes as one request, and wait for an answer to each."""
        if not changes:
            return []
        if not self._may_send(self._applier.discard):
            return [NO_CONTROLLER] * len(changes)
        try:
            futures = call(changes)
        except (KafkaException, ClusterError, ValueError, TypeError) as error:
            # The client refused before anything was sent; sent alone, only the bad change fails.
            kind = AnswerKind.SEND_ALONE if len(changes) > 1 else AnswerKind.FAILED
            return [Answer(kind, error_text(error), left=False)] * len(changes)
        successor = self._await(list(futures.values()))
        wait_s = self._applier.throttle_left_s()
        asked = [(change, futures[change.topic]) for change in changes]
        answers = [replace(self._answer(c, future, self._applier, successor), wait_s=wait_s) for c, future in asked]
        return self._checked_for_successor(answers)

    def _checked_for_successor(self, answers: Sequence[Answer]) -> list[Answer]:
        """Wait after an unclear answer until another broker takes over, because the controller may be dead."""
        is_unclear = any(answer.kind is AnswerKind.UNCLEAR for answer in answers)
        successor = self._watch.awaited_successor() if is_unclear else ""
        if not successor:
            return list(answers)
        return [controller_moved(a, successor) if a.kind is AnswerKind.UNCLEAR else a for a in answers]

    def _await(self, futures: Sequence[Future[Any]]) -> str:
        """Wait for all; stop when another broker becomes the controller, and give a sentence about that."""
        limit_s, stop = self._request_timeout_s + GRACE_S, None
        deadline = Deadline(limit_s)
        with waiting_for("the brokers' answer to a request", limit_s=limit_s):
            while not wait_all(futures, min(WATCH_S, deadline.left_s)) and not deadline.is_over:
                if successor := self._watch.successor():
                    return successor
                stop = stop or (Deadline(STOP_S) if self._interrupted() else None)
                if stop is not None and stop.is_over:
                    break
        return ""

    def _answer(self, change: Change, future: Future[Any], client: Confluent, successor: str = "") -> Answer:
        if not future.done():
            client.discard()
            return no_answer(successor)
        error = future.exception()
        if error is None:
            return ACCEPTED
        code = int(error.args[0].code()) if isinstance(error, KafkaException) else KafkaError.UNKNOWN
        return with_advice(_refusal(error, client), code, change, client.properties)

    def _delete_by_name(self, change: DeleteTopic) -> Answer:
        if not self._may_send(self._deleter.discard):
            return NO_CONTROLLER
        try:
            future: Future[Any] = self._deleter.client().delete_topics([change.topic], **self._timeouts)[change.topic]
        except (KafkaException, ClusterError, ValueError) as error:
            return Answer(AnswerKind.FAILED, error_text(error), left=False)
        self._await([future])
        answer = self._answer(change, future, self._deleter)
        return replace(without_repeat(answer), wait_s=self._deleter.throttle_left_s())

    def _delete_by_id(self, change: DeleteTopic) -> Answer:
        topic_id = _uuid_of(change.topic_id or "")
        if topic_id is None:
            return Answer(AnswerKind.FAILED, f"{change.topic_id!r} is not a topic id; plan again", left=False)
        if (wait_s := self._deletes_resume_at - time.monotonic()) > 0:
            return Answer(AnswerKind.RETRY, "a quota holds back the next delete; nothing was sent", wait_s, left=False)
        target, self._delete_target = self._delete_target, None
        if target is None:
            target = self._found_delete_target()
        return target if isinstance(target, Answer) else self._delete_at(target, change, topic_id)

    def _found_delete_target(self) -> int | Answer:
        """Return the controller, over an open connection; or the answer to a delete that cannot be sent to any."""
        try:
            if not self._watch.has_controller(self._connections.close):
                return NO_CONTROLLER
            # The broker just seen, if its address is known: it refuses if it is no longer the controller.
            seen, connections = self._watch.just_seen, self._connections()
            return seen if seen is not None and seen in connections.known() else connections.controller()
        except ClusterError as error:
            self._connections.close()
            return Answer(AnswerKind.RETRY, str(error), left=False)
        except UsageError as error:
            return Answer(AnswerKind.FAILED, str(error), left=False)

    def _delete_at(self, controller: int, change: DeleteTopic, topic_id: uuid.UUID) -> Answer:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(topic_id=topic_id)],
            timeout_ms=int(self._operation_timeout_s * 1000),
            min_version=DELETE_BY_ID_VERSION,
        )
        connections = self._connections()
        future = run_in_thread(lambda: connections.ask({controller: request}, timeout_s=self._request_timeout_s))
        successor = self._await([future])
        if not future.done():
            self._connections.current = None  # closing it would wait for the broker that is silent
            return no_answer(successor)
        [answer] = self._checked_for_successor([self._answer_of_reply(future.result()[controller], controller, change)])
        return answer

    def _answer_of_reply(self, reply: Any, controller: int, change: DeleteTopic) -> Answer:
        if isinstance(reply, Unoffered):
            return Answer(AnswerKind.FAILED, f"broker {controller} {reply}", left=False)
        if isinstance(reply, str):
            self._connections.close()
            return Answer(AnswerKind.UNCLEAR, f"broker {controller} {reply}")
        wait_s = reply.throttle_time_ms / 1000
        self._deletes_resume_at = time.monotonic() + wait_s
        code, message = reply.responses[0].error_code, reply.responses[0].error_message
        if code == KafkaError.NO_ERROR:
            return replace(ACCEPTED, wait_s=wait_s)
        if code in TRANSPORT_CODES:
            self._connections.close()
        error = KafkaError(code)
        # The request was sent once, so a broker that is not the controller has surely done nothing.
        kind = AnswerKind.RETRY if code == KafkaError.NOT_CONTROLLER else answer_kind(code)
        answer = Answer(kind, f"{error.name()} ({code}): {message or error.str()}", wait_s)
        return with_advice(answer, code, change, self._deleter.properties)


def _placed(change: CreateTopic | ExpandTopic) -> dict[str, Any]:
    """Return the rows; where the brokers place the replicas, how many each new topic's partition has."""
    if change.assignment:
        return {"replica_assignment": [list(change.assignment[partition]) for partition in sorted(change.assignment)]}
    return {"replication_factor": change.replication_factor} if isinstance(change, CreateTopic) else {}


def _config_resource(change: ConfigureTopic) -> ConfigResource:
    remove, put = AlterConfigOpType.DELETE, AlterConfigOpType.SET
    entries = [
        ConfigEntry(name, value, incremental_operation=remove if value is None else put)
        for name, value in change.configs.items()
    ]
    return ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)


def _refusal(error: BaseException, client: Confluent) -> Answer:
    if not isinstance(error, KafkaException):
        client.discard()
        return Answer(AnswerKind.UNCLEAR, error_text(error))
    reason: KafkaError = error.args[0]
    text = error_text(error)
    if reason.code() in TRANSPORT_CODES or reason.code() < KafkaError.UNKNOWN:
        reported = client.recent_errors()
        text = f"{text}; the client reported: {reported}" if reported else text
        client.discard()
    return Answer(answer_kind(reason.code()), text, left=reason.code() not in LOCAL_FAILED_CODES)


def _uuid_of(topic_id: str) -> uuid.UUID | None:
    """Return the 16 bytes behind a topic id, which znodes hold as URL-safe base64 without padding."""
    try:
        return uuid.UUID(bytes=base64.b64decode(topic_id + "==", altchars=b"-_", validate=True))
    except ValueError:
        return None
