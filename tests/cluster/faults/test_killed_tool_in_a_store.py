"""``kill -9`` at every step of apply with home and lease in an object store: the same end as with a folder."""

from __future__ import annotations

import pytest

from cluster.faults.test_killed_tool import (
    AFTER_A_REQUEST,
    AT_THE_END,
    BEFORE_A_REQUEST,
    BEFORE_ANY_REQUEST,
    SENT,
    at,
    before_request,
    ends_as_undisturbed,
    kill_while_settling,
)
from fixtures.fault_runs import FaultRun


@pytest.fixture
def home_kind() -> str:
    return "store"


def test_killed_right_after_each_request_the_next_run_sends_none_twice(fault_run: FaultRun) -> None:
    for action in SENT:
        fault_run.kill_at(f"after request {action}")

    ends_as_undisturbed(fault_run)


@pytest.mark.soak
def test_killed_at_each_point_of_a_run_with_a_stored_home_nothing_is_sent_twice(fault_run: FaultRun) -> None:
    for point in BEFORE_ANY_REQUEST:
        fault_run.kill_at(point)
        assert fault_run.look() == fault_run.before, f"{point}; reproduce: {fault_run.reproduce}"
    for action in SENT:
        for point in BEFORE_A_REQUEST:
            fault_run.kill_at(before_request(point, action))
        fault_run.kill_at("after outcome")
    for point in AT_THE_END:
        fault_run.kill_at(point)

    ends_as_undisturbed(fault_run)


@pytest.mark.soak
@pytest.mark.parametrize("point", AFTER_A_REQUEST)
def test_killed_after_each_request_with_a_stored_home_the_next_run_sends_none_twice(
    fault_run: FaultRun, point: str
) -> None:
    printed = "".join(fault_run.kill_at(at(point, action)).err for action in SENT)

    printed += ends_as_undisturbed(fault_run)
    if point != "after outcome":
        assert all(f"ended before it knew what came of {action}" in printed for action in SENT), printed


@pytest.mark.soak
def test_killed_while_an_earlier_kill_is_settled_in_a_store_each_change_has_one_line(fault_run: FaultRun) -> None:
    kill_while_settling(fault_run)

    ends_as_undisturbed(fault_run)
