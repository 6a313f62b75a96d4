"""Where the brokers are the source, verify holds their metadata against what lies on their disks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.changes import create_topic, delete_topic
from fakes.fake_ports import FakeClock
from fakes.resting_cluster import RestingCluster
from fixtures.verified import troubles, verified
from topicops.model.errors import ExitStatus
from topicops.model.plans.changes import Change
from topicops.model.runs.results import Check, Verdict
from topicops.steps.reporting.run_report import RunReport, report_json, report_text, verdict_table
from topicops.steps.reporting.run_result import verify_exit_status
from topicops.steps.verifying.checks import RULES
from topicops.steps.verifying.verify import verify_cluster

ROWS = ((1, 2, 3), (2, 3, 1))


@pytest.fixture
def cluster() -> RestingCluster:
    return RestingCluster()


def created_and_verified(cluster: RestingCluster, clock: FakeClock | None = None) -> tuple[Check, ...]:
    change = create_topic("t", *ROWS)
    cluster.create([change])
    return by_brokers(cluster, change, clock or FakeClock())


def by_brokers(cluster: RestingCluster, change: Change, clock: FakeClock) -> tuple[Check, ...]:
    return verified(change, cluster=cluster, clock=clock, source="kafka")


def test_what_is_right_in_metadata_and_on_disk_is_healthy_under_every_rule(cluster: RestingCluster) -> None:
    checks = created_and_verified(cluster)

    assert troubles(checks) == []
    assert [check.id for check in checks] == list(dict.fromkeys(check for check, _ in RULES))


def test_a_replica_without_its_log_and_a_broker_that_does_not_tell_its_disks_are_named(cluster: RestingCluster) -> None:
    cluster.missing_logs.add((2, "t", 1))
    cluster.silent_disks.add(3)

    assert sorted(troubles(created_and_verified(cluster))) == [
        ("V16", Verdict.CONVERGING, "broker 2 has no log directory for partition 1"),
        ("V16", Verdict.DEGRADED, "broker 3 does not describe its log directories: refused"),
    ]


def test_a_log_that_is_made_a_moment_later_is_waited_for(cluster: RestingCluster) -> None:
    cluster.missing_logs.add((2, "t", 1))
    clock = FakeClock()
    clock.at(4.0, cluster.missing_logs.clear)

    assert troubles(created_and_verified(cluster, clock)) == []
    assert clock.now > 4


def test_disks_that_no_request_shows_are_not_checked_and_the_others_are(cluster: RestingCluster) -> None:
    cluster.hidden_disks |= {1, 2}
    clock = FakeClock()

    unseen = troubles(created_and_verified(cluster, clock))
    cluster.missing_logs.add((3, "t", 0))
    checks = verify_cluster(replace(cluster.snapshot(states=True), source="kafka"), cluster)

    hidden = "log directories (broker 1 offers no DescribeLogDirs, broker 2 offers no DescribeLogDirs)"
    assert unseen == [("V16", Verdict.NOT_CHECKED, hidden)]
    assert clock.now < 1, "nobody waits for what never comes"
    assert troubles(checks) == [*unseen, ("V16", Verdict.CONVERGING, "broker 3 has no log directory for partition 0")]


def test_what_is_left_on_disks_that_no_request_shows_is_not_checked(cluster: RestingCluster) -> None:
    cluster.hidden_disks.add(2)
    delete = delete_topic(cluster.put_topic("t", (1, 2)))
    cluster.delete(delete)

    found = troubles(by_brokers(cluster, delete, FakeClock()))

    assert found == [("V17", Verdict.NOT_CHECKED, "log directories (broker 2 offers no DescribeLogDirs)")]


def test_the_report_does_not_call_healthy_what_was_not_checked(cluster: RestingCluster) -> None:
    cluster.hidden_disks.add(2)
    report = RunReport(environment="local", checks=created_and_verified(cluster), source="kafka")
    text = report_text(report)

    assert text.startswith(
        "The cluster is healthy, as far as it could be checked: 1 topic checked; not everything checked on 1 topic."
    )
    assert "0 topics healthy" in text
    assert "1 topic without a problem, as far as checked" in text
    assert "not checked: log directories (broker 2 offers no DescribeLogDirs): 1 topic" in text
    assert report_json(report).verdicts[Verdict.NOT_CHECKED] == 1
    assert "| t | not checked | V16: log directories (broker 2 offers no DescribeLogDirs) |" in verdict_table(
        report.checks
    )
    assert verify_exit_status(report.summary) is ExitStatus.SUCCESS


def test_sentences_name_the_side_that_was_read(cluster: RestingCluster) -> None:
    change = create_topic("t", (1, 2, 3))
    cluster.create([change])
    cluster.freeze_metadata(3)
    cluster.stop_broker(1)
    cluster.start_broker(1)

    messages = [message for _, _, message in troubles(by_brokers(cluster, change, FakeClock()))]

    assert messages == ["broker 3 sees leader 1 of partition 0, the controller's metadata 2"]


def test_a_topic_that_stays_after_its_deletion_is_no_znode(cluster: RestingCluster) -> None:
    delete = delete_topic(cluster.put_topic("t", (1, 2)))

    checks = by_brokers(cluster, delete, FakeClock())

    assert troubles(checks)[0][2].startswith("left: the topic")


def test_the_report_says_which_two_sides_were_looked_at(cluster: RestingCluster) -> None:
    checks = created_and_verified(cluster)
    by_brokers = RunReport(environment="local", checks=checks, source="kafka")
    by_zookeeper = replace(by_brokers, source="zookeeper")

    assert "1 topic healthy, by the brokers' metadata and their log directories" in report_text(by_brokers)
    assert "1 topic healthy, by ZooKeeper and the brokers' metadata" in report_text(by_zookeeper)
    assert report_json(by_brokers).sides == ("the brokers' metadata", "their log directories")
