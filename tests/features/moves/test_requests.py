"""What the requests of moves say, and how answers are read, without a broker."""

from collections.abc import Sequence
from types import SimpleNamespace as Answer

import pytest
from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse, ElectLeadersResponse

from topicops.features.moves.edges.requests import (
    LEADER_RATE,
    Operation,
    adding,
    caps_min_isr,
    cleaned,
    elect_answers,
    rates_of,
    removing,
    sizes_of,
)
from topicops.features.moves.record import LEADER_LIST, TopicPartition
from topicops.model.release import FIRST_REQUESTS, Release

RESULT = DescribeConfigsResponse.DescribeConfigsResult
DIRECTORY = DescribeLogDirsResponse.DescribeLogDirsResult
BY_TOPIC, ON_BROKER, ON_ALL, BUILT_IN = 1, 2, 3, 5
"""Sources of a config, as brokers number them."""


@pytest.mark.parametrize(
    ("present", "entries", "can_begin", "edits"),
    [
        pytest.param([], ["0:1", "1:1"], True, [(Operation.APPEND, "0:1,1:1")], id="to none"),
        pytest.param(["9:9"], ["0:1"], True, [(Operation.APPEND, "0:1")], id="to those of others"),
        pytest.param(["0:1", "9:9"], ["0:1", "1:1"], True, [(Operation.APPEND, "1:1")], id="some are there"),
        pytest.param(["0:1"], ["0:1"], True, [], id="all are there"),
        pytest.param([], ["0:1"], False, [(Operation.SET, "0:1")], id="2.4: to none"),
        pytest.param(["9:9"], ["0:1"], False, [(Operation.APPEND, "0:1")], id="2.4: to those of others"),
    ],
)
def test_entries_are_added_once_and_those_of_others_stay(
    present: Sequence[str], entries: Sequence[str], can_begin: bool, edits: Sequence[tuple[Operation, str]]
) -> None:
    found = [*adding(LEADER_LIST, present, entries, can_begin=can_begin)]
    assert found == [(LEADER_LIST, *edit) for edit in edits]


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        pytest.param(",0:1", [(Operation.SET, "0:1")], id="begun by Kafka 2.8"),
        pytest.param("0:1,,1:1", [(Operation.SET, "0:1,1:1")], id="in the middle"),
        pytest.param("0:1,1:1", [], id="none"),
        pytest.param("*", [], id="all replicas, by somebody else"),
        pytest.param("", [], id="an empty list"),
        pytest.param(None, [], id="no list"),
    ],
)
def test_an_empty_entry_that_no_broker_can_read_is_taken_out(
    text: str | None, edits: Sequence[tuple[Operation, str]]
) -> None:
    assert [*cleaned(LEADER_LIST, text)] == [(LEADER_LIST, *edit) for edit in edits]


@pytest.mark.parametrize(
    ("present", "entries", "edits"),
    [
        pytest.param(["0:1", "1:1"], ["0:1", "1:1"], [(Operation.DELETE, None)], id="none is left"),
        pytest.param(["0:1", "9:9"], ["0:1"], [(Operation.SUBTRACT, "0:1")], id="those of others are left"),
        pytest.param(["9:9"], ["0:1"], [], id="ours are gone already"),
        pytest.param([], ["0:1"], [], id="there is no list"),
        pytest.param(["*"], ["0:1"], [], id="all replicas, by somebody else"),
        pytest.param(["0:1", "0:1", "9:9"], ["0:1"], [(Operation.SUBTRACT, "0:1,0:1")], id="one of them twice"),
    ],
)
def test_entries_are_taken_out_and_those_of_others_stay(
    present: Sequence[str], entries: Sequence[str], edits: Sequence[tuple[Operation, str | None]]
) -> None:
    assert [*removing(LEADER_LIST, present, entries)] == [(LEADER_LIST, *edit) for edit in edits]


@pytest.mark.parametrize(
    ("source", "value", "rates", "is_hidden"),
    [
        pytest.param(ON_BROKER, "1000", {LEADER_RATE: 1000}, False, id="set on this broker"),
        pytest.param(ON_ALL, "1000", {LEADER_RATE: 1000}, False, id="set for all brokers"),
        pytest.param(BUILT_IN, "9223372036854775807", {}, False, id="built in, which is none"),
        pytest.param(ON_BROKER, None, {LEADER_RATE: None}, True, id="hidden, as before 2.5"),
    ],
)
def test_a_rate_counts_if_somebody_has_set_it(
    source: int, value: str | None, rates: dict[str, int | None], is_hidden: bool
) -> None:
    setting = RESULT.DescribeConfigsResourceResult(name=LEADER_RATE, value=value, config_source=source)
    other = RESULT.DescribeConfigsResourceResult(name="min.insync.replicas", value="2", config_source=ON_BROKER)
    assert rates_of(Answer(results=[RESULT(configs=[setting, other])])) == (rates, is_hidden)


def test_logs_that_no_replica_uses_count_and_free_bytes_are_those_of_the_emptiest_directory() -> None:
    log = DIRECTORY.DescribeLogDirsTopic.DescribeLogDirsPartition
    logs = [
        log(partition_index=0, partition_size=5, offset_lag=0),
        log(partition_index=1, partition_size=7, offset_lag=-1),
        log(partition_index=2, partition_size=9, offset_lag=4, is_future_key=True),
    ]
    topic = DIRECTORY.DescribeLogDirsTopic(name="bills", partitions=logs)
    working = [DIRECTORY(topics=[topic], usable_bytes=100), DIRECTORY(topics=[], usable_bytes=300)]
    failed = DIRECTORY(error_code=56, topics=[], usable_bytes=900)

    found = sizes_of(Answer(results=[*working, failed]))

    assert found.bytes_of == {TopicPartition("bills", 0): 5, TopicPartition("bills", 1): 7}
    assert found.free_bytes == 300


def test_brokers_before_3_3_do_not_tell_what_is_free() -> None:
    assert sizes_of(Answer(results=[DIRECTORY(topics=[])])).free_bytes is None


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        pytest.param(0, "", id="elected"),
        pytest.param(84, "", id="not needed"),
        pytest.param(80, "PREFERRED_LEADER_NOT_AVAILABLE (80): broker 3 is down", id="it is down"),
    ],
)
def test_an_election_that_is_not_needed_is_no_refusal(code: int, answer: str) -> None:
    result = ElectLeadersResponse.ReplicaElectionResult
    partition = result.PartitionResult(partition_id=2, error_code=code, error_message="broker 3 is down")
    found = Answer(replica_election_results=[result(topic="bills", partition_result=[partition])])
    assert elect_answers(found) == {TopicPartition("bills", 2): answer}


@pytest.mark.parametrize(
    ("release", "caps"), [((2, 4), False), ((3, 6), False), ((3, 7), True), ((4, 4), True)], ids=str
)
def test_brokers_cap_the_minimum_in_sync_since_3_7(release: tuple[int, int], caps: bool) -> None:
    known = [requests for since, requests in FIRST_REQUESTS.items() if since <= Release(*release)]
    assert caps_min_isr(dict(known)) is caps


def test_a_broker_that_does_not_tell_its_requests_may_cap_it() -> None:
    assert caps_min_isr("gave no list of its requests")
