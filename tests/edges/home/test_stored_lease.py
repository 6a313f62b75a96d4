"""The lease in a store: one holder at a time, whatever the store and the clocks do."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest
from obstore.store import MemoryStore

from fixtures.live import until
from fixtures.stores import FaultyBucket, memory_home
from topicops.edges.home import stored_lease
from topicops.edges.home.stored_lease import StoredEntry, StoredLease
from topicops.edges.object_store import Bucket
from topicops.edges.places import StoredPath
from topicops.model.errors import ArtifactError, LeaseHeldError, LeaseLostError

DURATION_S = 1.0


@pytest.fixture
def place() -> StoredPath:
    return memory_home() / "lease" / "cluster.json"


def lease(
    place: StoredPath, run: str = "cli/1", *, renew_every_s: float = 0.1, lock_timeout_s: float = 0.0
) -> StoredLease:
    return StoredLease(
        place,
        run=run,
        operation="apply all",
        lock_timeout_s=lock_timeout_s,
        duration_s=DURATION_S,
        needed_s=DURATION_S / 4,
        renew_every_s=renew_every_s,
        poll_s=0.02,
    )


def dead(place: StoredPath) -> StoredLease:
    """Take it, as a process that ends without giving it back."""
    held = lease(place, "cli/dead", renew_every_s=60)
    held.__enter__()
    return held


def entry(place: StoredPath) -> StoredEntry:
    return msgspec.json.decode(place.read_bytes(), type=StoredEntry)


def test_a_holder_that_is_alive_is_named_soon(place: StoredPath) -> None:
    with lease(place):
        began = time.monotonic()
        with pytest.raises(LeaseHeldError, match=r"is held by run cli/1 \(apply all\)"), lease(place, "cli/2"):
            pass
        assert time.monotonic() - began < DURATION_S


def test_it_is_free_after_its_holder_and_each_holder_has_a_higher_number(place: StoredPath) -> None:
    for number in (1, 2, 3):
        with lease(place) as held:
            held.confirm()
            assert (entry(place).number, entry(place).holder is not None) == (number, True)
    assert entry(place).holder is None


def test_who_waits_has_it_as_soon_as_it_is_free(place: StoredPath) -> None:
    first = lease(place)
    with first:
        second = lease(place, "cli/2", lock_timeout_s=60)
        first._ended.set()
    with second:
        second.confirm()


def test_the_lease_of_a_dead_run_is_taken_over_after_its_duration_and_is_lost_for_good(place: StoredPath) -> None:
    paused = dead(place)
    began = time.monotonic()
    with lease(place, "cli/2") as held:
        assert time.monotonic() - began >= DURATION_S
        held.confirm()
        with pytest.raises(LeaseLostError, match=r"run cli/2 .* has it now"):
            paused.confirm()
    with pytest.raises(LeaseLostError):
        paused.confirm()


@pytest.mark.parametrize("minutes", [-5, 5])
def test_clocks_that_differ_take_no_lease_from_a_living_holder(
    place: StoredPath, minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lease(place) as held:
        shifted = time.clock_gettime
        monkeypatch.setattr(time, "time", lambda: shifted(time.CLOCK_REALTIME) + 60 * minutes)
        monkeypatch.setattr(stored_lease, "_clock", lambda: shifted(time.CLOCK_MONOTONIC) + 60 * minutes)
        waiting = lease(place, "cli/2")
        with pytest.raises(LeaseHeldError), waiting:
            pass
        monkeypatch.undo()
        held.confirm()


@pytest.mark.parametrize("fault", ["lost", "503", "twice"])
def test_a_fault_at_any_write_loses_no_lease(fault: str) -> None:
    met: list[int] = []

    def every_second(number: int, _: str) -> str:
        met.append(number)
        return fault if number % 2 else ""

    bucket = FaultyBucket("s3://memory/lease", MemoryStore(), every_second)
    place = StoredPath(bucket, "lease.json")
    for _ in range(3):
        with lease(place) as held:
            until(lambda: len(met) > 4, timeout_s=20)
            held.confirm()
        met.clear()
    assert (entry(place).number, entry(place).holder) == (3, None)


def test_a_store_that_is_away_loses_the_lease_before_another_may_have_it() -> None:
    away: list[bool] = []
    store = MemoryStore()
    bucket = FaultyBucket("s3://memory/away", store, lambda *_: "503" if away else "")
    with lease(StoredPath(bucket, "lease.json")) as held:
        away.append(True)
        time.sleep(0.8 * DURATION_S)
        with pytest.raises(LeaseLostError, match="in time"):
            held.confirm()
        away.clear()
        with pytest.raises(LeaseLostError):
            held.confirm()


def removed(place: StoredPath) -> None:
    place.unlink()


def replaced(place: StoredPath) -> None:
    place.bucket.write(place.key, msgspec.json.encode({**msgspec.to_builtins(entry(place)), "token": "by hand"}))


@pytest.mark.parametrize("touch", [removed, replaced])
def test_a_lease_that_a_hand_has_touched_is_lost(place: StoredPath, touch: Callable[[StoredPath], None]) -> None:
    with lease(place) as held:
        touch(place)
        until(lambda: bool(held._lost), timeout_s=20)
        with pytest.raises(LeaseLostError, match="no longer ours"):
            held.confirm()


def test_an_entry_that_cannot_be_read_is_no_free_lease(place: StoredPath) -> None:
    place.bucket.write(place.key, b"no lease")

    with pytest.raises(ArtifactError, match="the lease is damaged"), lease(place):
        pass


def test_both_of_two_that_take_it_at_once_do_not_have_it(place: StoredPath) -> None:
    dead(place)
    taken = [lease(StoredPath(Bucket(place.bucket.url, place.bucket._store), place.key), f"cli/{n}") for n in (2, 3)]
    with taken[0], pytest.raises(LeaseHeldError), taken[1]:
        pass
