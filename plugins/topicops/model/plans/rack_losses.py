"""What the loss of any one rack would cost the whole cluster, before a plan's changes and after all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Partitions that are well while the rack is there."""

    offline: int
    """Without a leader then."""
    below_min_isr: int
    """With a leader then that refuses records with ``acks=all``."""
    moved_leaders: int
    """Led by another broker then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLossRow:
    """All live brokers of one rack, lost at once."""

    rack: str
    brokers: int
    before: Loss
    after: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLossTable:
    """Empty of racks where the loss of one leaves no broker: none is named, or all brokers are on the same."""

    racks: tuple[RackLossRow, ...] = ()
    """By name."""
    only_rack: str | None = None
    """The rack of all brokers."""
    brokers_without_rack: tuple[int, ...] = ()
    """They stay, whichever rack is lost."""
    knows_broker_defaults: bool = True
    """False: a topic without ``min.insync.replicas`` of its own was taken to have Kafka's default, 1."""
