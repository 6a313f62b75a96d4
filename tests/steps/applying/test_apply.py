"""Apply sends what may run, once, and only to topics that are as the plan saw them."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of, reassign_topic, sandbox
from fakes.fake_ports import FakeAuditLog, FakeClock, FakeJournal, FakeLease, FakeMover
from fakes.resting_cluster import (
    CONNECTION_LOST,
    CONTROLLER_DIED,
    CONTROLLER_DIED_AFTER,
    MUST_WAIT,
    REFUSED_BY_POLICY,
    UNCLEAR_AND_NOT_DONE,
    UNCLEAR_BUT_DONE,
    Fault,
    RestingCluster,
)
from topicops.model.cluster.snapshot import TopicTraces
from topicops.model.errors import ClusterError
from topicops.model.plans.changes import ACTIONS, Action, Change, GateWord
from topicops.model.plans.plan import Plan, TopicActivity
from topicops.model.ports import Answer, AnswerKind, ApplyPorts, Begun, Clock
from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.model.specs.environment import EnvironmentSpec
from topicops.steps.applying.apply import NO_MOVER, apply
from topicops.steps.applying.ledger import NOT_READ
from topicops.steps.applying.read_back import ELECTION_S, UNCLEAR_S
from topicops.steps.applying.sending import QUOTA_PATIENCE_S, RETRY_WAITS_S

DONE, ALREADY_SO, REFUSED = OutcomeStatus.DONE, OutcomeStatus.ALREADY_SO, OutcomeStatus.REFUSED
FAILED, UNKNOWN, NOT_SENT = OutcomeStatus.FAILED, OutcomeStatus.UNKNOWN, OutcomeStatus.NOT_SENT
MOVING = OutcomeStatus.MOVING


class World:
    """A cluster, and one apply on it with everything else at hand."""

    def __init__(self) -> None:
        self.cluster = RestingCluster()
        self.clock = FakeClock()
        self.lease = FakeLease()
        self.journal = FakeJournal()
        self.audit = FakeAuditLog()
        self.mover: FakeMover | None = FakeMover()
        self.environment = sandbox()
        self.interrupted: Callable[[], bool] = lambda: False
        self.seen: list[Outcome] = []
        self.say: Callable[[Sequence[Outcome]], None] = self.seen.extend

    def apply(self, plan: Plan, *, actions: tuple[Action, ...] = ACTIONS) -> tuple[Outcome, ...]:
        return apply(
            plan,
            ApplyPorts(
                reader=self.cluster,
                admin=self.cluster,
                lease=self.lease,
                journal=self.journal,
                audit=self.audit,
                questions=self.cluster,
                mover=self.mover,
            ),
            actions=actions,
            environment=self.environment,
            clock=Clock(self.clock, self.clock.sleep),
            progress=self.say,
            interrupted=self.interrupted,
        )

    def statuses(self, *changes: Change) -> list[OutcomeStatus]:
        return [outcome.status for outcome in self.apply(self.plan(*changes))]

    def plan(self, *changes: Change, **words: GateWord) -> Plan:
        return plan_of(*changes, activity=self.cluster.activity([change.topic for change in changes]), gates=words)

    def requests(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(request.action, request.topics) for request in self.cluster.requests]


@pytest.fixture
def world() -> World:
    return World()


def with_settings(**settings: object) -> EnvironmentSpec:
    return msgspec.convert({"cluster": {"class": "sandbox"}, **settings}, EnvironmentSpec)


# --- what happens to the cluster ------------------------------------------------------------------------------------


def test_every_kind_of_change_is_applied(world: World) -> None:
    world.cluster.put_topic("grown", (1, 2, 3))
    world.cluster.put_topic("tuned", (1, 2, 3), configs={"segment.ms": "5000"})
    world.cluster.put_topic("moved", (1, 2))
    world.cluster.put_topic("old", (1, 2, 3))
    changes: list[Change] = [
        create_topic("new", (2, 3, 1), (3, 1, 2), configs={"retention.ms": "1000"}),
        expand_topic(world.cluster.live("grown"), (2, 3, 1)),
        configure_topic(world.cluster.live("tuned"), {"retention.ms": "2000", "segment.ms": None}),
        reassign_topic(world.cluster.live("moved"), (2, 3)),
        delete_topic(world.cluster.live("old")),
    ]

    assert world.statuses(*changes) == [DONE, DONE, DONE, MOVING, DONE]

    live = world.cluster.snapshot().topics
    assert sorted(live) == ["grown", "moved", "new", "tuned"]
    assert world.mover == FakeMover(begun=[("moved",)])
    assert live["new"].assignment == {0: (2, 3, 1), 1: (3, 1, 2)}
    assert live["new"].overrides == {"retention.ms": "1000"}
    assert live["grown"].assignment == {0: (1, 2, 3), 1: (2, 3, 1)}
    assert live["tuned"].overrides == {"retention.ms": "2000"}
    assert {change.action for change in changes} == set(ACTIONS)


def test_applying_the_same_plan_again_sends_nothing(world: World) -> None:
    live = world.cluster.put_topic("grown", (1, 2, 3))
    old = world.cluster.put_topic("old", (1, 2, 3))
    plan = world.plan(
        create_topic("new", (2, 3, 1)),
        expand_topic(live, (2, 3, 1)),
        configure_topic(live, {"retention.ms": "2000"}),
        delete_topic(old),
    )
    world.apply(plan)
    sent = world.requests()

    assert [outcome.status for outcome in world.apply(plan)] == [ALREADY_SO] * 4
    assert world.requests() == sent


def test_only_what_the_gate_lets_run_is_sent(world: World) -> None:
    plan = world.plan(
        create_topic("a", (1, 2)),
        create_topic("b", (1, 2)),
        create_topic("c", (1, 2)),
        b=GateWord.HELD,
        c=GateWord.SKIPPED,
    )

    assert [outcome.topic for outcome in world.apply(plan)] == ["a"]
    assert world.requests() == [("create", ("a",))]


def test_only_the_actions_asked_for_are_sent(world: World) -> None:
    live = world.cluster.put_topic("grown", (1, 2, 3))
    plan = world.plan(create_topic("a", (1, 2)), expand_topic(live, (2, 3, 1)))

    assert [outcome.action for outcome in world.apply(plan, actions=("expand",))] == ["expand"]
    assert world.requests() == [("expand", ("grown",))]


# --- reassignments --------------------------------------------------------------------------------------------------


def with_move(world: World) -> list[Change]:
    """Return a reassignment between a create and a delete."""
    moved, old = (world.cluster.put_topic(name, (1, 2)) for name in ("moved", "old"))
    return [create_topic("new", (1, 2)), reassign_topic(moved, (2, 3)), delete_topic(old)]


def moved_by_hand(world: World, *, adding: int, removing: int) -> None:
    world.cluster.start_reassignment("moved", 0, adding=[adding], removing=[removing])
    world.cluster.end_reassignment("moved")


def test_moves_begin_after_all_that_grows_and_before_deletes_which_do_not_wait_for_their_end(world: World) -> None:
    seen: list[list[tuple[str, tuple[str, ...]]]] = []
    world.mover = FakeMover(when_begun=lambda: seen.append(world.requests()))

    assert world.statuses(*with_move(world)) == [DONE, MOVING, DONE]
    assert seen == [[("create", ("new",))]]


def test_all_moves_of_a_run_begin_together(world: World) -> None:
    lives = [world.cluster.put_topic(name, (1, 2)) for name in ("a", "b")]

    assert world.statuses(*(reassign_topic(live, (2, 3)) for live in lives)) == [MOVING, MOVING]
    assert world.mover is not None
    assert world.mover.begun == [("a", "b")]


def test_the_intent_of_a_move_is_on_the_disk_before_it_begins_and_its_outcome_closes_it(world: World) -> None:
    change = reassign_topic(world.cluster.put_topic("moved", (1, 2)), (2, 3))
    at_begin: list[list[tuple[str, str]]] = []
    world.mover = FakeMover(when_begun=lambda: at_begin.append([*world.journal.lines]))
    plan = world.plan(change)
    world.apply(plan)

    digest = plan.changes[0].digest
    assert at_begin == [[("intent", digest)]]
    assert world.journal.lines == [("intent", digest), ("outcome", digest)]


def test_the_mover_writes_the_lines_of_the_audit_log_and_apply_writes_those_of_all_else(world: World) -> None:
    world.apply(world.plan(*with_move(world)))

    assert [mutation.topic for mutation in world.audit.mutations] == ["new", "old"]


@pytest.mark.parametrize(
    ("begun", "statuses"),
    [
        pytest.param(Begun(MOVING), [DONE, MOVING, DONE], id="it moves"),
        pytest.param(Begun(DONE, sent=True), [DONE, DONE, DONE], id="it needed no copy"),
        pytest.param(Begun(REFUSED, "broker 3 is cordoned"), [DONE, REFUSED, NOT_SENT], id="refused"),
        pytest.param(Begun(FAILED, "INVALID", sent=True), [DONE, FAILED, NOT_SENT], id="failed"),
    ],
)
def test_deletes_run_unless_a_move_did_not_begin(world: World, begun: Begun, statuses: Sequence[OutcomeStatus]) -> None:
    world.mover = FakeMover({"moved": begun})
    outcomes = world.apply(world.plan(*with_move(world)))

    assert [outcome.status for outcome in outcomes] == statuses
    assert (outcomes[1].message, outcomes[1].sent) == (begun.message, begun.sent)


def test_without_a_mover_moves_are_refused_with_a_way_out_and_nothing_is_deleted(world: World) -> None:
    world.mover = None
    created, moved, deleted = world.apply(world.plan(*with_move(world)))

    assert [created.status, moved.status, deleted.status] == [DONE, REFUSED, NOT_SENT]
    assert moved.message == NO_MOVER
    assert world.journal.lines.count(("intent", moved.digest)) == 0


@pytest.mark.parametrize(
    ("error", "status", "sent"),
    [
        pytest.param(ClusterError("no broker answers"), FAILED, False, id="an error before anything was recorded"),
        pytest.param(RuntimeError("broken"), UNKNOWN, True, id="an error of the program, at any time"),
    ],
)
def test_a_mover_that_fails_leaves_an_outcome_and_nothing_is_deleted(
    world: World, error: Exception, status: OutcomeStatus, sent: bool
) -> None:
    world.mover = FakeMover(error=error)
    _, moved, deleted = world.apply(world.plan(*with_move(world)))

    assert (moved.status, moved.sent, deleted.status) == (status, sent, NOT_SENT)
    assert str(error) in moved.message


def test_a_topic_whose_rows_changed_since_the_plan_does_not_begin_to_move(world: World) -> None:
    change = reassign_topic(world.cluster.put_topic("moved", (1, 2)), (2, 3))
    moved_by_hand(world, adding=3, removing=2)
    (outcome,) = world.apply(world.plan(change))

    assert (outcome.status, outcome.sent, world.mover) == (REFUSED, False, FakeMover())
    assert "replicas of partition 0: planned [1, 2], live [1, 3]" in outcome.message


def test_rows_that_are_already_the_target_need_no_move(world: World) -> None:
    change = reassign_topic(world.cluster.put_topic("moved", (1, 2)), (2, 3))
    moved_by_hand(world, adding=3, removing=1)

    assert (world.statuses(change), world.mover) == ([ALREADY_SO], FakeMover())


@pytest.mark.parametrize("stop", ["interrupt", "lease"])
def test_nothing_begins_to_move_after_a_stop_or_without_the_lease(world: World, stop: str) -> None:
    change = reassign_topic(world.cluster.put_topic("moved", (1, 2)), (2, 3))
    if stop == "lease":
        world.lease.lose()
    else:
        world.interrupted = lambda: True

    assert (world.statuses(change), world.mover) == ([NOT_SENT], FakeMover())


# --- topics that moved ----------------------------------------------------------------------------------------------


def expanded(cluster: RestingCluster) -> Change:
    return expand_topic(cluster.put_topic("t", (1, 2)), (2, 1))


def configured(cluster: RestingCluster) -> Change:
    return configure_topic(cluster.put_topic("t", (1, 2)), {"retention.ms": "2000"})


def deleted(cluster: RestingCluster) -> Change:
    return delete_topic(cluster.put_topic("t", (1, 2)))


def make_again(cluster: RestingCluster) -> None:
    cluster.remove_topic("t")
    cluster.put_topic("t", (1, 2))


def mark(cluster: RestingCluster) -> None:
    live = cluster.put_topic("t", (1, 2))
    cluster.pause_broker(2)
    cluster.delete(delete_topic(live))


@pytest.mark.parametrize(
    ("planned", "move", "difference"),
    [
        pytest.param(
            lambda _: create_topic("t", (2, 1)),
            lambda c: c.put_topic("t", (1, 2), (1, 2)),
            "partitions: planned 1, live 2",
            id="create: another one is there",
        ),
        pytest.param(lambda _: create_topic("t", (1, 2)), mark, "live marked for deletion", id="create: being deleted"),
        pytest.param(
            expanded, lambda c: c.add_rows("t", (1, 2)), "partitions: planned 1, live 2", id="expand: by hand"
        ),
        pytest.param(expanded, make_again, "identity: planned", id="expand: deleted and made again"),
        pytest.param(
            expanded,
            lambda c: c.start_reassignment("t", 0, adding=[3], removing=[2]),
            "reassignment: planned none, live running",
            id="expand: reassigned",
        ),
        pytest.param(
            configured,
            lambda c: c.set_configs("t", {"retention.ms": "3000"}),
            "retention.ms: planned not set, live 3000",
            id="configure: another value",
        ),
        pytest.param(
            configured, lambda c: c.remove_topic("t"), "topic: planned present, live absent", id="configure: gone"
        ),
        pytest.param(deleted, make_again, "identity: planned", id="delete: deleted and made again"),
        pytest.param(deleted, lambda c: c.add_rows("t", (2, 1)), "partitions: planned 1, live 2", id="delete: grown"),
    ],
)
def test_a_topic_that_moved_is_refused_and_nothing_is_sent(
    world: World, planned: Callable[[RestingCluster], Change], move: Callable[[RestingCluster], object], difference: str
) -> None:
    change = planned(world.cluster)
    move(world.cluster)
    world.cluster.requests.clear()

    (outcome,) = world.apply(world.plan(change))

    assert (outcome.status, outcome.sent) == (REFUSED, False)
    assert difference in outcome.message
    assert world.requests() == []


def test_a_config_that_no_change_touches_may_move(world: World) -> None:
    change = configure_topic(world.cluster.put_topic("t", (1, 2)), {"retention.ms": "2000"})
    world.cluster.set_configs("t", {"segment.ms": "5000"})

    assert world.statuses(change) == [DONE]


def test_a_value_spelled_otherwise_counts_as_the_same(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2), configs={"retention.ms": " 2000"})

    assert world.statuses(configure_topic(live, {"retention.ms": "2000"})) == [ALREADY_SO]


def test_a_topic_made_again_between_the_check_and_the_request_is_not_deleted(world: World) -> None:
    plan = world.plan(deleted(world.cluster))
    world.cluster.before_next_request(lambda: make_again(world.cluster))
    (outcome,) = world.apply(plan)

    assert outcome.status is FAILED
    assert "UNKNOWN_TOPIC_ID" in outcome.message
    assert "t" in world.cluster.snapshot().topics


# --- dead brokers ---------------------------------------------------------------------------------------------------


def test_an_assignment_with_a_dead_broker_is_refused(world: World) -> None:
    world.cluster.stop_broker(3)

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 3))))

    assert (outcome.status, world.requests()) == (REFUSED, [])
    assert "broker 3, not live" in outcome.message


def test_a_delete_that_would_hang_is_refused(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 3))))
    world.cluster.stop_broker(3)

    (outcome,) = world.apply(plan)

    assert (outcome.status, world.requests()) == (REFUSED, [])
    assert "start it to delete them" in outcome.message


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [UNCLEAR_BUT_DONE, CONNECTION_LOST], ids=["answer", "error"])
def test_an_unclear_answer_is_settled_by_reading_and_never_sent_again(world: World, fault: Fault) -> None:
    world.cluster.script("new", fault)

    assert world.statuses(create_topic("new", (1, 2))) == [DONE]
    assert world.requests() == [("create", ("new",))]


def test_a_refusal_is_not_believed_while_the_topic_cannot_be_read_at_rest(world: World) -> None:
    """Brokers that do not agree on a topic do not say whether an earlier copy of the request has worked."""
    world.cluster.script("new", REFUSED_BY_POLICY)

    traces = world.cluster.traces

    def disputed(topics: Sequence[str], *, states: bool = False) -> Mapping[str, TopicTraces]:
        found = traces(topics, states=states)
        lives = {name: seen.live and replace(seen.live, unstable=True) for name, seen in found.items()}
        return {name: replace(seen, live=lives[name]) for name, seen in found.items()}

    world.cluster.before_next_request(lambda: world.cluster.put_topic("new", (2, 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.cluster, "traces", disputed)
        (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert outcome.status is UNKNOWN
    assert "an earlier copy of the request may have worked" in outcome.message


@pytest.mark.parametrize(
    ("fault", "after_s"),
    [
        pytest.param(UNCLEAR_AND_NOT_DONE, 5.0, id="after its timeout"),
        pytest.param(replace(CONNECTION_LOST, takes_effect=False), 5.0, id="after the client lost its connection"),
        pytest.param(CONTROLLER_DIED, 4.0, id="a former controller began it and another ended it"),
        pytest.param(CONTROLLER_DIED, ELECTION_S + 0.4, id="after all looks for it"),
        pytest.param(CONTROLLER_DIED_AFTER, None, id="a former controller did it, which is seen at once"),
    ],
)
def test_a_request_that_takes_effect_late_is_done_and_sent_once(
    world: World, fault: Fault, after_s: float | None
) -> None:
    world.cluster.script("new", fault)
    if after_s:
        world.clock.at(after_s, lambda: world.cluster.put_topic("new", (1, 2)))

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, outcome.sent, world.requests()) == (DONE, True, [("create", ("new",))])
    assert world.clock.now > 0 if after_s else world.clock.now == 0


def test_an_unclear_answer_that_no_reading_settles_is_unknown_and_sent_once(world: World) -> None:
    world.cluster.script("new", UNCLEAR_AND_NOT_DONE)

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, outcome.sent) == (UNKNOWN, True)
    assert "TOP505" in outcome.message
    assert world.requests() == [("create", ("new",))]
    assert world.clock.now >= UNCLEAR_S


def test_an_unclear_answer_on_a_topic_that_another_hand_changed_is_unknown_at_once(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2))
    plan = world.plan(expand_topic(live, (2, 1)))
    world.cluster.script("t", UNCLEAR_AND_NOT_DONE)
    world.cluster.before_next_request(lambda: world.cluster.add_rows("t", (1, 2), (1, 2)))

    (outcome,) = world.apply(plan)

    assert (outcome.status, world.clock.now) == (UNKNOWN, 0)
    assert "read back: partitions: planned 1, live 3" in outcome.message


def test_a_cluster_that_cannot_be_read_after_the_request_leaves_it_unknown(world: World) -> None:
    world.cluster.script("new", UNCLEAR_BUT_DONE)
    world.cluster.before_next_request(lambda: setattr(world.cluster, "unreachable", True))

    outcomes = world.apply(world.plan(create_topic("new", (1, 2)), create_topic("next", (1, 2))))

    assert [outcome.status for outcome in outcomes] == [UNKNOWN, DONE]
    assert "cannot be read" in outcomes[0].message


def test_a_request_told_to_wait_is_sent_again_after_a_fresh_look(world: World) -> None:
    world.cluster.script("new", MUST_WAIT, MUST_WAIT)

    assert world.statuses(create_topic("new", (1, 2))) == [DONE]
    assert len(world.cluster.requests) == 3
    assert world.lease.confirmations == 4


def test_a_topic_that_moves_while_its_change_waits_is_not_sent_again(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2))
    world.cluster.script("t", MUST_WAIT)
    world.clock.at(0.1, lambda: world.cluster.add_rows("t", (1, 2), (1, 2)))

    assert world.statuses(expand_topic(live, (2, 1))) == [REFUSED]
    assert len(world.cluster.requests) == 1


def test_waiting_has_an_end(world: World) -> None:
    world.cluster.script("new", *[MUST_WAIT] * 20)

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, outcome.sent) == (FAILED, True)
    assert len(world.cluster.requests) == len(RETRY_WAITS_S) + 1


THROTTLED = Fault(AnswerKind.RETRY, "THROTTLING_QUOTA_EXCEEDED (89): The throttling quota is exceeded.", wait_s=60.0)


def test_a_quota_is_waited_for_as_long_as_it_says(world: World) -> None:
    world.cluster.script("new", *[THROTTLED] * (len(RETRY_WAITS_S) + 3))

    assert world.statuses(create_topic("new", (1, 2))) == [DONE]
    assert world.clock.now == 60.0 * (len(RETRY_WAITS_S) + 3)


def test_a_quota_that_never_lets_it_through_is_given_up_in_the_end(world: World) -> None:
    world.cluster.script("new", *[THROTTLED] * 100)

    assert world.statuses(create_topic("new", (1, 2))) == [FAILED]
    assert world.clock.now == QUOTA_PATIENCE_S


def test_only_the_throttled_topic_of_a_request_is_sent_again(world: World) -> None:
    world.cluster.script("b", THROTTLED)

    assert world.statuses(*[create_topic(name, (1, 2)) for name in "abc"]) == [DONE, DONE, DONE]
    assert world.requests() == [("create", ("a", "b", "c")), ("create", ("b",))]


def test_an_accepted_request_that_muted_the_connection_delays_the_next(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.cluster.script("a", Fault(AnswerKind.ACCEPTED, "", takes_effect=True, wait_s=9.0))
    world.clock.at(8.9, lambda: seen.extend(world.requests()))
    seen: list[tuple[str, tuple[str, ...]]] = []

    assert world.statuses(create_topic("a", (1, 2)), create_topic("b", (1, 2))) == [DONE, DONE]
    assert (seen, world.clock.now) == ([("create", ("a",))], 9.0)


def test_an_interrupt_ends_the_wait_for_a_quota(world: World) -> None:
    world.cluster.script("new", *[THROTTLED] * 100)
    world.interrupted = lambda: world.clock.now > 3

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, outcome.sent) == (FAILED, True)
    assert "not sent again: interrupted" in outcome.message
    assert world.clock.now < 10


def test_what_never_left_counts_as_not_sent_and_leaves_no_line_in_the_audit_log(world: World) -> None:
    kept = Fault(AnswerKind.RETRY, "the brokers have elected no controller; nothing was sent", left=False)
    world.cluster.script("new", *[kept] * 20)

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, outcome.sent, world.audit.mutations) == (FAILED, False, [])
    assert outcome.message.startswith("sent 0 times")


def test_what_a_former_controller_left_undone_goes_to_the_next_one(world: World) -> None:
    world.cluster.script("new", CONTROLLER_DIED)

    assert world.statuses(create_topic("new", (1, 2))) == [DONE]
    assert (len(world.cluster.requests), world.clock.now >= ELECTION_S) == (2, True)


def test_one_failing_topic_does_not_stop_the_rest(world: World) -> None:
    world.cluster.script("b", REFUSED_BY_POLICY)
    live = world.cluster.put_topic("t", (1, 2))
    changes = [create_topic(name, (1, 2)) for name in "abc"]

    assert world.statuses(*changes, expand_topic(live, (2, 1))) == [DONE, FAILED, DONE, DONE]


def test_a_refusal_is_read_back_once_without_waiting(world: World) -> None:
    world.cluster.script("new", REFUSED_BY_POLICY)

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert (outcome.status, world.clock.now) == (FAILED, 0)


@pytest.mark.parametrize("rows", [(), ((2, 1),)], ids=["deleted since", "another one by now"])
def test_who_created_a_topic_that_was_there_and_is_not_as_planned_is_not_known(
    world: World, rows: tuple[tuple[int, int], ...]
) -> None:
    """The client may have sent the request twice, and somebody may have come between."""
    world.cluster.script("new", Fault(AnswerKind.FAILED, "TOPIC_ALREADY_EXISTS (36): Topic 'new' already exists."))
    if rows:
        world.cluster.before_next_request(lambda: world.cluster.put_topic("new", *rows))

    (outcome,) = world.apply(world.plan(create_topic("new", (1, 2))))

    assert outcome.status is UNKNOWN
    assert "an earlier copy of the request may have worked (TOP505)" in outcome.message


def test_partitions_that_are_as_before_were_not_added(world: World) -> None:
    plan = world.plan(expand_topic(world.cluster.put_topic("t", (1, 2)), (2, 1)))
    world.cluster.script("t", Fault(AnswerKind.FAILED, "INVALID_PARTITIONS (37): no"))

    assert [outcome.status for outcome in world.apply(plan)] == [FAILED]


def test_a_refusal_of_what_is_already_in_place_counts_as_done(world: World) -> None:
    # The client's own repetition of a request whose first answer was lost.
    live = world.cluster.put_topic("t", (1, 2))
    plan = world.plan(expand_topic(live, (2, 1)))
    world.cluster.before_next_request(lambda: world.cluster.add_rows("t", (2, 1)))

    assert [outcome.status for outcome in world.apply(plan)] == [DONE]


# --- the brokers' dry run -------------------------------------------------------------------------------------------


def test_a_change_that_the_dry_run_rejects_is_not_sent(world: World) -> None:
    world.cluster.reject_dry_run("bad")

    good, bad = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("bad", (1, 2))))

    assert (good.status, bad.status, bad.sent) == (DONE, FAILED, False)
    assert "POLICY_VIOLATION" in bad.message
    assert world.requests() == [("create", ("a",))]


def test_the_requests_of_one_kind_share_a_dry_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 2})
    asked = noted_dry_runs(world, monkeypatch)
    old = world.cluster.put_topic("old", (1, 2))

    changes = [*(create_topic(name, (1, 2)) for name in "abc"), expand_topic(old, (2, 1))]
    assert set(world.statuses(*changes)) == {DONE}

    assert asked == [["a", "b", "c"], ["old"]]
    assert world.requests() == [("create", ("a", "b")), ("create", ("c",)), ("expand", ("old",))]


def test_a_shared_dry_run_has_no_more_partitions_than_a_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1, "partitionsPerRequest": 4})
    asked = noted_dry_runs(world, monkeypatch)

    assert set(world.statuses(*(create_topic(name, (1, 2), (2, 1)) for name in "abc"))) == {DONE}

    assert asked == [["a", "b"], ["c"]]


def test_brokers_that_refuse_a_shared_dry_run_are_asked_for_each_request_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 2})
    asked = noted_dry_runs(world, monkeypatch, most=2)
    world.cluster.reject_dry_run("c")

    assert world.statuses(*(create_topic(name, (1, 2)) for name in "abc")) == [DONE, DONE, FAILED]

    assert asked == [["a", "b", "c"], ["a", "b"], ["c"]]


def noted_dry_runs(world: World, monkeypatch: pytest.MonkeyPatch, *, most: int = 1000) -> list[list[str]]:
    """Return the topics of each dry run from now on; one of more than ``most`` is refused as a whole."""
    asked: list[list[str]] = []
    validate = world.cluster.validate

    def noted(changes: Sequence[Change]) -> Sequence[Answer]:
        asked.append([change.topic for change in changes])
        refused = Answer(AnswerKind.FAILED, "POLICY_VIOLATION (44): an excessively large batch")
        return validate(changes) if len(changes) <= most else [refused] * len(changes)

    monkeypatch.setattr(world.cluster, "validate", noted)
    return asked


def test_a_dry_run_that_times_out_is_not_asked_for_again_for_minutes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def time_out(changes: Sequence[Change]) -> list[Answer]:
        asked.append(changes)
        world.clock.sleep(65)
        return [Answer(AnswerKind.RETRY, "_TIMED_OUT (-185)")] * len(changes)

    monkeypatch.setattr(world.cluster, "validate", time_out)

    assert world.statuses(create_topic("new", (1, 2, 3))) == [FAILED]
    assert len(asked) == 1


def test_an_interrupt_ends_the_reading_back_of_an_unclear_answer(world: World) -> None:
    world.cluster.script("new", UNCLEAR_AND_NOT_DONE)
    began = world.clock()
    world.interrupted = lambda: bool(world.cluster.requests)

    assert world.statuses(create_topic("new", (1, 2, 3))) == [UNKNOWN]
    assert world.clock() - began < 5


def test_without_validate_only_the_brokers_are_not_asked_first(world: World) -> None:
    world.environment = with_settings(apply={"validateOnly": False})
    world.cluster.reject_dry_run("new")

    assert world.statuses(create_topic("new", (1, 2))) == [DONE]


# --- deletes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        pytest.param(lambda c: c.script("new", REFUSED_BY_POLICY), FAILED, id="failed"),
        pytest.param(lambda c: c.script("new", UNCLEAR_AND_NOT_DONE), UNKNOWN, id="unknown"),
        pytest.param(lambda c: c.put_topic("new", (1, 2), (1, 2)), REFUSED, id="refused"),
        pytest.param(lambda c: c.reject_dry_run("new"), FAILED, id="rejected by the dry run"),
    ],
)
def test_deletes_run_only_when_all_before_succeeded(
    world: World, spoil: Callable[[RestingCluster], object], status: OutcomeStatus
) -> None:
    old = world.cluster.put_topic("old", (1, 2))
    spoil(world.cluster)

    created, deleted = world.apply(world.plan(create_topic("new", (1, 2)), delete_topic(old)))

    assert (created.status, deleted.status) == (status, NOT_SENT)
    assert f"create of new ended {status}" in deleted.message
    assert "old" in world.cluster.snapshot().topics


def test_a_delete_waits_until_nothing_is_left_of_the_one_before(world: World) -> None:
    first, second = world.cluster.put_topic("a", (1, 2)), world.cluster.put_topic("b", (1, 2))
    plan = world.plan(delete_topic(first), delete_topic(second))
    left: list[bool] = []
    world.cluster.known_whole = {2}
    world.cluster.pause_broker(2)
    world.clock.at(3.0, lambda: left.append(len(world.cluster.requests) == 1))
    world.clock.at(3.0, lambda: world.cluster.resume_broker(2))

    assert [outcome.status for outcome in world.apply(plan)] == [DONE, DONE]
    assert left == [True]
    assert world.cluster.snapshot().topics == {}


def test_deletes_go_in_waves_that_double_once_one_topic_is_gone(world: World) -> None:
    topics = [world.cluster.put_topic(f"t{number:03}", (1, 2)) for number in range(196)]
    world.cluster.groups["t000"] = ("readers",)
    sent: list[int] = []

    def let_go_of_what_waits() -> None:
        sent.append(len(world.cluster.requests))
        world.cluster.resume_broker(2)
        world.cluster.pause_broker(2)

    plan = world.plan(*map(delete_topic, topics))
    world.cluster.known_whole = {2}
    world.cluster.pause_broker(2)
    for second in range(3, 24, 2):
        world.clock.at(second, let_go_of_what_waits)

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED, *[DONE] * 195]
    assert sent == [1, 1 + 2, 3 + 4, 7 + 8, 15 + 16, 31 + 32, 63 + 64, 127 + 64, 191 + 4]
    assert [name for request in world.cluster.requests for name in request.topics] == [t.name for t in topics[1:]]


def test_deletes_that_do_not_end_are_named_and_keep_the_next_from_being_sent(world: World) -> None:
    topics = [world.cluster.put_topic(name, (1, 2)) for name in "abcd"]
    plan = world.plan(*map(delete_topic, topics))
    world.cluster.known_whole = {2}
    world.cluster.pause_broker(2)
    world.clock.at(3.0, lambda: (world.cluster.resume_broker(2), world.cluster.pause_broker(2)))

    *_, unsent = outcomes = world.apply(plan)

    assert [outcome.status for outcome in outcomes] == [DONE, DONE, DONE, NOT_SENT]
    assert "the delete of b, c has not ended after 120 s" in unsent.message


def test_an_answer_about_activity_that_has_grown_old_is_asked_for_again(world: World) -> None:
    a, b, c = (world.cluster.put_topic(name, (1, 2)) for name in "abc")
    plan = world.plan(*map(delete_topic, (a, b, c)))
    world.cluster.script("b", MUST_WAIT, MUST_WAIT)
    world.clock.at(0.2, lambda: world.cluster.groups.update(c=("readers",)))

    assert [outcome.status for outcome in world.apply(plan)] == [DONE, DONE, REFUSED]


def test_brokers_are_asked_about_a_few_deletes_of_a_wave_right_before_these(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.plan(*(delete_topic(world.cluster.put_topic(f"t{n:02}", (1, 2))) for n in range(31)))
    asked: list[tuple[int, int]] = []
    activity = world.cluster.activity

    def noted(topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        asked.append((len(world.requests()), len(topics)))
        return activity(topics)

    monkeypatch.setattr(world.cluster, "activity", noted)

    assert {outcome.status for outcome in world.apply(plan)} == {DONE}
    assert asked == [(0, 1), (1, 2), (3, 4), (7, 8), (15, 8), (23, 8)]


def test_brokers_that_let_a_delete_wait_for_nothing_are_asked_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    asked = []

    def silent(topics: Sequence[str]) -> Mapping[str, TopicActivity]:
        asked.append(topics)
        world.clock.sleep(15.0)
        return {topic: TopicActivity(end_offsets={0: 0}, groups=None) for topic in topics}

    monkeypatch.setattr(world.cluster, "activity", silent)

    (refused,) = world.apply(plan)

    assert (refused.status, len(asked)) == (REFUSED, 1)


def test_a_refused_delete_does_not_stop_the_next(world: World) -> None:
    first, second = world.cluster.put_topic("a", (1, 2)), world.cluster.put_topic("b", (1, 2))
    plan = world.plan(delete_topic(first), delete_topic(second))
    world.cluster.groups["a"] = ("readers",)

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED, DONE]


def test_an_unclear_delete_is_settled_by_its_traces(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    world.cluster.script("old", UNCLEAR_BUT_DONE)

    assert [outcome.status for outcome in world.apply(plan)] == [DONE]
    assert len(world.cluster.requests) == 1


def test_a_delete_told_to_wait_is_given_up_in_the_end(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    world.cluster.script("old", *[MUST_WAIT] * 20)

    assert [outcome.status for outcome in world.apply(plan)] == [FAILED]
    assert len(world.cluster.requests) == len(RETRY_WAITS_S) + 1


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda c: c.end_offsets["old"].update({0: 7}), id="written"),
        pytest.param(lambda c: c.groups.update(old=("readers",)), id="read"),
    ],
)
def test_a_topic_in_use_is_deleted_only_where_the_policy_allows_it(
    world: World, spoil: Callable[[RestingCluster], object]
) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    spoil(world.cluster)

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED]
    assert world.requests() == []

    world.environment = with_settings(policy={"deleteActive": "allow"})
    assert [outcome.status for outcome in world.apply(plan)] == [DONE]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(lambda c: c.fail_disk(2), "on broker 2 is on a failed log directory (/disks/2)", id="failed"),
        pytest.param(
            lambda c: setattr(c, "questions_answered", False),
            "whether a log directory of broker 1 has failed is not known",
            id="no answers",
        ),
        pytest.param(
            lambda c: c.pause_broker(2), "of broker 2 has failed is not known: broker 2 gave no answer", id="paused"
        ),
        pytest.param(
            lambda c: setattr(c, "silent_disks", {2}),
            "of broker 2 has failed is not known: broker 2 does not describe",
            id="no right",
        ),
    ],
)
def test_a_topic_is_deleted_only_if_every_broker_can_delete_its_replicas(
    world: World, spoil: Callable[[RestingCluster], object], reason: str
) -> None:
    world.environment = with_settings(policy={"deleteActive": "allow"})
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    spoil(world.cluster)

    (outcome,) = world.apply(plan)

    assert outcome.status is REFUSED
    assert reason in outcome.message
    assert "(TOP435)" in outcome.message
    assert world.requests() == []


def test_a_disk_that_fails_while_a_delete_waits_keeps_it_back(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    world.cluster.script("old", MUST_WAIT, MUST_WAIT)
    world.clock.at(0.7, lambda: world.cluster.fail_disk(2))

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED]
    assert world.requests() == [("delete", ("old",))] * 2


def test_a_disk_that_fails_while_a_controller_is_waited_for_keeps_a_delete_back(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    world.cluster.while_waiting_for_controller(lambda: (world.clock.sleep(1.0), world.cluster.fail_disk(2)))

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED]
    assert world.requests() == []


def test_a_disk_that_holds_nothing_of_the_topic_keeps_no_delete_back(world: World) -> None:
    world.cluster.put_topic("other", (2, 3))
    world.cluster.fail_disk(2)
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))

    assert [outcome.status for outcome in world.apply(plan)] == [DONE]


def test_a_topic_with_a_record_of_the_last_hours_is_not_deleted(world: World) -> None:
    plan = world.plan(delete_topic(world.cluster.put_topic("old", (1, 2))))
    world.environment = with_settings(policy={"restsFor": timedelta(hours=24)})
    world.cluster.last_records["old"] = int((time.time() - 15) * 1000)

    (refused,) = world.apply(plan)
    world.cluster.last_records["old"] -= 24 * 3_600_000
    (gone,) = world.apply(plan)

    assert (refused.status, gone.status) == (REFUSED, DONE)
    assert "it rests 1d after that (policy.restsFor) (TOP409)" in refused.message


# --- what ends a run ------------------------------------------------------------------------------------------------


def test_a_lost_lease_leaves_the_rest_unsent(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.lease.confirmations_left = 2

    outcomes = world.apply(world.plan(*[create_topic(name, (1, 2)) for name in "abc"]))

    assert [outcome.status for outcome in outcomes] == [DONE, NOT_SENT, NOT_SENT]
    assert "no longer ours" in outcomes[1].message
    assert len(world.cluster.requests) == 1


def test_a_lease_lost_while_a_request_waits_to_be_repeated_leaves_it_failed(world: World) -> None:
    world.cluster.script("a", MUST_WAIT)
    world.clock.at(0.1, world.lease.lose)

    (outcome,) = world.apply(world.plan(create_topic("a", (1, 2))))

    assert (outcome.status, outcome.sent) == (FAILED, True)


def test_a_lease_lost_while_the_intent_is_written_keeps_the_request_in(world: World) -> None:
    world.lease.confirmations_left = 1
    plan = world.plan(create_topic("a", (1, 2)))

    assert [outcome.status for outcome in world.apply(plan)] == [NOT_SENT]
    assert world.requests() == []
    assert [kind for kind, _ in world.journal.lines] == ["intent", "outcome"]


def test_a_lease_lost_while_a_request_waits_for_a_controller_leaves_it_unsent(world: World) -> None:
    world.cluster.while_waiting_for_controller(world.lease.lose)

    (outcome,) = world.apply(world.plan(create_topic("a", (1, 2))))

    assert (outcome.status, outcome.sent) == (NOT_SENT, False)
    assert world.requests() == []


def test_a_request_that_the_client_refuses_whole_goes_out_one_by_one_each_with_the_lease_confirmed(
    world: World,
) -> None:
    refused = Fault(AnswerKind.SEND_ALONE, "the client refuses one of them", left=False)
    for topic in "abc":
        world.cluster.script(topic, refused)
    world.lease.confirmations_left = 4  # one before the first reading, one for the whole request, two for single ones

    outcomes = world.apply(world.plan(*[create_topic(name, (1, 2)) for name in "abc"]))

    assert [outcome.status for outcome in outcomes] == [DONE, DONE, FAILED]
    assert [request.topics for request in world.cluster.requests] == [("a", "b", "c"), ("a",), ("b",)]
    assert not outcomes[2].sent


def test_a_topic_made_again_while_its_delete_waits_for_a_controller_stays(world: World) -> None:
    plan = world.plan(deleted(world.cluster))
    world.cluster.while_waiting_for_controller(lambda: make_again(world.cluster))

    assert [outcome.status for outcome in world.apply(plan)] == [REFUSED]
    assert world.requests() == []


def test_a_lost_cluster_leaves_everything_unsent(world: World) -> None:
    plan = world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2)))
    world.cluster.unreachable = True

    outcomes = world.apply(plan)

    assert [outcome.status for outcome in outcomes] == [NOT_SENT, NOT_SENT]
    assert "ZooKeeper does not answer" in outcomes[0].message


def test_no_request_leaves_without_a_durable_intent(world: World) -> None:
    world.journal.disk_full = True

    outcomes = world.apply(world.plan(create_topic("a", (1, 2))))

    assert [outcome.status for outcome in outcomes] == [NOT_SENT]
    assert world.requests() == []


def test_a_disk_that_fills_up_after_a_request_loses_no_outcome_and_stops_the_next(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 2})
    plan = world.plan(*[create_topic(name, (1, 2)) for name in "abc"])
    world.cluster.before_next_request(lambda: setattr(world.journal, "disk_full", True))

    assert [outcome.status for outcome in world.apply(plan)] == [DONE, DONE, NOT_SENT]


def test_an_audit_log_that_cannot_be_written_stops_the_run_and_leaves_the_intent_open(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.audit.disk_full = True

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [outcome.status for outcome in outcomes] == [DONE, NOT_SENT]
    assert "the audit log cannot be written" in outcomes[1].message
    open_intents = {digest for kind, digest in world.journal.lines if kind == "intent"}
    open_intents -= {digest for kind, digest in world.journal.lines if kind == "outcome"}
    assert open_intents == {outcomes[0].digest}


def test_an_interrupt_finishes_the_request_in_flight_and_leaves_the_rest(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.interrupted = lambda: len(world.cluster.requests) > 0

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [outcome.status for outcome in outcomes] == [DONE, NOT_SENT]
    assert "interrupted" in outcomes[1].message


def no_thread() -> None:
    raise RuntimeError("can't start new thread")


def odd() -> None:
    raise ValueError("odd")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(no_thread, "no memory or no thread is left for this command", id="what the surroundings lack"),
        pytest.param(odd, "internal error: ValueError: odd", id="another"),
    ],
)
def test_an_error_that_no_code_expects_ends_apply_with_an_outcome_for_each_change(
    world: World, error: Callable[[], None], said: str
) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.say = lambda outcomes: world.cluster.before_next_request(error) if outcomes[0].topic == "a" else None
    old = world.cluster.put_topic("old", (1, 2))

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2)), delete_topic(old)))

    assert [(o.status, o.sent) for o in outcomes] == [(DONE, True), (UNKNOWN, True), (NOT_SENT, False)]
    assert outcomes[1].message.startswith(f"no answer; {said}")
    assert "the request may still take effect (TOP505): verify, then plan again" in outcomes[1].message
    assert outcomes[2].message.startswith(said)
    assert [mutation.status for mutation in world.audit.mutations] == [DONE, UNKNOWN]
    assert [kind for kind, _ in world.journal.lines] == ["intent", "outcome", "intent", "outcome", "outcome"]


def test_an_error_between_two_requests_leaves_the_second_unsent(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.cluster.before_next_request(lambda: world.cluster.while_waiting_for_controller(no_thread))

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [(o.status, o.sent) for o in outcomes] == [(DONE, True), (NOT_SENT, False)]


def test_an_error_while_a_request_waits_to_be_repeated_leaves_it_failed(world: World) -> None:
    world.cluster.script("a", MUST_WAIT)
    world.clock.at(0.1, odd)

    (outcome,) = world.apply(world.plan(create_topic("a", (1, 2))))

    assert (outcome.status, outcome.sent) == (FAILED, True)
    assert outcome.message.endswith("not sent again: internal error: ValueError: odd")


@pytest.mark.parametrize("fault", [UNCLEAR_BUT_DONE, CONTROLLER_DIED], ids=["unclear", "controller moved"])
def test_an_error_while_a_request_is_read_back_leaves_it_unknown(world: World, fault: Fault) -> None:
    world.cluster.script("a", replace(fault, takes_effect=False))
    world.clock.at(0.1, odd)

    (outcome,) = world.apply(world.plan(create_topic("a", (1, 2))))

    assert (outcome.status, outcome.sent) == (UNKNOWN, True)
    assert outcome.message.startswith(fault.error)


def test_an_error_of_the_second_try_is_unknown_whatever_the_first_answer_was(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    world.cluster.script("a", MUST_WAIT)
    world.clock.at(0.1, lambda: world.cluster.before_next_request(odd))

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [o.status for o in outcomes] == [UNKNOWN, NOT_SENT]
    assert outcomes[0].message.startswith("no answer; ")


def test_an_error_of_the_audit_log_that_no_code_expects_loses_no_outcome(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})
    monkeypatch.setattr(FakeAuditLog, "append", lambda *_: odd())

    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [o.status for o in outcomes] == [DONE, NOT_SENT]
    assert outcomes[1].message == "internal error: ValueError: odd"
    assert world.seen == list(outcomes)


def test_the_outcomes_of_a_request_are_said_at_once(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 2})
    said: list[list[str]] = []
    world.say = lambda outcomes: said.append([outcome.topic for outcome in outcomes])
    world.apply(world.plan(*(create_topic(name, (1, 2)) for name in "abc")))
    assert said == [["a", "b"], ["c"]]


def test_an_outcome_that_cannot_be_said_is_in_the_journal_and_stops_the_run(world: World) -> None:
    world.environment = with_settings(apply={"topicsPerRequest": 1})

    def refuse(_: Sequence[Outcome]) -> None:
        raise RuntimeError("reentrant call")

    world.say = refuse
    outcomes = world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert [o.status for o in outcomes] == [DONE, NOT_SENT]
    assert [digest for kind, digest in world.journal.lines if kind == "outcome"] == [o.digest for o in outcomes]


# --- the account ----------------------------------------------------------------------------------------------------


def test_the_intent_is_written_before_the_request_and_the_outcome_after(world: World) -> None:
    lines_at_request: list[list[str]] = []
    world.cluster.before_next_request(lambda: lines_at_request.append([kind for kind, _ in world.journal.lines]))

    world.apply(world.plan(create_topic("a", (1, 2)), create_topic("b", (1, 2))))

    assert lines_at_request == [["intent", "intent"]]
    assert [kind for kind, _ in world.journal.lines] == ["intent", "intent", "outcome", "outcome"]


def test_each_change_that_was_sent_leaves_one_line_in_the_audit_log_with_the_ids_before_and_after(world: World) -> None:
    grown, old = world.cluster.put_topic("grown", (1, 2, 3)), world.cluster.put_topic("old", (1, 2, 3))
    there = world.cluster.put_topic("there", (1, 2), configs={"retention.ms": "2000"})
    world.cluster.script("late", MUST_WAIT)
    plan = world.plan(
        create_topic("new", (1, 2)),
        create_topic("late", (1, 2)),
        expand_topic(grown, (2, 3, 1)),
        configure_topic(there, {"retention.ms": "2000"}),
        delete_topic(old),
    )

    world.apply(plan)

    live = world.cluster.snapshot().topics
    found = {m.topic: (m.requests, m.answer, m.status, m.id_before, m.id_after) for m in world.audit.mutations}
    assert found == {
        "new": (1, "accepted", DONE, None, live["new"].identity),
        "late": (2, "accepted", DONE, None, live["late"].identity),
        "grown": (1, "accepted", DONE, grown.identity, grown.identity),
        "old": (1, "accepted", DONE, old.identity, None),
    }
    assert len(world.audit.mutations) == len(found)


def test_an_id_that_cannot_be_read_back_is_said_so(world: World) -> None:
    world.cluster.before_next_request(lambda: setattr(world.cluster, "unreachable", True))

    world.statuses(create_topic("new", (1, 2)))

    assert [mutation.id_after for mutation in world.audit.mutations] == [NOT_READ]


def test_an_outcome_is_said_after_it_is_written(world: World) -> None:
    written: list[bool] = []
    world.say = lambda outcomes: written.extend(("outcome", each.digest) in world.journal.lines for each in outcomes)
    world.cluster.script("b", REFUSED_BY_POLICY)
    world.cluster.put_topic("c", (1, 2))

    world.apply(world.plan(*[create_topic(name, (1, 2)) for name in "abc"]))

    assert written == [True] * 3


def test_every_change_that_was_to_run_has_one_outcome_and_is_reported_once(world: World) -> None:
    world.cluster.script("b", MUST_WAIT, UNCLEAR_BUT_DONE)
    plan = world.plan(*[create_topic(name, (1, 2)) for name in "abc"])

    outcomes = world.apply(plan)

    assert [outcome.digest for outcome in outcomes] == [gated.digest for gated in plan.changes]
    assert sorted(outcome.topic for outcome in world.seen) == ["a", "b", "c"]


def test_one_log_line_tells_each_change_to_the_cluster(world: World, caplog: pytest.LogCaptureFixture) -> None:
    live = world.cluster.put_topic("t", (1, 2), (1, 2), (1, 2))
    with caplog.at_level(logging.INFO, logger="topicops"):
        world.statuses(expand_topic(live, (2, 1)))

    assert caplog.messages == ["expanded topic=t from=3 to=4"]


@pytest.mark.parametrize(
    ("level", "with_traceback"), [pytest.param("INFO", False, id="info"), pytest.param("DEBUG", True, id="debug")]
)
def test_what_stops_apply_is_one_error_line_and_only_debug_shows_where(
    world: World, caplog: pytest.LogCaptureFixture, level: str, with_traceback: bool
) -> None:
    world.cluster.unreachable = True
    with caplog.at_level(level, logger="topicops"):
        world.statuses(create_topic("new", (1, 2)))

    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert line.getMessage().startswith("apply stopped environment=local: 127.0.0.1:2181: ZooKeeper does not answer")
    assert bool(line.exc_info) is with_traceback


@pytest.mark.parametrize(("level", "with_traceback"), [("WARNING", False), ("INFO", True)])
def test_the_place_of_an_error_that_no_code_expects_is_in_the_log_from_info_on(
    world: World, caplog: pytest.LogCaptureFixture, level: str, with_traceback: bool
) -> None:
    world.cluster.before_next_request(odd)
    with caplog.at_level(level, logger="topicops"):
        world.statuses(create_topic("new", (1, 2)))

    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert line.getMessage() == "apply stopped environment=local: internal error: ValueError: odd"
    assert bool(line.exc_info) is with_traceback
