"""The sensor and the hook look by the rules of verify, and say what is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from fixtures.simulated import Simulated
from topicops.flow import verifying
from topicops.model.errors import ArtifactError, ClusterUnreachableError, TopicopsError, WrongTargetError
from topicops.on_airflow import KafkaTopicsHook, TopicHealthySensor

ORDERS = "shop.orders"


@pytest.fixture
def hook(simulated: Simulated, topicops_home: Path) -> KafkaTopicsHook:
    simulated.workspace.topic(ORDERS, partitions=3)
    simulated.apply(simulated.planned())
    return KafkaTopicsHook("local", simulated.workspace.folder / "topics")


def test_a_topic_is_healthy_when_each_rule_of_verify_holds(hook: KafkaTopicsHook) -> None:
    assert hook.is_healthy(ORDERS)
    assert {check.id for check in hook.checks(ORDERS)} >= {"V02", "V08", "V14", "V15"}


def test_a_topic_that_is_not_there_is_a_problem_and_no_error(hook: KafkaTopicsHook) -> None:
    assert not hook.is_healthy("shop.carts")
    assert hook.problems("shop.carts") == ("V02: topic is not there",)


def test_a_topic_without_all_replicas_in_sync_is_not_waited_for(hook: KafkaTopicsHook, simulated: Simulated) -> None:
    simulated.cluster.stop_broker(1)
    assert not hook.is_healthy(ORDERS)
    assert any("V08" in problem or "V07" in problem for problem in hook.problems(ORDERS)), hook.problems(ORDERS)


def test_to_look_writes_nothing(hook: KafkaTopicsHook, topicops_home: Path) -> None:
    before = sorted(topicops_home.rglob("*"))
    hook.checks(ORDERS)
    assert sorted(topicops_home.rglob("*")) == before


def sensor(hook: KafkaTopicsHook, topic: str = ORDERS) -> TopicHealthySensor:
    return TopicHealthySensor(task_id="wait", environment="local", topics=hook.topics, topic=topic)


def test_the_sensor_waits_without_a_worker_until_the_topic_is_healthy(
    hook: KafkaTopicsHook, caplog: pytest.LogCaptureFixture
) -> None:
    assert sensor(hook).mode == "reschedule"
    assert sensor(hook).poke({})
    with caplog.at_level(logging.INFO):
        assert not sensor(hook, "shop.carts").poke({})
    assert "shop.carts: V02: topic is not there" in caplog.text


@pytest.mark.parametrize(
    ("problem", "ends"),
    [
        pytest.param(WrongTargetError("another cluster"), AirflowFailException, id="another cluster"),
        pytest.param(ArtifactError("a file"), AirflowException, id="an error that may pass"),
    ],
)
def test_what_waiting_cannot_mend_ends_it(
    hook: KafkaTopicsHook, monkeypatch: pytest.MonkeyPatch, problem: TopicopsError, ends: type[Exception]
) -> None:
    monkeypatch.setattr(verifying, "check_topics", raises(problem))
    with pytest.raises(ends, match=str(problem)):
        sensor(hook).poke({})


def test_a_cluster_that_does_not_answer_is_waited_for(
    hook: KafkaTopicsHook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(verifying, "check_topics", raises(ClusterUnreachableError("nobody answers")))
    with caplog.at_level(logging.INFO):
        assert not sensor(hook).poke({})
    assert f"{ORDERS}: nobody answers" in caplog.text


def test_an_environment_that_has_no_file_ends_it(hook: KafkaTopicsHook) -> None:
    wrong = TopicHealthySensor(task_id="wait", environment="prod", topics=hook.topics, topic=ORDERS)
    with pytest.raises(AirflowFailException, match="prod"):
        wrong.poke({})


def raises(problem: TopicopsError) -> Callable[..., None]:
    def check_topics(*_: object) -> None:
        raise problem

    return check_topics
