"""Steps of moves that die at a request, on real brokers: the next step carries on, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.kill_points import POINT, TRACE
from fixtures.killable import with_tests_on_path
from fixtures.live import until
from fixtures.moving import NOTHING, Moving, rotated, spread

pytestmark = pytest.mark.cluster


def killed(moving: Moving, point: str, trace: Path | None = None) -> int:
    """Make steps in a process that dies at that point; gives its exit status."""
    moving.workspace.write_environment()
    more = {POINT: point, **({TRACE: str(trace)} if trace else {})}
    command = [sys.executable, "-m", "fixtures.killable_moves"]
    found = subprocess.run(
        command, env=with_tests_on_path() | more, check=False, timeout=120, cwd=moving.workspace.folder
    )
    return found.returncode


def prepare(moving: Moving) -> None:
    """Accept one wave: a topic that gets replicas, and one that gets others. No lease outlives its process."""
    moving.aim(lease="file")
    moving.create({"bills": spread(3), "orders": {0: (1, 2), 1: (2, 3)}}, records=1)
    moving.accept({"bills": rotated(spread(3)), "orders": {0: (3, 2), 1: (1, 3)}})


POINTS = [
    *("before alter", "during alter"),
    *(
        pytest.param(point, marks=pytest.mark.soak)
        for point in (
            *("after keep", "after add #2", "during add", "after rate", "after alter"),
            *("before elect", "after remove", "during rate #4"),
        )
    ),
]


@pytest.mark.parametrize("point", POINTS)
def test_a_step_killed_at_a_request_is_carried_on_by_the_next_one(moving: Moving, point: str) -> None:
    prepare(moving)

    # On a busy machine the replicas may not be ready within the first step, and a later one gets to the point.
    assert any(killed(moving, point) == -9 for _ in range(5))
    moving.until_over()

    assert_moved(moving)


def assert_moved(moving: Moving) -> None:
    live = moving.look()
    assert live.topics["bills"].assignment == rotated(spread(3))
    assert live.topics["orders"].assignment == {0: (3, 2), 1: (1, 3)}
    until(lambda: moving.left() == NOTHING, timeout_s=10)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_step_killed_at_each_point_is_carried_on_by_the_next_one(moving: Moving, tmp_path: Path) -> None:
    prepare(moving)
    trace = tmp_path / "points.txt"
    assert killed(moving, "", trace) == 0
    assert_moved(moving)
    reached: dict[str, int] = {}
    for point in trace.read_text().splitlines():
        reached[point] = reached.get(point, 0) + 1

    for point, times in reached.items():
        for number in range(1, times + 1):
            moving.remove_all()
            prepare(moving)
            assert killed(moving, f"{point} #{number}") in (-9, 0), (point, number)  # 0: fewer readings this time
            moving.until_over()
            assert_moved(moving)
