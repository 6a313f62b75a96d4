"""Where the brokers are the source, verify holds their metadata against what lies on their disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from topicops.model.changes import Change
from topicops.model.environment import Verify
from topicops.model.ports import BrokerView
from topicops.model.results import Check, Outcome, OutcomeStatus, Verdict
from topicops.steps.checks import DISK_RULES, RULES
from topicops.steps.report import RunReport, report_json, report_text
from topicops.steps.verify import verify, verify_cluster
from topicops.testing.changes import create_topic, delete_topic, plan_of
from topicops.testing.fake_cluster import FakeCluster
from topicops.testing.fakes import FakeClock

ROWS = ((1, 2, 3), (2, 3, 1))


class Disks:
    """The brokers of a fake cluster, each with the logs of all that it holds but what a test takes away."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.missing: set[tuple[int, int]] = set()
        """Broker and partition."""
        self.silent: set[int] = set()

    def views(self, brokers: Sequence[int], topics: Sequence[str]) -> Mapping[int, BrokerView | str]:
        found = self.cluster.views(brokers, topics)
        return {broker: self._with_disks(broker, view) for broker, view in found.items()}

    def _with_disks(self, broker: int, view: BrokerView | str) -> BrokerView | str:
        if isinstance(view, str):
            return view
        if broker in self.silent:
            return replace(view, directories=f"broker {broker} does not tell its log directories: refused")
        held = {
            topic: frozenset(
                p for p, seen in partitions.items() if broker in seen.replicas and (broker, p) not in self.missing
            )
            for topic, partitions in view.topics.items()
        }
        return replace(view, directories=held)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def disks(cluster: FakeCluster) -> Disks:
    return Disks(cluster)


def created_and_verified(cluster: FakeCluster, disks: Disks, clock: FakeClock | None = None) -> tuple[Check, ...]:
    change = create_topic("t", *ROWS)
    cluster.create([change])
    return verified(cluster, disks, change, clock or FakeClock())


def verified(cluster: FakeCluster, disks: Disks, change: Change, clock: FakeClock) -> tuple[Check, ...]:
    plan = plan_of(change)
    done = [
        Outcome(topic=g.change.topic, action=g.change.action, digest=g.digest, status=OutcomeStatus.DONE, sent=True)
        for g in plan.changes
    ]
    return verify(
        plan,
        done,
        reader=cluster,
        metadata=disks,
        deadlines=Verify(),
        clock=clock,
        sleep=clock.sleep,
        source="kafka",
    )


def troubles(checks: tuple[Check, ...]) -> list[tuple[str, Verdict, str]]:
    return [(check.id, check.verdict, check.message) for check in checks if not check.is_healthy]


def test_what_is_right_in_metadata_and_on_disk_is_healthy_under_every_rule(cluster: FakeCluster, disks: Disks) -> None:
    checks = created_and_verified(cluster, disks)

    assert troubles(checks) == []
    assert [check.id for check in checks] == sorted({**RULES, **DISK_RULES})


def test_a_replica_without_its_log_is_named(cluster: FakeCluster, disks: Disks) -> None:
    disks.missing.add((2, 1))

    (found,) = troubles(created_and_verified(cluster, disks))

    assert found == ("V16", Verdict.CONVERGING, "broker 2 has no log directory for partition 1")


def test_a_log_that_is_made_a_moment_later_is_waited_for(cluster: FakeCluster, disks: Disks) -> None:
    disks.missing.add((2, 1))
    clock = FakeClock()
    clock.at(4.0, disks.missing.clear)

    assert troubles(created_and_verified(cluster, disks, clock)) == []
    assert clock.now > 4


def test_a_broker_that_does_not_tell_its_disks_is_named(cluster: FakeCluster, disks: Disks) -> None:
    disks.silent.add(3)

    (found,) = troubles(created_and_verified(cluster, disks))

    assert found == ("V16", Verdict.DEGRADED, "broker 3 does not tell its log directories: refused")


def test_sentences_name_the_side_that_was_read(cluster: FakeCluster, disks: Disks) -> None:
    change = create_topic("t", (1, 2, 3))
    cluster.create([change])
    cluster.freeze_metadata(3)
    cluster.stop_broker(1)
    cluster.start_broker(1)

    messages = [message for _, _, message in troubles(verified(cluster, disks, change, FakeClock()))]

    assert messages == ["broker 3 sees leader 1 of partition 0, the controller's metadata 2"]


def test_a_topic_that_stays_after_its_deletion_is_no_znode(cluster: FakeCluster, disks: Disks) -> None:
    delete = delete_topic(cluster.put_topic("t", (1, 2)))

    checks = verified(cluster, disks, delete, FakeClock())

    assert troubles(checks)[0][2].startswith("left: the topic")


def test_the_whole_cluster_is_held_against_the_disks_too(cluster: FakeCluster, disks: Disks) -> None:
    cluster.put_topic("t", *ROWS)
    disks.missing.add((3, 0))
    snapshot = replace(cluster.snapshot(states=True), source="kafka")

    checks = verify_cluster(snapshot, disks.views([1, 2, 3], ["t"]))

    assert [check for check, _, _ in troubles(checks)] == ["V16"]


def test_the_report_says_which_two_sides_were_looked_at(cluster: FakeCluster, disks: Disks) -> None:
    checks = created_and_verified(cluster, disks)
    by_brokers = RunReport(environment="local", checks=checks, source="kafka")
    by_zookeeper = replace(by_brokers, source="zookeeper")

    assert "1 topic healthy, by the brokers' metadata and their log directories" in report_text(by_brokers)
    assert "1 topic healthy, by ZooKeeper and the brokers' metadata" in report_text(by_zookeeper)
    assert report_json(by_brokers)["sides"] == ["the brokers' metadata", "their log directories"]
