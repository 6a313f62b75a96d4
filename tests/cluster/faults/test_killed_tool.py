"""``kill -9`` at every step of apply, and run again: the same end as without, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.fault_runs import FaultRun
from topicops.model.plans.changes import ACTIONS

SENT = tuple(action for action in ACTIONS if action != "reassign")
"""Actions whose requests the steps of apply send; the steps of moves have such tests of their own."""

BEFORE_ANY_REQUEST = (
    "before write environment.json", "after write environment.json",
    "before write audit-lines-before.json", "after write audit-lines-before.json",
    "before write stop-noted.json", "after write stop-noted.json",
    "before write live.json", "after write live.json", "before write run.json", "after write run.json",
    "before write plan.json", "after write plan.json", "before lease", "after lease",
    "before write baseline-all.json", "after write baseline-all.json", "before confirm", "after confirm",
    "before recheck", "after recheck", *(f"{when} validate #{n}" for n in range(1, 4) for when in ("before", "after")),
)  # fmt: skip
BEFORE_A_REQUEST = (
    "before recheck #2", "after recheck #2", "before intent", "after intent",
    "before confirm #2", "after confirm #2", "before request",
)  # fmt: skip
AFTER_A_REQUEST = (
    "during request", "after request", "before recheck", "after recheck",
    "before audit", "after audit", "before outcome", "after outcome",
)  # fmt: skip
AT_THE_END = (
    "before release", "after release",
    *(f"{when} write outcomes-{action}.json" for action in ACTIONS for when in ("before", "after")),
    *(f"{when} write {name}" for name in ("checks.json", "report.txt", "report.md", "report.json")
      for when in ("before", "after")),
)  # fmt: skip


def steps(points: tuple[str, ...]) -> set[str]:
    """Without which time they are reached."""
    return {point.partition(" #")[0] for point in points}


def at(point: str, action: str) -> str:
    """Which time the point is reached in a run that has only ``action`` and what follows it left to do."""
    if point.endswith("request"):
        return f"{point} {action}"
    if point.endswith("recheck"):
        return f"{point} #2" if action == "delete" else f"{point} #3"
    return point


def before_request(point: str, action: str) -> str:
    """As ``at``, for points before the request. Other changes are looked at once before that; a delete is not."""
    return point.partition(" #")[0] if action == "delete" else point


def test_an_undisturbed_run_passes_the_points_at_which_others_are_killed(fault_run: FaultRun, tmp_path: Path) -> None:
    ended = fault_run.end(fault_run.start(trace=tmp_path / "trace"))

    assert ended.status == 0, ended.err
    history = fault_run.check()
    assert [history.effects(change) for change in history.changes] == [1, 1, 1, 1]
    reached = {point.partition(" #")[0] for point in (tmp_path / "trace").read_text().splitlines()}
    requests = {f"{when} request" for when in ("before", "during", "after")}
    reached = {next((step for step in requests if point.startswith(step)), point) for point in reached}
    killed = (*BEFORE_ANY_REQUEST, *BEFORE_A_REQUEST, *AFTER_A_REQUEST, *AT_THE_END)
    assert reached == steps(killed)


@pytest.mark.soak
def test_killed_at_each_point_before_the_first_request_nothing_was_changed(fault_run: FaultRun) -> None:
    for point in BEFORE_ANY_REQUEST:
        fault_run.kill_at(point)
        assert fault_run.look() == fault_run.before, f"{point}; reproduce: {fault_run.reproduce}"

    ends_as_undisturbed(fault_run)


@pytest.mark.soak
def test_killed_at_each_point_before_each_request_the_next_run_sends_it(fault_run: FaultRun) -> None:
    for action in SENT:
        for point in BEFORE_A_REQUEST:
            fault_run.kill_at(before_request(point, action))
        fault_run.kill_at("after outcome")

    ends_as_undisturbed(fault_run)


@pytest.mark.parametrize(
    "point", [pytest.param(p, marks=() if p == "after request" else pytest.mark.soak) for p in AFTER_A_REQUEST]
)
def test_killed_after_each_request_the_next_run_sends_none_twice(fault_run: FaultRun, point: str) -> None:
    printed = ""
    for action in SENT:
        printed += fault_run.kill_at(at(point, action)).err

    printed += ends_as_undisturbed(fault_run)
    if point != "after outcome":
        assert all(f"ended before it knew what came of {action}" in printed for action in SENT), printed


@pytest.mark.soak
def test_killed_while_an_earlier_kill_is_settled_each_change_still_has_one_line_of_audit(fault_run: FaultRun) -> None:
    kill_while_settling(fault_run)

    ends_as_undisturbed(fault_run)


@pytest.mark.soak
def test_killed_at_each_point_after_the_last_request_the_next_run_has_nothing_to_send(fault_run: FaultRun) -> None:
    for point in AT_THE_END:
        fault_run.kill_at(point)

    ends_as_undisturbed(fault_run)


def kill_while_settling(fault_run: FaultRun) -> None:
    """Kill after each request, and then each next run while it finds out what became of it."""
    for action in SENT:
        fault_run.kill_at(f"after request {action}")
        for step in ("audit", "outcome"):
            fault_run.kill_at(f"before earlier {step}")
            fault_run.kill_at(f"after earlier {step}")


def ends_as_undisturbed(fault_run: FaultRun) -> str:
    """Run again, undisturbed; gives what that run printed."""
    ended = fault_run.again()

    assert ended.status == 0, f"{ended.err}\nreproduce: {fault_run.reproduce}"
    history = fault_run.check()
    assert [history.effects(change) for change in history.changes] == [1, 1, 1, 1], fault_run.reproduce
    planned = fault_run.replan()
    assert (planned.status, "No changes." in planned.out) == (0, True), planned.out
    return ended.err
