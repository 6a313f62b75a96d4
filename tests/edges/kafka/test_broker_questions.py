"""What is concluded from the brokers' answers about a topic; the answers themselves are tested on real brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from topicops.edges.kafka.clients.kafka_python_inside import BrokerConnections
from topicops.edges.kafka.questions.broker_questions import EARLIEST, LATEST, NEWEST, BrokerQuestions
from topicops.model.errors import ClusterUnreachableError
from topicops.model.plans.plan import NO_RECORD, TopicActivity

KEPT_MS = 604_800_000


def test_the_newest_record_of_all_partitions_counts_also_beside_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = activity(monkeypatch, starts=[0, 0, 0], ends=[5, 0, 7], newest_ms=[1_000, NO_RECORD, 3_000])
    assert found.last_record_ms == 3_000


def activity(
    monkeypatch: pytest.MonkeyPatch, *, starts: Sequence[int] | None, ends: Sequence[int], newest_ms: Sequence[int]
) -> TopicActivity:
    """Of a topic whose partitions have these offsets and newest times; None: brokers do not tell where logs begin."""
    offsets = {LATEST: ends, EARLIEST: starts, NEWEST: [-1 if ms == NO_RECORD else 0 for ms in newest_ms]}
    times = {LATEST: [-1] * len(ends), EARLIEST: [-1] * len(ends), NEWEST: newest_ms}

    def answers(_: object, partitions: Mapping[str, Sequence[int]], spec: Any, __: object) -> Mapping[str, Any]:
        if offsets[spec] is None or not partitions:
            return {}
        told = zip(offsets[spec] or (), times[spec], strict=True)
        return {"t": {p: SimpleNamespace(offset=offset, timestamp=ms) for p, (offset, ms) in enumerate(told)}}

    def kept(_: object, topics: Collection[str], __: object) -> dict[str, int]:
        return dict.fromkeys(topics, KEPT_MS)

    described = SimpleNamespace(partitions=[SimpleNamespace(id=p) for p in range(len(ends))])
    monkeypatch.setattr(BrokerQuestions, "_told", lambda *_: {"t": described})
    monkeypatch.setattr(BrokerQuestions, "_offsets", answers)
    monkeypatch.setattr(BrokerQuestions, "_kept_ms", kept)
    monkeypatch.setattr(BrokerQuestions, "_groups", lambda *_: {"t": {}})
    with closing(BrokerQuestions({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=0.1)) as questions:
        return questions.activity(["t"])["t"]


@pytest.mark.parametrize(
    ("starts", "ends", "newest_ms", "emptied", "kept_ms"),
    [
        pytest.param([100], [100], [NO_RECORD], (0,), KEPT_MS, id="its records are gone"),
        pytest.param([0], [100], [NO_RECORD], (0,), None, id="all in remote storage, or without a time"),
        pytest.param(None, [100], [NO_RECORD], (0,), None, id="where it begins is not known"),
        pytest.param([100, 40], [100, 50], [NO_RECORD, NO_RECORD], (0, 1), None, id="one is empty, one is not"),
        pytest.param([100, 40], [100, 50], [NO_RECORD, 7], (0,), KEPT_MS, id="one is empty, one has a time"),
        pytest.param([0], [0], [NO_RECORD], (), None, id="no record was ever written"),
    ],
)
def test_only_a_partition_that_begins_where_it_ends_is_empty(
    monkeypatch: pytest.MonkeyPatch,
    starts: Sequence[int] | None,
    ends: Sequence[int],
    newest_ms: Sequence[int],
    emptied: tuple[int, ...],
    kept_ms: int | None,
) -> None:
    found = activity(monkeypatch, starts=starts, ends=ends, newest_ms=newest_ms)

    assert (found.emptied, found.kept_ms) == (emptied, kept_ms)


def test_brokers_of_which_none_answers_hold_up_one_question_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def silent(connections: BrokerConnections) -> float:
        asked.append(connections)
        raise ClusterUnreachableError("no broker answers")

    monkeypatch.setattr(BrokerConnections, "answer_s", silent)
    with closing(BrokerQuestions({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=0.1)) as questions:
        found = questions.broker_defaults(), questions.releases(), questions.missing_requests()
        directories = questions.log_directories({"t": [0]})

    assert (found, directories, len(asked)) == (({}, None, {}), {}, 1)
