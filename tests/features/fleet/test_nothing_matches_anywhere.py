"""A glob that matches no topic of any environment, or of the one that is looked at for drift."""

from __future__ import annotations

import pytest

from fixtures.simulated import Simulated


@pytest.fixture
def shop(simulated: Simulated) -> Simulated:
    """One topic is live, and one is to be created."""
    for name in ("shop.orders", "shop.carts"):
        simulated.workspace.topic(name)
    simulated.cluster.put_topic("shop.orders", (1, 2, 3))
    return simulated


def test_drift_of_one_environment_is_refused(shop: Simulated) -> None:
    ended = shop.workspace.run("drift", "--only", "shop.order")
    assert (ended.status, "No " in ended.out, "match" in ended.err) == (1, False, True)
    assert shop.workspace.run("drift", "--only", "shop.order*").status == 0


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_of_several_environments_it_is_a_word_of_its_own(shop: Simulated, command: str) -> None:
    ended = shop.workspace.run(command, "--environment", "all", "--only", "shop.order")
    assert ended.out.endswith("1 of 1 environments without a match.\n")
    assert "No " not in ended.out
    assert " match" in ended.out.splitlines()[1]
    ended = shop.workspace.run(command, "--environment", "all", "--only", "shop.orders")
    assert "1 of 1 environments without " in ended.out
    assert "without a match" not in ended.out
