"""Elections for the other reasons to elect a leader, and the other writes of a partition's state.

Source: kafka.controller.PartitionLeaderElectionAlgorithms and kafka.controller.Election (1.0 to 3.9, which agree).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from topicops.model.cluster.health import Elected
from topicops.model.cluster.snapshot import PartitionState


class Election(StrEnum):
    """Why a leader is elected."""

    OFFLINE = "offline"
    UNCLEAN = "unclean"
    """As an operator asks for it: a replica outside of the ISR may lead, whatever the topic's config says."""
    REASSIGNMENT = "reassignment"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


def reassignment_election(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """Return the first replica of the target that is live and in the ISR, which stays as it is."""
    for broker in target:
        if broker in live and broker in isr:
            return Elected(broker, tuple(isr))
    return None


def preferred_election(assignment: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """Return the first replica, if it is live and in the ISR; never another one."""
    return reassignment_election(assignment[:1], isr, live)


def controlled_shutdown_election(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], shutting_down: Collection[int]
) -> Elected | None:
    """Return the first live replica in the ISR that is not shutting down; those that are leave the ISR.

    Args:
        live: The brokers that shut down are among them.
    """
    for broker in assignment:
        if broker in live and broker in isr and broker not in shutting_down:
            return Elected(broker, tuple(member for member in isr if member not in shutting_down))
    return None


def altered_by_leader(state: PartitionState, isr: Sequence[int], *, controller_epoch: int | None) -> PartitionState:
    """The leader adds followers that have caught up, or removes those that have not: no new leader epoch.

    Args:
        controller_epoch: Of the controller since 2.7, which writes the znode; before, leaders write the one they know.

    Source: kafka.cluster.Partition#maybeExpandIsr and #maybeShrinkIsr (3.9).
    """
    return replace(state, isr=tuple(isr), controller_epoch=controller_epoch, version=(state.version or 0) + 1)
