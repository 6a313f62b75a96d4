"""Each check of verify, by its id: healthy where all is well, and broken by the one thing that it is there for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from fakes.changes import configure_topic, create_topic, delete_topic, expand_topic
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.verified import troubles, verified
from topicops.model.cluster.snapshot import PartitionState
from topicops.model.plans.changes import Change, CreateTopic
from topicops.model.runs.results import Check, Verdict
from topicops.steps.reporting.run_report import RunReport, report_json, report_text
from topicops.steps.verifying.checks import ABSENCE_RULES, RULES
from topicops.steps.verifying.verify import findings_before_run, verify_cluster

ALL_CHECKS = tuple(dict.fromkeys(check for check, _ in [*RULES, *ABSENCE_RULES]))
OTHER_ID = "AAAAAAAAAAAAAAAAAAAABA"


@dataclass
class World:
    """A cluster on which topic ``t`` was made by the run, and one check is about to be broken."""

    cluster: RestingCluster = field(default_factory=RestingCluster)
    clock: FakeClock = field(default_factory=FakeClock)
    change: Change = field(default_factory=lambda: create_topic("t", (1, 2, 3), configs={"retention.ms": "1000"}))

    def make(self) -> None:
        assert isinstance(self.change, CreateTopic)
        self.cluster.create([self.change])

    def alter(self, **fields: object) -> None:
        """Give ``t`` other fields than the controller would."""
        self.cluster.put_as_is(replace(self.cluster.live("t"), **fields))  # type: ignore[arg-type]  # of a test's choice

    def state(self, **fields: object) -> None:
        """Give the state of its partition other fields."""
        state: PartitionState = (self.cluster.live("t").states or {})[0]
        self.alter(states={0: replace(state, **fields)})  # type: ignore[arg-type]  # of a test's choice

    def verify(self) -> tuple[Check, ...]:
        return verified(self.change, cluster=self.cluster, clock=self.clock)


def created() -> World:
    """A world whose run created ``t``."""
    world = World()
    world.make()
    return world


def without_id(world: World) -> None:
    world.cluster.freeze_metadata(1)
    world.alter(topic_id=None)


def marked(world: World) -> None:
    world.cluster.pause_broker(2)
    world.cluster.delete(delete_topic(world.cluster.live("t")))


def too_few_in_sync(world: World) -> None:
    world.cluster.defaults["min.insync.replicas"] = "2"
    world.alter(overrides={"retention.ms": "1000", "min.insync.replicas": "3"})
    world.cluster.hold_back(3)


def epoch_goes_back(world: World) -> None:
    world.state(leader_epoch=3)
    world.clock.at(0.1, lambda: world.state(leader_epoch=2))


def a_broker_behind(world: World) -> None:
    world.cluster.freeze_metadata(3)
    world.state(leader=2, leader_epoch=1)


def a_broker_ahead(world: World) -> None:
    world.cluster.add_rows("t", (1, 2, 3))
    world.cluster.freeze_metadata(3)
    live = world.cluster.live("t")
    world.alter(assignment={0: live.assignment[0]}, states={0: (live.states or {})[0]})


BREAKS: Mapping[str, Callable[[World], object]] = {
    "another cluster": lambda world: setattr(world.cluster, "cluster_id_of_brokers", "another"),
    "other rows": lambda world: world.alter(assignment={0: (3, 2, 1)}),
    "no partitions": lambda world: world.alter(assignment={}, states={}),
    "without id": without_id,
    "reassigned": lambda world: world.alter(adding={0: (4,)}),
    "marked": marked,
    "without state": lambda world: world.alter(states={}),
    "led from outside": lambda world: world.state(leader=9),
    "follower behind": lambda world: world.cluster.hold_back(3),
    "too few in sync": too_few_in_sync,
    "epoch goes back": epoch_goes_back,
    "later controller": lambda world: world.state(controller_epoch=99),
    "without controller": lambda world: setattr(world.cluster, "has_controller", False),
    "a broker behind": a_broker_behind,
    "a broker ahead": a_broker_ahead,
    "other value": lambda world: world.cluster.set_configs("t", {"retention.ms": "2000"}),
    "brokers tell another value": lambda world: world.cluster.reported_overrides.update(t={"retention.ms": "3000"}),
    "brokers tell no value": lambda world: world.cluster.reported_overrides.update(
        t="the brokers do not give its configs: refused"
    ),
    "without log": lambda world: world.cluster.missing_logs.add((2, "t", 0)),
    "log not served": lambda world: world.cluster.idle_logs.add((2, "t", 0)),
    "unreadable log": lambda world: world.cluster.unread_logs.update({(1, "t", 0): "UNKNOWN_LEADER_EPOCH (75)"}),
    "silent disks": lambda world: world.cluster.silent_disks.add(2),
    "moved by old brokers": lambda world: world.cluster.name_in_reassignment("t"),
}
FOUND: tuple[tuple[str, str, Verdict, str, str], ...] = (
    ("V01", "another cluster", Verdict.FAILED, "TOP504", "broker 1 belongs to cluster another, ZooKeeper to"),
    ("V02", "other rows", Verdict.FAILED, "TOP604", "replicas of partition 0: planned [1, 2, 3], live [3, 2, 1]"),
    ("V02", "no partitions", Verdict.FAILED, "TOP426", "it has no partitions"),
    ("V03", "without id", Verdict.CONVERGING, "TOP605", "ZooKeeper by none"),
    ("V04", "reassigned", Verdict.CONVERGING, "TOP419", "partition 0 is being reassigned: replicas [1, 2, 3]"),
    ("V04", "moved by old brokers", Verdict.CONVERGING, "TOP419", "/admin/reassign_partitions names it"),
    ("V05", "marked", Verdict.FAILED, "TOP418", "marked for deletion"),
    ("V06", "without state", Verdict.CONVERGING, "TOP612", "partition 0 has no state yet: replicas [1, 2, 3]"),
    ("V07", "led from outside", Verdict.FAILED, "TOP601", "partition 0 is led by broker 9, which is not live"),
    ("V08", "follower behind", Verdict.CONVERGING, "TOP602", "partition 0 lacks broker 3 in its ISR"),
    ("V09", "too few in sync", Verdict.DEGRADED, "TOP614", "partition 0 has 2 of 3 in-sync replicas"),
    ("V11", "epoch goes back", Verdict.FAILED, "TOP610", "partition 0 went back from leader epoch 3 to 2"),
    ("V12", "later controller", Verdict.CONVERGING, "TOP508", "partition 0 was written under controller epoch 99"),
    ("V13", "without controller", Verdict.CONVERGING, "TOP432", "no controller is elected"),
    ("V14", "a broker behind", Verdict.CONVERGING, "TOP605", "broker 3 sees leader 1 of partition 0, ZooKeeper 2"),
    ("V14", "a broker ahead", Verdict.CONVERGING, "TOP605", "broker 3 sees a partition 1, ZooKeeper does not"),
    ("V15", "other value", Verdict.FAILED, "TOP603", "retention.ms: planned 1000, live 2000"),
    ("V15", "brokers tell another value", Verdict.CONVERGING, "TOP605", "the brokers have 3000, ZooKeeper 1000"),
    ("V15", "brokers tell no value", Verdict.DEGRADED, "TOP613", "the brokers do not give its configs: refused"),
    ("V16", "without log", Verdict.CONVERGING, "TOP616", "broker 2 has no log directory for partition 0"),
    ("V16", "log not served", Verdict.CONVERGING, "TOP616", "broker 2 has a log of partition 0 and does not serve it"),
    (
        "V16",
        "unreadable log",
        Verdict.CONVERGING,
        "TOP616",
        "broker 1 leads partition 0 and cannot read its log: UNKNOWN",
    ),
    ("V16", "silent disks", Verdict.DEGRADED, "TOP613", "broker 2 does not describe its log directories: refused"),
)
"""Check, what breaks it, and what it then says."""
AT_FAULT = {
    "another cluster": (1,),
    "led from outside": (9,),
    "follower behind": (3,),
    "a broker behind": (3,),
    "without log": (2,),
    "silent disks": (2,),
    "other value": (),
}
"""Brokers that the check carries then."""


@pytest.mark.parametrize(
    ("check", "broken", "verdict", "code", "message"), [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in FOUND]
)
def test_each_check_is_healthy_until_what_it_is_for_is_broken(
    check: str, broken: str, verdict: Verdict, code: str, message: str
) -> None:
    well, ill = created(), created()
    BREAKS[broken](ill)

    assert [(c.verdict, c.message) for c in well.verify() if c.id == check] == [(Verdict.HEALTHY, "")]
    found = [c for c in ill.verify() if c.id == check]
    assert any((c.verdict, c.code) == (verdict, code) and message in c.message for c in found), found
    if broken in AT_FAULT:
        assert found[0].brokers == AT_FAULT[broken]


def test_every_check_is_broken_by_some_test_here_but_the_two_that_deletes_and_remarks_are_for() -> None:
    assert {check for check, *_ in FOUND} | {"V10", "V17"} == set(ALL_CHECKS)


# --- remarks --------------------------------------------------------------------------------------------------------


def test_a_leader_that_is_not_the_first_replica_is_noted_and_healthy() -> None:
    world = created()
    world.cluster.stop_broker(1)
    world.cluster.start_broker(1)

    (found,) = (check for check in world.verify() if check.message)

    assert (found.id, found.verdict, found.message) == (
        "V10",
        Verdict.HEALTHY,
        "partition 0: not led by its first replica",
    )
    assert world.clock.now < 1


def test_many_elections_of_a_new_topic_are_noted() -> None:
    world = created()
    world.state(leader_epoch=7)

    assert [c.message for c in world.verify() if c.message] == [
        "partition 0: up to 7 elections since the topic was created"
    ]


def test_logs_that_a_deleted_topic_leaves_are_noted_and_not_waited_for() -> None:
    world = deleted()
    world.cluster.leave_log("t", 0)

    checks = world.verify()

    assert {c.verdict for c in checks} == {Verdict.HEALTHY}
    assert [c.message for c in checks if c.message] == [
        f"broker {broker} still has logs of partition 0" for broker in (1, 2, 3)
    ]


def test_the_report_shows_remarks_behind_all_trouble_and_one_line_for_many() -> None:
    checks = tuple(
        Check(id="V10", topic=name, verdict=Verdict.HEALTHY, message="partition 0: not led by its first replica")
        for name in ("a", "b", "c")
    )
    report = RunReport(environment="local", checks=checks)

    assert "3 topics healthy" in report_text(report)
    assert "noted: topic.a V10: partition 0: not led by its first replica (and 2 topics more)" in report_text(report)
    assert len(report_json(report).checks) == 3


# --- deletes --------------------------------------------------------------------------------------------------------


def deleted() -> World:
    """A world whose run deleted ``t``."""
    world = World()
    change = delete_topic(world.cluster.put_topic("t", (1, 2, 3)))
    world.change = change
    world.cluster.delete(change)
    return world


def test_a_name_that_something_brings_back_at_once_fails_without_waiting() -> None:
    world = deleted()
    world.clock.at(0.1, lambda: world.cluster.put_topic("t", (1, 2, 3)))

    (found,) = (check for check in world.verify() if not check.is_healthy)

    assert (found.id, found.verdict, found.code) == ("V17", Verdict.FAILED, "TOP607")
    assert world.clock.now < 1


def test_a_name_is_watched_as_long_as_anything_else_is_waited_for() -> None:
    cluster, clock = RestingCluster(), FakeClock()
    going = delete_topic(cluster.put_topic("going", (1, 2)))
    slow = create_topic("slow", (1, 2, 3))
    cluster.delete(going)
    cluster.create([slow])
    cluster.hold_back(3)
    clock.at(10.0, lambda: cluster.put_topic("going", (1, 2)))
    clock.at(20.0, lambda: cluster.catch_up(3))

    checks = verified(going, slow, cluster=cluster, clock=clock)

    assert [(c.topic, c.code) for c in checks if not c.is_healthy] == [("going", "TOP607")]


# --- how often and whom it asks ---------------------------------------------------------------------------------------


def test_looks_follow_closely_while_something_moves_and_grow_rare_while_nothing_does() -> None:
    world = World()
    world.cluster.hold_back(3)
    world.make()
    world.verify()

    waits = world.clock.waits
    assert (waits[0], max(waits)) == (0.2, 2.0)
    assert waits == sorted(waits)


def test_disks_and_configs_are_asked_about_once_where_all_is_well() -> None:
    world = created()
    world.verify()

    assert world.cluster.asked == ["views", "views", "logs", "overrides"]


def test_a_topic_whose_state_was_written_between_two_looks_is_not_right_twice_in_a_row() -> None:
    world = created()

    def flap() -> None:
        world.cluster.stop_broker(3)
        world.cluster.start_broker(3)

    for tenth in range(1, 400):
        world.clock.at(tenth / 10, flap)

    (found,) = (check for check in world.verify() if not check.is_healthy)
    assert found.message == "leaders or ISRs changed between two readings"


# --- old trouble on the brokers' side ---------------------------------------------------------------------------------


def test_old_trouble_of_logs_is_old_for_its_replica_alone() -> None:
    cluster = RestingCluster()
    live = cluster.put_topic("t", (1, 2, 3), (1, 2, 3))
    cluster.missing_logs.add((2, "t", 0))
    old = findings_before_run(cluster.snapshot(states=True), cluster, topics=["t"])
    change = configure_topic(live, {"retention.ms": "5"})
    cluster.configure([change])
    cluster.missing_logs.add((3, "t", 1))

    assert troubles(verified(change, cluster=cluster, clock=FakeClock(), known_findings=old)) == [
        ("V16", Verdict.PRE_EXISTING, "broker 2 has no log directory for partition 0 (so before the run)"),
        ("V16", Verdict.CONVERGING, "broker 3 has no log directory for partition 1"),
    ]


def test_a_broker_that_was_silent_before_is_no_excuse_for_what_it_does_not_tell_now() -> None:
    cluster = RestingCluster()
    live = cluster.put_topic("t", (1, 2, 3))
    cluster.pause_broker(3)
    old = findings_before_run(cluster.snapshot(states=True), cluster, topics=["t"])
    change = expand_topic(live, (3, 1, 2))
    cluster.expand([change])

    assert troubles(verified(change, cluster=cluster, clock=FakeClock(), known_findings=old)) == [
        ("V14", Verdict.DEGRADED, "broker 3 gave no answer within 2 s")
    ]


def test_topics_whose_states_nobody_read_have_no_old_trouble() -> None:
    cluster = RestingCluster()
    cluster.put_topic("t", (1, 2, 3))

    assert findings_before_run(cluster.snapshot(), cluster, topics=["t"]) == frozenset()


# --- a whole cluster --------------------------------------------------------------------------------------------------


def whole(cluster: RestingCluster) -> list[tuple[str, str, str]]:
    checks = verify_cluster(cluster.snapshot(states=True), cluster)
    return [(check.topic, check.id, check.message) for check in checks if not check.is_healthy]


def test_a_topic_that_only_brokers_know_is_told() -> None:
    cluster = RestingCluster()
    cluster.put_topic("t", (1, 2))
    for broker in (1, 3):
        cluster.freeze_metadata(broker)
    cluster.remove_topic("t")

    message = "broker 1, broker 3 serve it, and there is no such topic in ZooKeeper"
    assert whole(cluster) == [("t", "V14", message)]


def test_a_topic_that_was_made_since_the_snapshot_is_no_trouble() -> None:
    cluster = RestingCluster()
    before = cluster.snapshot(states=True)
    cluster.put_topic("young", (1, 2))

    checks = verify_cluster(before, cluster, confirmed=lambda names: [n for n in names if n != "young"])

    assert checks == ()


def test_logs_and_end_offsets_of_a_whole_cluster_are_looked_at_too() -> None:
    cluster = RestingCluster()
    cluster.put_topic("t", (1, 2))
    cluster.idle_logs.add((2, "t", 0))
    cluster.unread_logs[1, "t", 0] = "NOT_LEADER_FOR_PARTITION (6)"

    assert [found[:2] for found in whole(cluster)] == [("t", "V16"), ("t", "V16")]
