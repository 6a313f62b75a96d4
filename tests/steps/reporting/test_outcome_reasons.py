from __future__ import annotations

import pytest

from topicops.model.runs.results import Outcome, OutcomeStatus
from topicops.steps.reporting.run_report import reasons_of


@pytest.mark.parametrize(
    ("topic", "message", "shown"),
    [
        pytest.param("orders", "topic.orders has 3 partitions", "the topic has 3 partitions", id="as logs name it"),
        pytest.param("orders", "no file describes orders.", "no file describes the topic.", id="at the end"),
        pytest.param("test", "the latest plan is older", "the latest plan is older", id="a part of a word"),
        pytest.param("orders", "orders-v2 and a.orders.b differ", "orders-v2 and a.orders.b differ", id="other topics"),
    ],
)
def test_only_the_topic_s_whole_name_is_left_out(topic: str, message: str, shown: str) -> None:
    outcome = Outcome(topic=topic, action="create", digest="d", status=OutcomeStatus.REFUSED, message=message)
    (reason,) = reasons_of([outcome])
    assert reason.message == shown
