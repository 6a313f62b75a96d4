"""How many replicas and leaders each broker and rack holds, before a plan's changes and after all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a broker or a rack holds of the cluster."""

    replicas: int
    leaders: int
    """First replicas: the preferred leaders, wherever the leader is right now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """One live broker."""

    broker: int
    rack: str | None
    before: Share
    after: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLoad:
    """All live brokers of one rack."""

    rack: str
    brokers: int
    before: Share
    after: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTable:
    """Empty when a plan places nothing."""

    brokers: tuple[BrokerLoad, ...] = ()
    """By id."""
    racks: tuple[RackLoad, ...] = ()
    """By name; brokers without a rack are in none."""
