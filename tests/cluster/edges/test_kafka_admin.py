"""Kafka's Admin API against three real brokers: what lands, what is left alone, and what one bad topic does."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from kafka.protocol.admin import AlterClientQuotasRequest

from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of, rows, sandbox
from fakes.fake_ports import FakeAuditLog, FakeJournal, FakeLease
from fixtures.live import remove_topics, until
from topicops.edges.kafka.admin import STOP_S, KafkaAdmin
from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.clients.settings import CLIENT_ID
from topicops.edges.kafka.controller_watch import ControllerWatch
from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.edges.zookeeper.reader import ZooKeeperReader
from topicops.model.cluster.snapshot import LiveTopic
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.changes import Change
from topicops.model.plans.plan import Plan
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Clock
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.model.specs.environment import Apply, Policy
from topicops.steps.applying.apply import apply
from topicops_local.cluster import LocalCluster

DONE = OutcomeStatus.DONE
NO_BROKER = {"bootstrap.servers": "127.0.0.1:1"}


@dataclass
class Workbench:
    """An admin, a reader of the znodes, and topic names of this test."""

    admin: KafkaAdmin
    reader: ZooKeeperReader
    bootstrap_servers: str
    names: list[str] = field(default_factory=list)

    def name(self, word: str) -> str:
        name = f"k-admin.{word}.{uuid.uuid4().hex[:8]}"
        self.names.append(name)
        return name

    def live(self, topic: str) -> LiveTopic:
        live = self.reader.traces([topic])[topic].live
        assert live is not None
        return live

    def exists(self, topic: str) -> bool:
        return self.reader.traces([topic])[topic].live is not None

    def create(self, word: str, *replicas: tuple[int, ...], configs: dict[str, str] | None = None) -> LiveTopic:
        topic = self.name(word)
        assert_accepted(self.admin.create([create_topic(topic, *replicas, configs=configs)]))
        return self.live(topic)

    def wait_until_gone(self, topic: str) -> None:
        until(lambda: self.reader.traces([topic])[topic].is_gone)


@pytest.fixture
def workbench(local_cluster: LocalCluster) -> Iterator[Workbench]:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    admin = KafkaAdmin(properties)
    with ZooKeeperReader(local_cluster.zookeeper_hosts) as reader:
        bench = Workbench(admin, reader, local_cluster.bootstrap_servers)
        yield bench
        remove_topics(local_cluster, bench.names)
    admin.close()


def test_cluster_id_is_the_one_in_zookeeper(workbench: Workbench) -> None:
    assert workbench.admin.cluster_id() == workbench.reader.cluster_id()


def test_created_topics_land_exactly_where_they_were_placed(workbench: Workbench) -> None:
    changes = [
        create_topic(workbench.name("one"), (3, 1), (1, 2), (2, 3), configs={"retention.ms": "1000"}),
        create_topic(workbench.name("two"), (2,)),
        create_topic(workbench.name("three"), (1, 2, 3), (1, 2, 3)),
    ]

    assert_accepted(workbench.admin.create(changes))

    lives = [workbench.live(change.topic) for change in changes]
    assert [live.assignment for live in lives] == [change.assignment for change in changes]
    assert [live.overrides for live in lives] == [{"retention.ms": "1000"}, {}, {}]


def test_expansion_adds_the_planned_rows_and_moves_none(workbench: Workbench) -> None:
    before = workbench.create("expand", (1, 2))

    assert_accepted(workbench.admin.expand([expand_topic(before, (3, 1), (2, 3))]))

    assert workbench.live(before.name).assignment == rows((1, 2), (3, 1), (2, 3))


def test_delete_with_the_id_of_an_earlier_topic_deletes_nothing(workbench: Workbench) -> None:
    first = workbench.create("reborn", (1, 2))
    assert_accepted([workbench.admin.delete(delete_topic(first))])
    workbench.wait_until_gone(first.name)
    assert_accepted(workbench.admin.create([create_topic(first.name, (2, 3))]))
    second = workbench.live(first.name)

    answer = workbench.admin.delete(delete_topic(first))

    assert (answer.kind, answer.error.partition(":")[0]) == (AnswerKind.FAILED, "UNKNOWN_TOPIC_ID (100)")
    traces = workbench.reader.traces([first.name])[first.name]
    assert traces.live is not None
    assert (traces.live.topic_id, traces.is_deleting) == (second.topic_id, False)


def test_delete_without_an_id_goes_by_name(workbench: Workbench) -> None:
    live = workbench.create("by-name", (1,))

    assert_accepted([workbench.admin.delete(replace(delete_topic(live), topic_id=None))])

    workbench.wait_until_gone(live.name)


def test_delete_with_something_that_is_no_id_is_not_sent(workbench: Workbench) -> None:
    live = workbench.create("no-id", (1,))

    answer = workbench.admin.delete(replace(delete_topic(live), topic_id="czxid:7"))

    assert answer == Answer(AnswerKind.FAILED, "'czxid:7' is not a topic id; plan again", left=False)
    assert workbench.exists(live.name)


def test_bad_topics_fail_and_the_others_of_their_request_succeed(workbench: Workbench) -> None:
    good = [create_topic(workbench.name(f"good-{i}"), (1, 2)) for i in range(2)]
    uneven = create_topic(workbench.name("uneven"), (1, 2), (1,))
    unknown = create_topic(workbench.name("unknown"), (1,), configs={"retention.mz": "1"})
    unbuildable = replace(create_topic(workbench.name("unbuildable"), (1,)), partitions=3)

    plan = plan_of(good[0], uneven, unknown, unbuildable, good[1])
    lease = FakeLease()
    outcomes = apply_with(workbench, plan, lease=lease, validate_only=False)

    failed = OutcomeStatus.FAILED
    assert [outcome.status for outcome in outcomes] == [DONE, failed, failed, failed, DONE]
    assert outcomes[1].message.startswith("INVALID_REPLICA_ASSIGNMENT (39): ")
    assert outcomes[2].message.startswith("INVALID_CONFIG (40): ")
    assert [outcome.sent for outcome in outcomes] == [True, True, True, False, True]
    assert lease.confirmations == 2 + len(outcomes)  # before the first reading, the whole request, each alone
    assert [workbench.exists(change.topic) for change in (*good, uneven, unknown, unbuildable)] == [True] * 2 + [
        False
    ] * 3


def test_a_lease_lost_while_a_request_waits_for_a_controller_leaves_it_unsent(workbench: Workbench) -> None:
    topic, lease = workbench.name("late"), FakeLease()
    workbench.admin._watch = _SlowWatch(workbench.admin, lease.lose)

    (outcome,) = apply_with(workbench, plan_of(create_topic(topic, (1,))), lease=lease, validate_only=False)

    assert (outcome.status, outcome.sent) == (OutcomeStatus.NOT_SENT, False)
    assert not workbench.exists(topic)


def test_a_topic_made_again_while_its_delete_by_name_waits_for_a_controller_stays(workbench: Workbench) -> None:
    live = workbench.create("again", (1,))

    def make_again() -> None:
        assert_accepted([admin.delete(delete_topic(live))])
        workbench.wait_until_gone(live.name)
        assert_accepted(admin.create([create_topic(live.name, (1,))]))

    admin = KafkaAdmin({"bootstrap.servers": workbench.bootstrap_servers})
    workbench.admin._watch = _SlowWatch(workbench.admin, make_again)

    (outcome,) = apply_with(workbench, plan_of(replace(delete_topic(live), topic_id=None)))
    admin.close()

    assert outcome.status is OutcomeStatus.REFUSED
    assert workbench.live(live.name).topic_id != live.topic_id


def test_dry_run_judges_each_change_in_its_place_and_changes_nothing(workbench: Workbench) -> None:
    live = workbench.create("dry", (1, 2), configs={"retention.ms": "1000"})
    other = workbench.create("dry-other", (1, 2))
    new = create_topic(workbench.name("dry-new"), (1,))
    changes: list[Change] = [
        configure_topic(live, {"retention.ms": "2000"}),
        create_topic(live.name, (1,)),
        new,
        delete_topic(live),
        expand_topic(live, (2, 3)),
        configure_topic(other, {"retention.ms": "-7"}),
    ]

    answers = workbench.admin.validate(changes)

    kinds = ["accepted", "failed", "accepted", "accepted", "accepted", "failed"]
    assert [answer.kind for answer in answers] == kinds
    assert not workbench.exists(new.topic)
    assert workbench.live(live.name) == live


@pytest.mark.soak
def test_a_controller_that_dies_leaves_no_change_undone_or_unknown(
    local_cluster: LocalCluster, workbench: Workbench
) -> None:
    old = workbench.create("outlives", (1, 2, 3))
    controller = workbench.reader.snapshot().controller_id
    assert controller is not None
    living = tuple(broker for broker in (1, 2, 3) if broker != controller)
    plan = plan_of(create_topic(workbench.name("survives"), living), configure_topic(old, {"retention.ms": "1000"}))

    local_cluster.kill(controller)
    try:
        outcomes = apply_with(workbench, plan)
    finally:
        local_cluster.start_broker(controller)

    assert [outcome.status for outcome in outcomes] == [OutcomeStatus.DONE] * 2
    assert workbench.live(old.name).overrides == {"retention.ms": "1000"}


def test_a_mutation_quota_is_told_and_honoured_by_waiting(local_cluster: LocalCluster, workbench: Workbench) -> None:
    change = create_topic(workbench.name("muted"), *[(1,)] * 50)
    with mutation_quota(local_cluster, per_second=4):  # 44 at once
        (created,) = workbench.admin.create([change])
        delete = delete_topic(workbench.live(change.topic))
        refused = workbench.admin.delete(delete)
        (deleted,) = apply_with(workbench, plan_of(delete))

    assert created.kind is AnswerKind.ACCEPTED
    assert created.wait_s > 0  # the connection is muted meanwhile
    assert (refused.kind, refused.error.partition(":")[0]) == (AnswerKind.RETRY, "THROTTLING_QUOTA_EXCEEDED (89)")
    assert refused.wait_s > 0
    assert deleted.status is OutcomeStatus.DONE
    workbench.wait_until_gone(change.topic)


def test_silence_is_unclear_and_names_what_the_client_last_heard() -> None:
    admin = KafkaAdmin(NO_BROKER, operation_timeout_s=0.2, request_timeout_s=0.5)

    (answer,) = admin.create([create_topic("never", (1,))])

    assert answer.kind is AnswerKind.UNCLEAR
    assert "Connection refused" in answer.error


def test_an_interrupt_ends_the_wait_for_an_answer_within_seconds() -> None:
    admin, began = KafkaAdmin(NO_BROKER, interrupted=lambda: True), time.monotonic()

    (answer,) = admin.create([create_topic("never", (1,))])

    assert answer.kind is AnswerKind.UNCLEAR
    assert time.monotonic() - began < STOP_S + 6


def test_delete_that_finds_no_broker_was_not_sent() -> None:
    admin = KafkaAdmin(NO_BROKER, request_timeout_s=1.0)

    answer = admin.delete(replace(delete_topic(_absent()), topic_id="AAAAAAAAAAAAAAAAAAAABA"))

    assert answer.kind is AnswerKind.RETRY


def test_unreachable_brokers_have_no_cluster_id() -> None:
    with pytest.raises(ClusterUnreachableError, match="Connection refused"):
        KafkaAdmin(NO_BROKER, request_timeout_s=2.0).cluster_id()


def apply_with(
    workbench: Workbench, plan: Plan, *, lease: FakeLease | None = None, validate_only: bool = True
) -> Sequence[Outcome]:
    """Return what apply makes of it, with everything but the cluster pretended."""
    with closing(BrokerQuestions({"bootstrap.servers": workbench.bootstrap_servers})) as questions:
        return apply(
            plan,
            ApplyPorts(
                reader=workbench.reader,
                admin=workbench.admin,
                lease=lease or FakeLease(),
                journal=FakeJournal(),
                audit=FakeAuditLog(),
                questions=questions,
            ),
            environment=msgspec.structs.replace(
                sandbox(), policy=Policy(delete_active="allow"), apply=Apply(validate_only=validate_only)
            ),
            clock=Clock(),
        )


class _SlowWatch(ControllerWatch):
    """Waits for a controller, once, while something else happens."""

    def __init__(self, admin: KafkaAdmin, meanwhile: Callable[[], object]) -> None:
        super().__init__(admin._applier.properties)
        self._meanwhile: Callable[[], object] | None = meanwhile

    def has_controller(self, forget: Callable[[], None]) -> bool:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            meanwhile()
        return super().has_controller(forget)


@contextmanager
def mutation_quota(cluster: LocalCluster, *, per_second: float) -> Iterator[None]:
    """Limit how many partitions this tool may make and remove."""
    connections = BrokerConnections({"bootstrap.servers": cluster.bootstrap_servers})
    entity = AlterClientQuotasRequest.EntryData.EntityData(entity_type="client-id", entity_name=CLIENT_ID)

    def put(*, remove: bool) -> None:
        limit = AlterClientQuotasRequest.EntryData.OpData(
            key="controller_mutation_rate", value=per_second, remove=remove
        )
        entry = AlterClientQuotasRequest.EntryData(entity=[entity], ops=[limit])
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        [reply] = connections.ask({connections.controller(): request}).values()
        assert reply.entries[0].error_code == 0

    put(remove=False)
    try:
        time.sleep(0.5)  # until the brokers have heard of it
        yield
    finally:
        put(remove=True)
        connections.close()


def assert_accepted(answers: object) -> None:
    assert isinstance(answers, list)
    assert answers == [Answer(AnswerKind.ACCEPTED)] * len(answers)


def _absent() -> LiveTopic:
    return LiveTopic(name="absent", topic_id=None, czxid=1, mzxid=1, assignment=rows((1,)))
