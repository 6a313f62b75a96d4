"""Verify believes neither side alone, looks twice, and names what is missing."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pytest

from fakes.builders import USUAL_RELEASES, alike
from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic, plan_of
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.verified import troubles, verified
from topicops.model.choices import Source
from topicops.model.cluster.broker_defaults import BrokerDefaults
from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.plans.changes import Change
from topicops.model.ports import BrokerLogs, Clock, LogQuestions
from topicops.model.release import Release, Releases
from topicops.model.runs.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.model.specs.environment import Verify
from topicops.steps.verifying.checks import RULES
from topicops.steps.verifying.observation import FindingKey, chosen_brokers
from topicops.steps.verifying.verify import findings_before_run, verify, verify_cluster
from topicops.steps.verifying.watch import Progress


class World:
    """A cluster with changes on it, and one verify of them."""

    def __init__(self) -> None:
        self.cluster = RestingCluster()
        self.clock = FakeClock()
        self.progress: list[Progress] = []
        self.interrupted: Callable[[], bool] = lambda: False
        self.broker_defaults: BrokerDefaults = {}
        self.releases: Releases | None = USUAL_RELEASES
        self.source: Source = "zookeeper"

    def verify(self, *changes: Change, known_findings: Collection[FindingKey] = ()) -> tuple[Check, ...]:
        return verified(
            *changes,
            cluster=self.cluster,
            clock=self.clock,
            progress=self.progress.append,
            interrupted=self.interrupted,
            known_findings=known_findings,
            broker_defaults=self.broker_defaults,
            releases=self.releases,
            source=self.source,
        )

    def trouble(self) -> Collection[FindingKey]:
        """All that is wrong now."""
        live = self.cluster.snapshot(states=True)
        return findings_before_run(
            replace(live, broker_defaults=self.broker_defaults, releases=self.releases),
            self.cluster,
            topics=live.topics.keys(),
        )

    def created(self, *rows: tuple[int, ...], **configs: str) -> Change:
        """A create of topic ``t`` that has just been sent."""
        change = create_topic("t", *rows, configs=configs)
        self.cluster.create([change])
        return change

    def deleted(self) -> Change:
        """A delete of topic ``t`` that has just been sent."""
        change = delete_topic(self.cluster.put_topic("t", (1, 2)))
        self.cluster.delete(change)
        return change


@pytest.fixture
def world() -> World:
    return World()


# --- healthy --------------------------------------------------------------------------------------------------------


def test_what_is_as_planned_is_healthy_under_every_rule(world: World) -> None:
    grown = world.cluster.put_topic("grown", (1, 2, 3))
    tuned = world.cluster.put_topic("tuned", (1, 2, 3))
    old = world.cluster.put_topic("old", (1, 2, 3))
    create = create_topic("new", (2, 3, 1), configs={"retention.ms": "1000"})
    expand = expand_topic(grown, (2, 3, 1))
    configure = configure_topic(tuned, {"retention.ms": "2000"})
    delete = delete_topic(old)
    world.cluster.create([create])
    world.cluster.expand([expand])
    world.cluster.configure([configure])
    world.cluster.delete(delete)

    checks = world.verify(create, expand, configure, delete)

    assert troubles(checks) == []
    assert [check.id for check in checks if check.topic == "new"] == list(dict.fromkeys(check for check, _ in RULES))
    assert [check.id for check in checks if check.topic == "old"] == ["V01", "V13", "V17"]


def test_a_topic_is_looked_at_twice_before_it_is_healthy(world: World) -> None:
    world.verify(world.created((1, 2)))

    assert [progress.healthy for progress in world.progress] == [0, 1]


def test_healthy_at_two_looks_with_another_leader_is_not_twice_in_a_row(world: World) -> None:
    change = world.created((1, 2, 3))

    def move_leader() -> None:
        world.cluster.stop_broker(1)
        world.cluster.start_broker(1)

    world.clock.at(0.1, move_leader)
    world.verify(change)

    assert [progress.healthy for progress in world.progress] == [0, 0, 1]


def test_what_moves_while_the_brokers_answer_the_last_question_is_not_healthy_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = world.created((1, 2, 3))
    ask, asked = world.cluster.logs, []

    def ask_and_lose_a_broker(questions: Mapping[int, LogQuestions]) -> Mapping[int, BrokerLogs | str]:
        told = ask(questions)
        if not asked:
            world.cluster.stop_broker(3)
            world.clock.at(world.clock.now + 1.0, lambda: world.cluster.start_broker(3))
        asked.append(questions)
        return told

    monkeypatch.setattr(world.cluster, "logs", ask_and_lose_a_broker)

    assert troubles(world.verify(change)) == []
    assert [progress.healthy for progress in world.progress][:2] == [0, 0]
    assert world.clock.now > 1.0


def test_only_topics_that_apply_touched_are_looked_at(world: World) -> None:
    plan = plan_of(create_topic("a", (1, 2)), create_topic("b", (1, 2)), create_topic("c", (1, 2)))
    untouched = (OutcomeStatus.REFUSED, OutcomeStatus.FAILED, OutcomeStatus.NOT_SENT)
    outcomes = [Outcome.of(*each, sent=True) for each in zip(plan.changes, untouched, strict=True)]

    checks = verify(
        plan,
        outcomes,
        reader=world.cluster,
        metadata=world.cluster,
        deadlines=Verify(),
        clock=Clock(world.clock, world.clock.sleep),
    )

    assert checks == ()


# --- waiting --------------------------------------------------------------------------------------------------------


def test_a_follower_that_catches_up_in_time_is_waited_for(world: World) -> None:
    world.cluster.hold_back(3)
    world.clock.at(20.0, lambda: world.cluster.catch_up(3))

    assert troubles(world.verify(world.created((1, 2, 3)))) == []
    assert "partition 0 lacks broker 3 in its ISR" in world.progress[0].waiting_for[0]


def test_a_follower_that_never_catches_up_is_converging_at_the_deadline(world: World) -> None:
    world.cluster.hold_back(3)

    found = troubles(world.verify(world.created((1, 2, 3))))

    assert found == [("V08", Verdict.CONVERGING, "partition 0 lacks broker 3 in its ISR")]
    assert 60 <= world.clock.now < 63


def test_a_replica_on_a_failed_disk_is_degraded_and_named_while_verify_waits(world: World) -> None:
    change = world.created((1, 2, 3))
    world.cluster.fail_disk(3)

    found = troubles(world.verify(change))

    message = "partition 0 lacks broker 3 in its ISR; the log directory /disks/3 of broker 3 has failed"
    assert found == [("V08", Verdict.DEGRADED, message)]
    (said,) = {text for seen in world.progress for text in seen.waiting_for if "has failed" in text}
    assert said == f"t: {message}"
    first = next(i for i, seen in enumerate(world.progress) if said in seen.waiting_for)
    assert sum(world.clock.waits[:first]) < 10


def test_a_deletion_that_waits_for_a_failed_disk_names_it(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2))
    world.cluster.fail_disk(2)
    change = delete_topic(live)
    world.cluster.delete(change)

    (found,) = [text for check, _, text in troubles(world.verify(change)) if check == "V17"]

    assert "deletion marker; the log directory /disks/2 of broker 2 has failed" in found


def test_a_replica_on_a_dead_broker_is_degraded_and_named(world: World) -> None:
    change = world.created((1, 2, 3))
    world.cluster.stop_broker(3)

    (found,) = troubles(world.verify(change))

    assert found == ("V08", Verdict.DEGRADED, "partition 0 lacks broker 3 in its ISR; broker 3 not live")


def test_a_partition_without_a_leader_has_failed(world: World) -> None:
    change = world.created((3,))
    world.cluster.stop_broker(3)

    found = troubles(world.verify(change))

    assert ("V07", Verdict.FAILED, "partition 0 has no leader; broker 3 not live") in found
    assert 30 <= world.clock.now < 33


def test_a_partition_that_never_had_a_state_is_named_with_its_replicas(world: World) -> None:
    world.cluster.stop_broker(3)
    change = world.created((3,))

    found = troubles(world.verify(change))

    assert ("V06", Verdict.FAILED, "partition 0 has no state yet: replicas [3]; broker 3 not live") in found


def test_too_small_an_isr_for_producers_is_degraded(world: World) -> None:
    change = world.created((1, 2, 3), **{"min.insync.replicas": "2"})
    world.cluster.stop_broker(3)
    world.cluster.stop_broker(2)

    found = world.verify(change)

    message = "partition 0 has 1 of 2 in-sync replicas that min.insync.replicas asks for"
    assert ("V09", Verdict.DEGRADED, message, (2, 3)) in [(c.id, c.verdict, c.message, c.brokers) for c in found]


def test_the_brokers_default_min_isr_counts_where_the_topic_sets_none(world: World) -> None:
    world.broker_defaults = alike({"min.insync.replicas": "3"})
    change = world.created((1, 2, 3))
    world.cluster.stop_broker(3)

    assert ("V09", Verdict.DEGRADED) in [(check, verdict) for check, verdict, _ in troubles(world.verify(change))]


def test_no_more_in_sync_replicas_are_asked_for_than_there_are_replicas(world: World) -> None:
    world.broker_defaults = alike({"min.insync.replicas": "3"})

    assert troubles(world.verify(world.created((1, 2)))) == []


@pytest.mark.parametrize("releases", [Releases(Release(3, 6), Release(3, 9)), None], ids=["3.6 and 3.9", "not known"])
def test_brokers_that_refuse_producers_for_lack_of_replicas_are_not_called_healthy(
    world: World, releases: Releases | None
) -> None:
    world.broker_defaults, world.releases = alike({"min.insync.replicas": "3"}), releases

    found = troubles(world.verify(world.created((1, 2))))

    message = "partition 0 has 2 of 3 in-sync replicas that min.insync.replicas asks for"
    assert ("V09", Verdict.DEGRADED, message) in found


def test_a_rule_that_could_not_look_is_not_called_healthy(world: World) -> None:
    change = world.created((1, 2, 3))
    world.cluster.stop_broker(3)

    checked = {check.id for check in world.verify(change)}

    assert {"V02", "V08"} <= checked
    assert not checked & {"V14", "V16"}  # no broker was asked, since ZooKeeper alone says that it is not right


def test_an_interrupt_ends_the_waiting_with_the_last_look(world: World) -> None:
    world.cluster.hold_back(3)
    world.interrupted = lambda: True

    assert [verdict for _, verdict, _ in troubles(world.verify(world.created((1, 2, 3))))] == [Verdict.CONVERGING]
    assert world.clock.now == 0


def test_leaders_that_keep_moving_are_never_healthy(world: World) -> None:
    change = world.created((1, 2, 3))

    def move_leader() -> None:
        leader = (world.cluster.live("t").states or {})[0].leader
        world.cluster.stop_broker(leader)
        world.cluster.start_broker(leader)

    for tenth in range(1, 400):
        world.clock.at(tenth / 10, move_leader)

    assert troubles(world.verify(change)) == [
        ("V11", Verdict.CONVERGING, "leaders or ISRs changed between two readings")
    ]


def test_a_look_during_which_the_controller_changed_does_not_count(world: World) -> None:
    change = world.created((1, 2))
    world.cluster.controller_keeps_changing = True

    assert troubles(world.verify(change)) == [
        ("V13", Verdict.CONVERGING, "the controller changed while the topics were read")
    ]


def test_a_cluster_out_of_reach_is_never_healthy(world: World) -> None:
    change = world.created((1, 2))
    world.cluster.unreachable = True

    (check,) = world.verify(change)

    assert (check.id, check.verdict) == ("V13", Verdict.DEGRADED)
    assert "ZooKeeper does not answer" in check.message


# --- the brokers' side ----------------------------------------------------------------------------------------------


def test_a_broker_that_is_paused_but_registered_is_not_healthy(world: World) -> None:
    change = world.created((1, 2, 3))
    world.cluster.pause_broker(2)

    (found,) = troubles(world.verify(change))

    assert found == ("V14", Verdict.DEGRADED, "broker 2 gave no answer within 2 s")
    assert 30 <= world.clock.now < 33


def test_a_paused_broker_that_holds_no_replica_is_noticed_too(world: World) -> None:
    change = world.created((1, 2))
    world.cluster.pause_broker(3)

    assert [check for check, _, _ in troubles(world.verify(change))] == ["V14"]


def test_a_broker_that_has_not_heard_of_the_topic_is_waited_for(world: World) -> None:
    world.cluster.freeze_metadata(2)
    world.clock.at(5.0, lambda: world.cluster.thaw_metadata(2))

    assert troubles(world.verify(world.created((1, 2)))) == []
    assert world.clock.now > 5


def test_a_broker_that_never_hears_of_the_topic_is_named(world: World) -> None:
    world.cluster.freeze_metadata(2)

    (found,) = troubles(world.verify(world.created((1, 2))))

    assert found == ("V14", Verdict.CONVERGING, "broker 2 does not know the topic")


@pytest.mark.parametrize(
    ("brokers", "most", "chosen"),
    [
        pytest.param(range(1, 4), 32, (1, 2, 3), id="all of few"),
        pytest.param(range(100), 4, (0, 25, 50, 75), id="evenly of many"),
    ],
)
def test_brokers_to_ask_are_chosen_evenly(brokers: range, most: int, chosen: tuple[int, ...]) -> None:
    assert chosen_brokers(brokers, most=most) == chosen


# --- not as planned -------------------------------------------------------------------------------------------------


def other_count(world: World) -> Change:
    world.cluster.put_topic("t", (1, 2), (1, 2))
    return create_topic("t", (1, 2))


def other_config(world: World) -> Change:
    change = configure_topic(world.cluster.put_topic("t", (1, 2)), {"retention.ms": "2000"})
    world.cluster.set_configs("t", {"retention.ms": "3000"})
    return change


def one_config_more(world: World) -> Change:
    world.cluster.put_topic("t", (1, 2), configs={"retention.ms": "2000"})
    return create_topic("t", (1, 2))


def another_topic(world: World) -> Change:
    change = configure_topic(world.cluster.put_topic("t", (1, 2)), {})
    world.cluster.remove_topic("t")
    world.cluster.put_topic("t", (1, 2))
    return change


def no_topic(world: World) -> Change:
    return create_topic("t", (1, 2))


def moved_earlier_row(world: World) -> Change:
    change = expand_topic(world.cluster.put_topic("t", (1, 2)), (2, 1))
    world.cluster.remove_topic("t")
    world.cluster.put_topic("t", (3, 2), (2, 1))
    return change


@pytest.mark.parametrize(
    ("make", "check", "message"),
    [
        pytest.param(other_count, "V02", "partitions: planned 1, live 2", id="partitions"),
        pytest.param(moved_earlier_row, "V02", "replicas of the first 1 partitions are not as before", id="moved"),
        pytest.param(no_topic, "V02", "topic is not there", id="absent"),
        pytest.param(another_topic, "V03", "it was deleted and created again", id="identity"),
        pytest.param(other_config, "V15", "retention.ms: planned 2000, live 3000", id="config"),
        pytest.param(one_config_more, "V15", "retention.ms: planned not set, live 2000", id="one config more"),
    ],
)
def test_what_is_not_as_planned_is_said(
    world: World, make: Callable[[World], Change], check: str, message: str
) -> None:
    found = troubles(world.verify(make(world)))

    assert any(check == found_check and message in text for found_check, _, text in found), found


def test_rows_that_moved_are_found_also_where_the_plan_has_a_config_change_of_the_topic(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2))
    changes = expand_topic(live, (2, 1)), configure_topic(live, {"retention.ms": "2000"})
    world.cluster.remove_topic("t")
    world.cluster.put_topic("t", (3, 2), (2, 1), configs={"retention.ms": "2000"})

    found = troubles(world.verify(*changes))

    assert any(check == "V02" and "the first 1 partitions are not as before" in text for check, _, text in found), found


def test_a_topic_that_gets_its_id_while_it_is_changed_is_not_called_another(world: World) -> None:
    """Brokers give each topic an id when their protocol is raised."""
    live = world.cluster.put_topic("t", (1, 2))
    change = configure_topic(replace(live, topic_id=None), {})

    assert change.precondition.identity == f"czxid:{live.czxid}"
    assert troubles(world.verify(change)) == []


def gone_for_good(world: World) -> Change:
    change = expand_topic(world.cluster.put_topic("t", (1, 2)), (2, 1))
    world.cluster.remove_topic("t")
    return change


@pytest.mark.parametrize(
    ("make", "check"),
    [pytest.param(another_topic, "V03", id="deleted and made again"), pytest.param(gone_for_good, "V02", id="deleted")],
)
def test_a_topic_that_another_hand_took_away_is_not_waited_for(
    world: World, make: Callable[[World], Change], check: str
) -> None:
    found = troubles(world.verify(make(world)))

    assert check in [found_check for found_check, _, _ in found]
    assert world.clock.now == 0


def test_metadata_that_names_another_topic_id_may_only_lag_behind(world: World) -> None:
    world.source = "kafka"
    found = troubles(world.verify(another_topic(world)))

    assert "V03" in [found_check for found_check, _, _ in found]
    assert world.clock.now >= Verify().leaders.total_seconds()


# --- deletes --------------------------------------------------------------------------------------------------------


def test_a_delete_whose_broker_died_waits_for_it(world: World) -> None:
    world.cluster.pause_broker(2)
    change = world.deleted()
    world.cluster.stop_broker(2)

    (found,) = troubles(world.verify(change))

    message = "left: topic znode, config znode, deletion marker; waits for broker 2"
    assert found == ("V17", Verdict.CONVERGING, message)
    assert 120 <= world.clock.now < 123


def test_a_delete_that_ends_in_time_is_healthy(world: World) -> None:
    world.cluster.pause_broker(2)
    change = world.deleted()
    world.clock.at(100.0, lambda: world.cluster.resume_broker(2))

    assert troubles(world.verify(change)) == []


def test_a_delete_that_was_dropped_in_silence_has_failed(world: World) -> None:
    # A broker with delete.topic.enable=false removes the marker and nothing else.
    change = delete_topic(world.cluster.put_topic("t", (1, 2)))

    (found,) = (check for check in world.verify(change) if not check.is_healthy)

    assert (found.id, found.verdict, found.code) == ("V17", Verdict.FAILED, Code.NOT_DELETED)
    assert found.message == "left: topic znode, config znode"


def test_a_name_that_comes_back_is_told(world: World) -> None:
    change = world.deleted()
    world.cluster.put_topic("t", (1, 2))

    assert "it is back with topic id" in troubles(world.verify(change))[0][2]


def test_a_broker_that_still_knows_a_deleted_topic_is_named(world: World) -> None:
    old = world.cluster.put_topic("t", (1, 2))
    world.cluster.freeze_metadata(3)
    world.cluster.delete(delete_topic(old))

    (found,) = troubles(world.verify(delete_topic(old)))

    assert found == ("V17", Verdict.CONVERGING, "broker 3 still knows it")


# --- old trouble ----------------------------------------------------------------------------------------------------


def test_old_trouble_is_named_as_old_and_not_waited_for(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2, 3))
    world.cluster.stop_broker(3)
    known_findings = world.trouble()
    change = configure_topic(live, {"retention.ms": "2000"})
    world.cluster.configure([change])

    (found,) = troubles(world.verify(change, known_findings=known_findings))

    assert found[:2] == ("V08", Verdict.PRE_EXISTING)
    assert found[2].endswith("(so before the run)")
    assert world.clock.now < 1


def test_new_trouble_beside_old_is_not_excused(world: World) -> None:
    live = world.cluster.put_topic("t", (1, 2, 3))
    world.cluster.hold_back(3)
    world.cluster.stop_broker(3)
    known_findings = world.trouble()
    world.cluster.start_broker(3)
    change = expand_topic(live, (2, 1, 3))
    world.cluster.expand([change])

    verdicts = [verdict for _, verdict, _ in troubles(world.verify(change, known_findings=known_findings))]

    assert verdicts == [Verdict.PRE_EXISTING, Verdict.CONVERGING]


# --- a whole cluster ------------------------------------------------------------------------------------------------


def test_a_whole_cluster_is_checked_without_a_plan(world: World) -> None:
    world.cluster.put_topic("well", (1, 2))
    world.cluster.put_topic("ill", (1, 3))
    world.cluster.stop_broker(3)
    snapshot = world.cluster.snapshot(states=True)

    checks = verify_cluster(snapshot, world.cluster)

    assert {check.topic for check in checks} == {"well", "ill"}
    assert [(check.topic, check.id) for check in checks if not check.is_healthy] == [("ill", "V08")]


def test_a_whole_cluster_without_a_controller_is_not_healthy(world: World) -> None:
    checks = verify_cluster(replace(world.cluster.snapshot(states=True), controller_id=None), world.cluster)

    assert [(check.id, check.verdict) for check in checks] == [("V13", Verdict.FAILED)]


def test_a_topic_that_waits_for_its_deletion_is_told_in_a_whole_cluster(world: World) -> None:
    world.cluster.pause_broker(2)
    world.deleted()
    world.cluster.stop_broker(2)

    checks = verify_cluster(world.cluster.snapshot(states=True), world.cluster)

    (check,) = (check for check in checks if not check.is_healthy)
    assert (check.id, check.verdict) == ("V17", Verdict.CONVERGING)
    assert "waits for broker 2" in check.message


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        pytest.param({0: (1, 2), 5: (2, 1)}, "partition ids are not 0 to 1: [0, 5]", id="gaps"),
        pytest.param({0: (1, 2), 1: (2,)}, "different replication factors: [1, 2]", id="mixed"),
        pytest.param({0: (1, 1, 2)}, "partition 0 has replicas [1, 1, 2]", id="twice"),
    ],
)
def test_an_assignment_made_by_hand_is_told(world: World, assignment: Assignment, message: str) -> None:
    live = replace(world.cluster.put_topic("t", (1, 2)), assignment=assignment)
    snapshot = replace(world.cluster.snapshot(states=True), topics={"t": live})

    messages = [check.message for check in verify_cluster(snapshot, world.cluster) if check.id == "V02"]

    assert any(message in text for text in messages), messages


def test_a_state_of_a_later_controller_is_told(world: World) -> None:
    world.cluster.put_topic("t", (1, 2))
    snapshot = replace(world.cluster.snapshot(states=True), controller_epoch=0)

    assert [check.id for check in verify_cluster(snapshot, world.cluster) if not check.is_healthy] == ["V12"]
