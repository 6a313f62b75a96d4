"""Apply with its home in an object store: it ends at each write, or meets a fault there, and runs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest
from obstore.store import MemoryStore

from fixtures.simulated import Simulated, outcomes_of
from fixtures.stores import CrashError, FaultyBucket, lead_to, memory_home
from topicops.edges.home.audit_files import read_audit_log
from topicops.edges.home.journal import open_journals_folder
from topicops.edges.home.stored_lease import StoredLease
from topicops.edges.places import StoredPath
from topicops.flow.runs.access import Access
from topicops.flow.runs.run import audit_folder
from topicops.model.runs.audit import chain_problems
from topicops.model.runs.results import IN_PLACE

DURATION_S = 0.3
_numbers = count(1)


@pytest.fixture
def in_a_store(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    """The simulated cluster, with a lease of the home that ends soon."""

    def lease(access: Access, _cluster_id: str, *, operation: str, lock_timeout_s: float) -> StoredLease:
        assert isinstance(access.home, StoredPath)
        return StoredLease(
            access.home / "lease" / "cluster.json",
            run=access.run,
            operation=operation,
            lock_timeout_s=lock_timeout_s,
            duration_s=DURATION_S,
            needed_s=DURATION_S / 6,
            renew_every_s=DURATION_S / 10,
            poll_s=DURATION_S / 20,
        )

    monkeypatch.setattr(Access, "lease", lease)
    return simulated


def apply_with(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, fault: Callable[[int, str], str]
) -> tuple[StoredPath, FaultyBucket]:
    """Plan, and apply with the fault; gives the home as a later process sees it, and the bucket of the first one."""
    store = MemoryStore()
    home = memory_home(store)
    lead_to(monkeypatch, home)
    for file in simulated.workspace.folder.glob("topics/tests/*"):
        file.unlink()
    number = next(_numbers)
    simulated.workspace.topic(f"new-{number}")
    simulated.workspace.tombstone(f"old-{number}")
    simulated.cluster.put_topic(f"old-{number}", (1, 2, 3))
    simulated.planned()
    bucket = FaultyBucket(home.bucket.url, store, fault)
    lead_to(monkeypatch, StoredPath(bucket))
    with suppress(CrashError):
        simulated.apply(simulated.opened("1"))
    lead_to(monkeypatch, home)
    return home, bucket


def require_done_once(simulated: Simulated, home: StoredPath, story: str) -> None:
    requests = Counter(event for event in simulated.events if event.startswith("request"))
    assert requests == {"request create": 1, "request delete": 1}, story
    log = read_audit_log(audit_folder(home), "local")
    assert [*chain_problems(log)] == [], story
    # A request that was intended and never sent has a line too, which says so.
    assert sorted(line.action for line in log.lines if line.outcome in IN_PLACE) == ["create", "delete"], story
    assert [*open_journals_folder(home, "local").glob("*")] == [], story


def writes_of_an_apply(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> int:
    home, bucket = apply_with(simulated, monkeypatch, lambda _number, _key: "")
    require_done_once(simulated, home, "undisturbed")
    return len([key for key in bucket.writes if not key.startswith("lease/")])


def is_number(wanted: int, fault: str) -> Callable[[int, str], str]:
    """Return the fault at this write, not counting those of the lease's thread."""
    counted: list[str] = []

    def meet(_: int, key: str) -> str:
        if key.startswith("lease/") and counted:
            return ""
        counted.append(key)
        return fault if len(counted) == wanted else ""

    return meet


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_run_that_ends_at_any_write_loses_nothing_and_sends_nothing_twice(
    in_a_store: Simulated, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    writes = writes_of_an_apply(in_a_store, monkeypatch)
    assert writes > 10

    for number in range(1, writes + 2):
        home, bucket = apply_with(in_a_store, monkeypatch, is_number(number, place))
        story = f"{place} write {number}, {bucket.writes[-1]}"
        in_a_store.apply(in_a_store.opened("1"))
        require_done_once(in_a_store, home, story)
        run = in_a_store.opened("1")
        assert all(outcome.status in IN_PLACE for outcome in outcomes_of(run)), story


@pytest.mark.parametrize("fault", ["lost", "503", "twice"])
def test_a_write_whose_answer_is_lost_or_that_comes_twice_changes_nothing(
    in_a_store: Simulated, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    writes = writes_of_an_apply(in_a_store, monkeypatch)

    for number in range(1, writes + 1):
        home, bucket = apply_with(in_a_store, monkeypatch, is_number(number, fault))
        require_done_once(in_a_store, home, f"{fault} at write {number} of {bucket.writes}")
