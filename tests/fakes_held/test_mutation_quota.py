"""The bucket of tokens that brokers keep for each user; Kafka's own cases are in ``tests/cases``."""

from __future__ import annotations

import pytest

from fakes.mutation_quota import MutationQuota, Taken


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
