"""A glob that matches no topic: nothing was looked at, so no command may say that all is well."""

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


@pytest.mark.parametrize("command", ["plan", "plan --format json", "apply --yes"])
def test_a_command_is_refused(shop: Simulated, command: str) -> None:
    ended = shop.workspace.run(*command.split(), "--only", "shop.order")
    assert ended.status == 1
    assert "No " not in ended.out
    assert "match" in ended.err
    assert shop.workspace.run(*command.split(), "--only", "shop.order*").status == 0


def test_the_refusal_of_a_plan_counts_the_topics_and_names_near_ones(shop: Simulated) -> None:
    assert shop.workspace.plan("--only", "shop.order").err.endswith(
        "only: 0 of 2 topics match shop.order; a glob is of the whole name. Near: shop.orders, shop.carts.\n"
    )
