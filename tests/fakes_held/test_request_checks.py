"""What brokers refuse of a raw request, and their quota, where Kafka's table of cases has no row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.builders import live_topic
from fakes.changes import configure_topic, create_topic, expand_topic
from fakes.mutation_quota import MutationQuota, Taken
from fakes.request_checks import UNKNOWN_TOPIC, CreateRequest, RequestChecks
from topicops.model.release import Release

ROWS = {0: (1, 2)}


def name_of(request: CreateRequest, checks: RequestChecks | None = None, *, exists: bool = False) -> str:
    """Return the name of the error, empty for none."""
    live = live_topic(request.topic) if exists else None
    answer = (checks or RequestChecks()).answer_to_create(request, live, is_deleting=False, brokers=(1, 2, 3))
    return (answer.error or "").partition(" (")[0]


@pytest.mark.parametrize(
    ("request_", "exists", "name"),
    [
        pytest.param(
            CreateRequest(topic="a", replication_factor=0), False, "INVALID_REPLICATION_FACTOR", id="factor 0"
        ),
        pytest.param(CreateRequest(topic="a", partitions=0), False, "INVALID_PARTITIONS", id="no partition"),
        pytest.param(
            CreateRequest(topic="a", partitions=0, replication_factor=0), False, "INVALID_PARTITIONS", id="both"
        ),
        pytest.param(
            CreateRequest(topic="a", assignment=ROWS, replication_factor=2), False, "INVALID_REQUEST", id="one count"
        ),
        pytest.param(CreateRequest(topic="a", partitions=0), True, "TOPIC_ALREADY_EXISTS", id="there already"),
        pytest.param(
            CreateRequest(topic="a", to_controller=False, partitions=0), True, "NOT_CONTROLLER", id="another broker"
        ),
        pytest.param(
            CreateRequest(topic="a", partitions=0, timeout_ms=0), False, "INVALID_PARTITIONS", id="no time for an error"
        ),
        pytest.param(CreateRequest(topic="a b", partitions=0), False, "INVALID_PARTITIONS", id="counts before names"),
        pytest.param(CreateRequest(topic="a b"), False, "INVALID_TOPIC_EXCEPTION", id="a space"),
        pytest.param(CreateRequest(topic=""), False, "INVALID_TOPIC_EXCEPTION", id="no name"),
        pytest.param(CreateRequest(topic=".."), False, "INVALID_TOPIC_EXCEPTION", id="a folder"),
        pytest.param(CreateRequest(topic="a" * 250), False, "INVALID_TOPIC_EXCEPTION", id="too long"),
        pytest.param(CreateRequest(topic="a" * 249), False, "", id="the longest name"),
        pytest.param(
            CreateRequest(topic="a", assignment={0: (1,), 2: (2,)}), False, "INVALID_REPLICA_ASSIGNMENT", id="a gap"
        ),
        pytest.param(
            CreateRequest(topic="a", assignment={-1: (1,), 0: (1,), 3: (2,)}), False, "", id="ids of the right sum"
        ),
    ],
)
def test_the_first_error_in_the_order_of_brokers_is_told(request_: CreateRequest, exists: bool, name: str) -> None:
    assert name_of(request_, exists=exists) == name


@pytest.mark.parametrize(
    ("timeout_ms", "validate_only", "told"),
    [
        pytest.param(1, False, ("", True), id="waited for"),
        pytest.param(0, False, ("REQUEST_TIMED_OUT", True), id="not waited for"),
        pytest.param(0, True, ("", False), id="only asked"),
    ],
)
def test_a_request_that_is_not_waited_for_creates_what_it_does_not_confirm(
    timeout_ms: int, validate_only: bool, told: tuple[str, bool]
) -> None:
    request = CreateRequest(topic="a", timeout_ms=timeout_ms, validate_only=validate_only)
    answer = RequestChecks().answer_to_create(request, None, is_deleting=False, brokers=(1,))
    assert ((answer.error or "").partition(" (")[0], answer.is_created) == told


def test_a_policy_is_asked_last_and_sees_the_counts_that_the_brokers_chose() -> None:
    seen: list[CreateRequest] = []

    def policy(request: CreateRequest) -> str | None:
        seen.append(request)
        return "not by this name" if request.topic == "bad" else None

    checks = RequestChecks(create_policy=policy, default_partitions=6, default_replication_factor=3)
    asked = [
        CreateRequest(topic="bad", configs={"retention.ms": "soon"}),
        CreateRequest(topic="bad"),
        CreateRequest(topic="good", assignment=ROWS),
    ]

    assert [name_of(request, checks) for request in asked] == ["INVALID_CONFIG", "POLICY_VIOLATION", ""]
    assert [(request.partitions, request.replication_factor) for request in seen] == [(6, 3), (-1, -1)]


def test_our_own_requests_are_asked_about_too() -> None:
    checks = RequestChecks(create_policy=lambda request: f"{len(request.assignment)} rows")
    error = checks.error_of(create_topic("a", (1, 2), (2, 1)), None, is_deleting=False, brokers=(1, 2))
    assert error == "POLICY_VIOLATION (44): 2 rows"


@pytest.mark.parametrize(
    ("release", "name"),
    [
        pytest.param(Release(2, 2), "", id="before 2.3"),
        pytest.param(Release(2, 3), "INVALID_REPLICA_ASSIGNMENT", id="since"),
    ],
)
def test_ids_with_a_gap_are_refused_since_2_3(release: Release, name: str) -> None:
    assert name_of(CreateRequest(topic="a", assignment={0: (1,), 2: (2,)}), RequestChecks(release=release)) == name


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        pytest.param("a_b", "INVALID_TOPIC_EXCEPTION", id="a twin"),
        pytest.param("a-b", "", id="another name"),
        pytest.param("A_b", "", id="case counts"),
    ],
)
def test_a_name_that_another_topic_has_in_metrics_is_refused(topic: str, name: str) -> None:
    assert name_of(CreateRequest(topic=topic), RequestChecks(topics=("a.b", "c"))) == name


def test_a_topic_that_waits_for_its_deletion_exists_after_the_counts_were_checked() -> None:
    names = []
    for partitions in (0, 1):
        request = CreateRequest(topic="a", partitions=partitions)
        answer = RequestChecks(topics=("a",)).answer_to_create(request, live_topic("a"), is_deleting=True, brokers=(1,))
        names.append((answer.error or "").partition(" (")[0])
    assert names == ["INVALID_PARTITIONS", "TOPIC_ALREADY_EXISTS"]


@pytest.mark.parametrize(
    ("release", "error"),
    [pytest.param(Release(2, 5), None, id="before 2.6"), pytest.param(Release(2, 6), UNKNOWN_TOPIC, id="since 2.6")],
)
def test_a_topic_that_waits_for_its_deletion_is_not_configured(release: Release, error: str | None) -> None:
    change = configure_topic(live_topic("a"), {"retention.ms": "1000"})
    checks = RequestChecks(release=release)
    assert checks.error_of(change, live_topic("a"), is_deleting=True, brokers=(1, 2, 3)) == error


def test_a_config_that_the_release_does_not_know_is_refused() -> None:
    request = CreateRequest(topic="a", configs={"compression.gzip.level": "5"})
    assert [name_of(request, RequestChecks(release=r)) for r in (Release(3, 7), Release(3, 8))] == [
        "INVALID_CONFIG",
        "",
    ]


def test_a_topic_without_partition_0_cannot_be_expanded() -> None:
    live = live_topic("a", assignment={1: (1, 2)})
    change = replace(expand_topic(live, (2, 3)), partitions=2, assignment={2: (2, 3)})
    error = RequestChecks().error_of(change, live, is_deleting=False, brokers=(1, 2, 3))
    assert (error or "").startswith("UNKNOWN_SERVER_ERROR (-1)")


# ---- The bucket of tokens that brokers keep for each user; Kafka's own cases are in ``tests/cases`` ----


class Watch:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def quota(watch: Watch) -> MutationQuota:
    """Two a second; twenty at once."""
    return MutationQuota(rate=2.0, windows=10, window_s=1.0, now=watch)


def test_what_takes_the_last_token_is_not_throttled(quota: MutationQuota) -> None:
    assert quota.take(500) == Taken(is_refused=False, throttle_s=0.0)
    assert quota.take(1) == Taken(is_refused=True, throttle_s=240.0)


def test_an_empty_bucket_is_not_yet_below_zero(quota: MutationQuota) -> None:
    quota.take(20)
    assert not quota.take(1).is_refused
    assert quota.take(1).is_refused


def test_what_is_refused_takes_nothing(quota: MutationQuota) -> None:
    quota.take(30)
    assert [quota.take(7).throttle_s for _ in range(3)] == [5.0, 5.0, 5.0]


def test_the_bucket_fills_with_time_and_is_open_again_at_zero(quota: MutationQuota, watch: Watch) -> None:
    quota.take(30)
    watch.now += 4.999
    assert quota.take(1) == Taken(is_refused=True, throttle_s=0.001)
    watch.now += 0.001
    assert not quota.take(1).is_refused


def test_a_bucket_holds_no_more_than_its_windows_give(quota: MutationQuota, watch: Watch) -> None:
    watch.now += 86_400
    quota.take(21)
    assert quota.take(1) == Taken(is_refused=True, throttle_s=0.5)


def test_an_older_request_is_never_refused_and_told_to_wait_longer_each_time(quota: MutationQuota) -> None:
    taken = [quota.take(30, is_strict=False) for _ in range(3)]
    assert [topic.is_refused for topic in taken] == [False, False, False]
    assert [topic.throttle_s for topic in taken] == [5.0, 20.0, 35.0]


def test_both_kinds_of_requests_take_from_one_bucket(quota: MutationQuota) -> None:
    quota.take(30, is_strict=False)
    assert quota.take(1) == Taken(is_refused=True, throttle_s=5.0)


def test_shorter_windows_hold_less(watch: Watch) -> None:
    quota = MutationQuota(rate=2.0, windows=10, window_s=0.5, now=watch)
    quota.take(11)
    assert quota.take(1) == Taken(is_refused=True, throttle_s=0.5)
