"""Each broker has defaults of its own: the riskiest of them counts, and one that is not known counts as the worse."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.builders import desired_of, desired_topic, healthy_states, live_topic, partition_state, round_robin, snapshot
from fixtures.planning import plan_of
from topicops.model.cluster.broker_defaults import BrokerDefaults, DefaultOnBrokers
from topicops.model.cluster.snapshot import ClusterSnapshot, LiveTopic, Source
from topicops.model.plans.changes import Change, ConfigureTopic
from topicops.model.specs.desired import DesiredTopic
from topicops.model.specs.environment import Risk

DAY = 86_400_000
WEEK, HOUR, MONTH = str(7 * DAY), "3600000", str(30 * DAY)


def retention(first: str, *others: str) -> BrokerDefaults:
    """``retention.ms`` of brokers 1, 2 and 3."""
    return {broker: {"retention.ms": value} for broker, value in enumerate((first, *others), 1)}


def topic(**overrides: str) -> LiveTopic:
    return live_topic("paid", overrides={name.replace("_", "."): value for name, value in overrides.items()})


def change(live: ClusterSnapshot, desired: DesiredTopic) -> Change:
    (found,) = plan_of(desired_of(desired), live).changes
    return found


def configured(live: LiveTopic, defaults: BrokerDefaults, **configs: str | None) -> ConfigureTopic:
    wanted = {name.replace("_", "."): value for name, value in configs.items()}
    found = change(snapshot(live, broker_defaults=defaults), desired_topic("paid", configs=wanted))
    assert isinstance(found, ConfigureTopic)
    return found


@pytest.mark.parametrize(
    ("override", "wanted"),
    [pytest.param(WEEK, None, id="an override goes"), pytest.param(None, str(2 * 3_600_000), id="an override comes")],
)
def test_a_value_that_is_shorter_on_one_broker_is_destructive(override: str | None, wanted: str | None) -> None:
    live = topic() if override is None else topic(retention_ms=override)
    found = configured(live, retention(WEEK, HOUR, HOUR), retention_ms=wanted)
    assert (found.risk, found.codes, found.reversible) == (Risk.DESTRUCTIVE, ("TOP413",), False)
    rows = (DefaultOnBrokers(WEEK, (1,)), DefaultOnBrokers(HOUR, (2, 3)))
    assert (found.broker_defaults, found.differing_defaults) == ({}, {"retention.ms": rows})
    assert found.notes == ("the brokers' defaults of retention.ms differ; the riskiest one counts",)


def test_a_value_that_is_longer_on_each_broker_is_a_notice() -> None:
    found = configured(topic(retention_ms=HOUR), retention("7200000", "10800000", "7200000"), retention_ms=None)
    assert (found.risk, found.codes) == (Risk.NOTICE, ())


def test_brokers_that_agree_are_not_named() -> None:
    found = configured(topic(retention_ms=WEEK), retention(WEEK, WEEK, WEEK), retention_ms=None)
    assert (found.risk, found.broker_defaults, found.differing_defaults) == (Risk.NOTICE, {"retention.ms": WEEK}, {})


def without_answer(defaults: BrokerDefaults) -> ClusterSnapshot:
    return snapshot(topic(retention_ms=WEEK), broker_defaults=defaults)


def on_a_stopped_broker() -> ClusterSnapshot:
    live = live_topic("paid", assignment={0: (1, 2, 4)}, overrides={"retention.ms": WEEK})
    return snapshot(live, broker_defaults=retention(WEEK, WEEK, WEEK))


@pytest.mark.parametrize(
    ("live", "unknown"),
    [
        pytest.param(without_answer({**retention(WEEK, WEEK), 3: "gave no answer in time"}), (3,), id="silent"),
        pytest.param(without_answer(retention(WEEK, WEEK)), (3,), id="missing in the brokers' list"),
        pytest.param(on_a_stopped_broker(), (4,), id="not registered, with a replica"),
    ],
)
def test_a_broker_whose_default_is_not_known_counts_as_the_worse(
    live: ClusterSnapshot, unknown: tuple[int, ...]
) -> None:
    partitions = live.topics["paid"].partitions
    found = change(live, desired_topic("paid", partitions, configs={"retention.ms": None}))
    assert isinstance(found, ConfigureTopic)
    assert (found.risk, found.codes) == (Risk.DESTRUCTIVE, ("TOP413",))
    assert DefaultOnBrokers(None, unknown) in found.differing_defaults["retention.ms"]
    assert found.notes == (f"broker {unknown[0]} gave no default of retention.ms; the worse direction counts",)


@pytest.mark.parametrize("second", [{"cleanup.policy": "compact"}, "gave no answer in time"], ids=["other", "silent"])
def test_growing_is_risky_if_one_broker_may_compact_the_topic(second: Mapping[str, str] | str) -> None:
    defaults: BrokerDefaults = {1: {"cleanup.policy": "delete"}, 2: second, 3: {"cleanup.policy": "delete"}}
    found = change(snapshot(topic(), broker_defaults=defaults), desired_topic("paid", 6))
    assert (found.risk, found.codes) == (Risk.RISKY, ("TOP404",))


def test_the_largest_minimum_of_a_broker_must_be_met_by_each_isr() -> None:
    rows = round_robin(3)
    states = {p: replace(state, isr=state.isr[:2]) for p, state in healthy_states(rows).items()}
    live = live_topic("paid", overrides={"min.insync.replicas": "1"}, states=states)
    defaults = {broker: {"min.insync.replicas": str(broker)} for broker in (1, 2, 3)}
    wanted = desired_topic("paid", configs={"min.insync.replicas": None})
    (blocked,) = plan_of(desired_of(wanted), snapshot(live, broker_defaults=defaults)).blocked
    assert blocked.codes == ("TOP415",)
    assert "min.insync.replicas 3 is above the ISR" in blocked.reasons[0]


@pytest.mark.parametrize(
    ("source", "risk"), [("zookeeper", Risk.NOTICE), ("kafka", Risk.DESTRUCTIVE)], ids=["brokers'", "controllers'"]
)
def test_under_kraft_the_default_of_unclean_elections_is_that_of_the_controllers(source: Source, risk: Risk) -> None:
    unclean = "unclean.leader.election.enable"
    defaults = {broker: {unclean: "false"} for broker in (1, 2, 3)}
    live = replace(snapshot(topic(**{unclean: "false"}), broker_defaults=defaults), source=source)

    found = change(live, desired_topic("paid", configs={unclean: None}))

    assert found.risk is risk
    said = ("the controllers gave no default of unclean.leader.election.enable; the worse direction counts",)
    assert found.notes == (() if source == "zookeeper" else said)


def test_a_min_isr_that_is_not_known_may_be_as_large_as_the_partitions_have_replicas() -> None:
    alone = live_topic("paid", assignment={0: (1, 2, 3)}, overrides={"min.insync.replicas": "1"})
    alone = replace(alone, states={0: partition_state([1])})
    defaults = {1: {"min.insync.replicas": "1"}, 2: {"min.insync.replicas": "1"}, 3: "gave no answer in time"}
    wanted = desired_of(desired_topic("paid", configs={"min.insync.replicas": None}))

    (blocked,) = plan_of(wanted, snapshot(alone, broker_defaults=defaults)).blocked

    assert blocked.codes == ("TOP415",)
    assert "min.insync.replicas 3 is above the ISR" in blocked.reasons[0]
