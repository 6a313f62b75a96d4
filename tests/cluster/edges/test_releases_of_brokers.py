"""Which release the brokers run, as they show it themselves."""

from __future__ import annotations

import time
from contextlib import closing

from topicops.edges.kafka.questions.broker_questions import BrokerQuestions
from topicops.model.release import USUAL
from topicops_local.cluster import LocalCluster


def test_a_silent_broker_delays_the_answer_of_the_others_by_two_seconds_a_question(local_cluster: LocalCluster) -> None:
    properties = {"bootstrap.servers": local_cluster.bootstrap_servers}
    local_cluster.pause(3)
    try:
        with closing(BrokerQuestions(properties, timeout_s=30.0)) as questions:
            started = time.monotonic()
            releases = questions.releases()
            seconds = time.monotonic() - started
    finally:
        local_cluster.resume(3)

    assert releases == (USUAL, USUAL)
    assert seconds < 8, f"{seconds:.1f} s"
