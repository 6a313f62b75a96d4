"""Which replica becomes the leader of a partition, for each reason to elect one.

Source: kafka.controller.PartitionLeaderElectionAlgorithms and kafka.controller.Election (1.0 to 3.9, which agree).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple


class Election(StrEnum):
    """Why a leader is elected."""

    OFFLINE = "offline"
    UNCLEAN = "unclean"
    """As an operator asks for it: a replica outside of the ISR may lead, whatever the topic's config says."""
    REASSIGNMENT = "reassignment"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


class Elected(NamedTuple):
    """A new leader, and the ISR that it begins with."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False
    """The leader was not in the ISR: records that it does not have are lost."""


def offline_election(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], *, unclean: bool
) -> Elected | None:
    """The first replica that is live and in the ISR; with ``unclean``, else the first live one.

    Gives None if there is neither: the partition stays without a leader.
    """
    for broker in assignment:
        if broker in live and broker in isr:
            return Elected(broker, tuple(member for member in isr if member in live))
    if unclean:
        for broker in assignment:
            if broker in live:
                return Elected(broker, (broker,), unclean=True)
    return None


def reassignment_election(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """The first replica of the target that is live and in the ISR, which stays as it is."""
    for broker in target:
        if broker in live and broker in isr:
            return Elected(broker, tuple(isr))
    return None


def preferred_election(assignment: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Elected | None:
    """The first replica, if it is live and in the ISR; never another one."""
    return reassignment_election(assignment[:1], isr, live)


def controlled_shutdown_election(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], shutting_down: Collection[int]
) -> Elected | None:
    """The first live replica in the ISR that is not shutting down; those that are leave the ISR.

    Args:
        live: The brokers that shut down are among them.
    """
    for broker in assignment:
        if broker in live and broker in isr and broker not in shutting_down:
            return Elected(broker, tuple(member for member in isr if member not in shutting_down))
    return None
