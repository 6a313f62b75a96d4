"""Facts by hand: what is counted at which broker, and how people read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import desired_topic, live_topic, owner_counts, partition_state, snapshot, tombstone
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, Tally
from topicops.model.errors import TopicopsError
from topicops.model.plans.delta import desired_row, live_row
from topicops.model.runs.facts import Facts, PartitionCounts
from topicops.model.specs.desired import DesiredTopic
from topicops.steps.facts import counts_without_states, facts_of, owned_topics, owners_of, partition_counts
from topicops.steps.planning.diff import diff
from topicops.steps.reporting.facts_wording import load_rows, owner_lines, unhealthy_lines
from topicops.steps.reporting.run_report import RunReport, report_json

RACKS = {1: "a", 2: "b", 3: "b"}


def facts(live: ClusterSnapshot) -> Facts:
    return facts_of(partition_counts(live) if live.has_states else counts_without_states(live), live)


def one_partition(*isr: int, replicas: tuple[int, ...] = (1, 2), leader: int | None = None) -> ClusterSnapshot:
    states = {0: partition_state(isr, leader=leader)}
    return snapshot(live_topic("orders", assignment={0: replicas}, states=states), racks=RACKS)


def owned(topic: DesiredTopic, owner: str) -> DesiredTopic:
    return replace(topic, owner=owner, location=replace(topic.location, file=f"topics/{owner}/{topic.name}.yaml"))


@pytest.mark.parametrize(
    ("live", "lines"),
    [
        pytest.param(one_partition(1, 2), [], id="healthy"),
        pytest.param(
            one_partition(1), ["broker 2, rack b: 1 partition with a replica outside the ISR (Q12)"], id="one lags"
        ),
        pytest.param(
            one_partition(1, 9, replicas=(1, 9)),
            ["broker 9, not registered: 1 partition with a replica on a broker that is not registered (Q27)"],
            id="a broker that is gone is still in the ISR",
        ),
        pytest.param(
            one_partition(1, 2, leader=-1),
            ["broker 1, rack a: 1 partition without a live leader (Q11)"],
            id="no leader",
        ),
        pytest.param(
            one_partition(2, 3, replicas=(2, 3)),
            ["no single broker: 1 partition on fewer racks than possible (Q15)"],
            id="one rack",
        ),
        pytest.param(
            one_partition(2, leader=1),
            [
                "broker 1, rack a: 1 partition led by a broker outside the ISR (Q26), "
                "1 partition with a replica outside the ISR (Q12)"
            ],
            id="a leader outside its ISR",
        ),
    ],
)
def test_an_unhealthy_partition_counts_at_the_broker_that_makes_it_so(live: ClusterSnapshot, lines: list[str]) -> None:
    assert unhealthy_lines(facts(live)) == lines


def test_the_broker_with_most_unhealthy_partitions_comes_first() -> None:
    rows = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    lagging = {0: partition_state((1,)), 1: partition_state((3,)), 2: partition_state((1,))}
    live = snapshot(live_topic("orders", assignment=rows, states=lagging), racks=dict.fromkeys(RACKS))

    assert [line.partition(":")[0] for line in unhealthy_lines(facts(live))] == ["broker 2", "broker 3"]


def test_without_states_nothing_is_said_of_leaders_and_health() -> None:
    live = snapshot(live_topic("orders", assignment={0: (1, 9), 1: (2, 3)}), racks=RACKS)

    found = facts(live)

    assert not found.has_states
    assert found.unhealthy == ()
    assert list(load_rows(found)) == [
        ("rack a", "", "1", "1", ""),
        ("rack b", "", "2", "1", ""),
        ("broker 1, rack a", "1", "1", "1", ""),
        ("broker 2, rack b", "1", "1", "1", ""),
        ("broker 3, rack b", "1", "1", "0", ""),
        ("broker 9, not registered", "1", "1", "0", ""),
    ]


def test_a_rack_counts_a_partition_once() -> None:
    found = facts(one_partition(2, 3, replicas=(2, 3)))

    assert next(load for load in found.load if load.rack == "b" and load.broker is None).partitions == 1


def test_owners_with_most_drift_come_first_and_topics_as_their_files_want_them_are_no_drift() -> None:
    desired = [
        owned(desired_topic("same"), "search"),
        owned(desired_topic("new"), "billing"),
        owned(desired_topic("newer"), "billing"),
        owned(tombstone("old"), "search"),
        owned(tombstone("gone"), "search"),
    ]
    live = snapshot(live_topic("same"), live_topic("old"), live_topic("foreign"))
    delta = diff(map(desired_row, desired), map(live_row, live.topics.values()))

    classes = owned_topics(desired, live, delta)
    found = facts_of(counts_without_states(live), live, classes)

    assert owner_lines(found) == ["billing (billing): 2 missing", "search (search): 1 tombstoned"]
    assert sum(counts.topics for counts in classes.values()) == sum(delta.counts.values()) == 6
    assert found.owners == (
        owner_counts("billing", topics=2, missing=2),
        owner_counts("search", topics=2, partitions=6, tombstoned=1),  # a retired topic is neither live nor wanted
        owner_counts(None, topics=1, partitions=3),
    )


def test_an_owner_s_unhealthy_partitions_are_those_that_break_a_rule_each_once() -> None:
    def partitions(*isrs: tuple[int, ...]) -> LiveTopic:
        states = {partition: partition_state(isr) for partition, isr in enumerate(isrs)}
        return live_topic("t", assignment=dict.fromkeys(states, (1, 2)), states=states)

    sick, well, foreign = partitions((1, 2), (1,), (9,)), partitions((1, 2)), partitions((2,))
    live = snapshot(
        *(replace(topic, name=name) for name, topic in (("sick", sick), ("well", well), ("foreign", foreign))),
        racks=dict.fromkeys((1, 2), "a"),
    )
    desired = [owned(desired_topic("sick"), "billing"), owned(desired_topic("well"), "search")]
    delta = diff(map(desired_row, desired), map(live_row, live.topics.values()))

    found = facts_of(partition_counts(live, owners_of(desired)), live, owned_topics(desired, live, delta))

    assert {of.owner: (of.partitions, of.unhealthy) for of in found.owners} == {
        "billing": (3, 2),
        "search": (1, 0),
        None: (1, 1),
    }


def test_a_count_that_left_something_out_is_an_error() -> None:
    tally = Tally()
    tally.count([live_topic("orders")])
    live = replace(snapshot(), totals=tally.totals)

    with pytest.raises(TopicopsError, match="0 replicas were counted, and 9 were read"):
        facts_of(PartitionCounts(replicas={}, preferred={}), live)


def test_the_report_has_the_owners_of_the_first_snapshot_and_the_health_of_the_newest() -> None:
    before = replace(
        facts(one_partition(1)), owners=(owner_counts("billing", topics=2, missing=2), owner_counts("search", topics=1))
    )
    found = report_json(RunReport(environment="local", facts_before=before, facts_after=facts(one_partition(1, 2))))
    assert (list(found.owners), found.unhealthy) == ([owner_counts("billing", topics=2, missing=2)], ())
