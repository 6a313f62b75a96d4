"""Which broker of which cluster has answered."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from topicops.edges.kafka.clients.kafka_python_inside import other_identity

INVALID, REFUSED = KafkaError.INVALID_REQUEST, KafkaError.CLUSTER_AUTHORIZATION_FAILED
OWN_ID = "Unexpected broker id, expected 1 or empty string, but received 2"


def settings(error_code: int = 0, error_message: str = "") -> Any:
    return SimpleNamespace(results=[SimpleNamespace(error_code=error_code, error_message=error_message)])


def metadata(cluster_id: str | None) -> Any:
    return SimpleNamespace(cluster_id=cluster_id)


@pytest.mark.parametrize(
    ("answers", "other"),
    [
        pytest.param((settings(), metadata("ours")), "", id="itself"),
        pytest.param((settings(INVALID, OWN_ID), metadata("ours")), "broker 1", id="another broker"),
        pytest.param((settings(INVALID), metadata("ours")), "another broker", id="another broker without a number"),
        pytest.param((settings(), metadata("theirs")), "a broker of cluster theirs", id="the same id elsewhere"),
        pytest.param((settings(REFUSED), metadata("ours")), "", id="it does not tell this reader"),
        pytest.param((None, None), "", id="no answer"),
        pytest.param((settings(), metadata(None)), "", id="a cluster without an id"),
    ],
)
def test_another_broker_or_cluster_that_answers_is_named(answers: tuple[Any, Any], other: str) -> None:
    assert other_identity(answers, "ours") == other
