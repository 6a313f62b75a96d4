"""How much each broker should hold: even shares, as far as racks and brokers that take nothing allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


class Share(NamedTuple):
    """What a broker holds once the cluster is even."""

    least: int
    most: int


class Shape(NamedTuple):
    """What counts of a partition for the shares."""

    replicas: int
    racks: int
    """Racks that it must be on at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What one broker may hold."""

    rack: str
    fixed: int
    """What stays on it."""
    most: int
    """What it may hold at most, the fixed part included."""

    def filled(self, level: int) -> int:
        """Return what it takes beside the fixed part when all brokers are filled up to a level."""
        return max(0, min(level, self.most) - self.fixed)


def even_shares(rooms: Mapping[int, Room], weights: Mapping[Shape, int]) -> dict[int, Share]:
    """Return the share of each broker: all rise together, and some racks are full before others.

    A partition that must be on ``d`` racks leaves at most ``replicas - max(0, d - k)`` of its replicas to any ``k``
    of them. So the racks that are full first get the level at which they are, and the rest is shared by the others.

    Args:
        rooms: By broker.
        weights: Sum of the weights of the partitions of each shape. By number of replicas a weight is 1, and by
            bytes it is the size of one replica.
    """
    racks: dict[str, list[int]] = {}
    for broker, room in sorted(rooms.items()):
        racks.setdefault(room.rack, []).append(broker)
    found: dict[int, Share] = {}
    taken = 0
    while racks:
        rising = _Rising(rooms, racks, weights, full_racks=taken)
        level = rising.highest_level()
        full, is_exact = rising.first_full(level)
        for broker in (broker for rack in full for broker in racks.pop(rack)):
            room = rooms[broker]
            least, most = room.fixed + room.filled(level), room.fixed + room.filled(level + 1)
            found[broker] = Share(least, least if is_exact else most)
        taken += len(full)
    return found


def least_moves(held: Mapping[int, int], shares: Mapping[int, Share]) -> int:
    """Return how much must move at least until each broker holds its share: no way moves less."""
    given = sum(max(0, held[broker] - share.most) for broker, share in shares.items())
    taken = sum(max(0, share.least - held[broker]) for broker, share in shares.items())
    return max(given, taken)


class _Rising:
    """The racks that are not full yet, while the level rises."""

    def __init__(
        self,
        rooms: Mapping[int, Room],
        racks: Mapping[str, Sequence[int]],
        weights: Mapping[Shape, int],
        *,
        full_racks: int,
    ) -> None:
        self._rooms = [[rooms[broker] for broker in brokers] for _, brokers in sorted(racks.items())]
        self._names = sorted(racks)
        room = [_room(weights, full_racks + k) for k in range(len(racks) + 1)]
        self._room = [found - room[0] for found in room]

    def highest_level(self) -> int:
        """Return the highest level at which no racks hold more than they may."""
        low, high = 0, max(room.most for rack in self._rooms for room in rack)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if self.is_overfull(middle) else (middle, high)
        return low

    def first_full(self, level: int) -> tuple[list[str], bool]:
        """Return the racks that are full first while the level rises by one, and whether they are full at the start.

        In each turn, some racks would be full even before those of the turn before.
        """
        found, part = self._names, Fraction(1)
        while crowded := self._crowded(level, part):
            part, found = min(crowded)
        return found, part == 0

    def is_overfull(self, level: int) -> bool:
        return bool(self._crowded(level, Fraction(0)))

    def _crowded(self, level: int, part: Fraction) -> list[tuple[Fraction, list[str]]]:
        """Return racks that hold more than they may on a part of the way to the next level, and where they are full."""
        rising = [(now + part * (then - now), now, then, name) for name, now, then in self._filled(level)]
        found = []
        held = now = then = Fraction(0)
        names: list[str] = []
        for count, (weight, before, after, name) in enumerate(sorted(rising, reverse=True), start=1):
            held, now, then = held + weight, now + before, then + after
            names.append(name)
            if held > self._room[count]:
                found.append(
                    (Fraction(self._room[count] - now, then - now) if then > now else Fraction(0), sorted(names))
                )
        return found

    def _filled(self, level: int) -> Iterator[tuple[str, int, int]]:
        for name, rooms in zip(self._names, self._rooms, strict=True):
            yield name, sum(room.filled(level) for room in rooms), sum(room.filled(level + 1) for room in rooms)


def _room(weights: Mapping[Shape, int], racks: int) -> int:
    """Return what any so many racks may hold together."""
    if not racks:
        return 0
    return sum(weight * (shape.replicas - max(0, shape.racks - racks)) for shape, weight in weights.items())
