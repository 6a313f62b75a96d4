"""A process ends at the point that was named, and at no other."""

from pathlib import Path

import pytest

from fixtures.kill_points import KillPoints


def passed(wanted: str, trace: Path) -> tuple[list[str], list[str]]:
    """Return all points of two batches, and those at which the blow fell."""
    struck: list[str] = []
    points = KillPoints(wanted, trace=trace, strike=lambda: struck.append(trace.read_text().splitlines()[-1]))
    for _ in range(2):
        points.around("intent", lambda: None)
        points.around_request("request create", lambda: None)
        points.around("outcome", lambda: None)
    return trace.read_text().splitlines(), struck


def test_every_point_is_traced_in_its_order(tmp_path: Path) -> None:
    points, struck = passed("", tmp_path / "trace")

    batch = ["before intent", "after intent", "before request create", "during request create"]
    batch += ["after request create", "before outcome", "after outcome"]
    assert points == batch * 2
    assert struck == []


@pytest.mark.parametrize(
    ("wanted", "struck"),
    [
        pytest.param("before intent", ["before intent"], id="the first time only"),
        pytest.param("after request", ["after request create"], id="any subject"),
        pytest.param("after request create #2", ["after request create"], id="the second time"),
        pytest.param("after request delete", [], id="another subject"),
        pytest.param("before intent #3", [], id="not reached"),
    ],
)
def test_only_the_wanted_point_strikes(tmp_path: Path, wanted: str, struck: list[str]) -> None:
    assert passed(wanted, tmp_path / "trace")[1] == struck
