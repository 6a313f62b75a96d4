"""Balance: which replicas move so that brokers hold the same number of replicas, or of bytes, with few moves.

Replicas go from brokers that hold too much to those that hold too little. Where none may go straight there, a broker
between them takes one and passes on another. A partition is never on fewer racks than before, and as long as there is
another way, no broker gets a replica of a topic of which it holds as many as the broker that gives it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from topicops.features.moves.planned.shares import Room, Shape, Share, even_shares
from topicops.model.cluster.snapshot import Assignment

TOLERANCE_PERCENT = 5
"""How far from its share of bytes a broker may be and still counts as even."""

Size = Callable[[str, int], int]
"""Weight of one replica of a partition: 1, or its bytes."""
Hop = tuple[int, int]
"""Giver and taker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What is to be balanced."""

    rows: Mapping[str, Assignment]
    """Replicas of all topics of the cluster, as they will be after running moves."""
    racks: Mapping[int, str | None]
    """Rack by live broker. Where only some have one, racks do not count."""
    takers: Collection[int]
    """Live brokers that may get replicas; the others only give."""
    fixed: Collection[str] = ()
    """Topics whose replicas stay. Those of a partition with a replica on a dead broker stay, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balanced:
    """What came out."""

    rows: Mapping[str, Assignment]
    """New rows by topic; only of partitions whose row differs."""
    before: Mapping[int, int]
    """What each live broker holds now, in replicas or bytes."""
    after: Mapping[int, int]
    shares: Mapping[int, Share]
    """What each should hold."""

    @property
    def is_even(self) -> bool:
        return all(share.least <= self.after[broker] <= share.most for broker, share in self.shares.items())


def balance_replicas(balance: Balance) -> Balanced:
    """Move replicas until each broker holds its share of them, as far as that can be."""
    spread = _Spread(balance, lambda *_: 1)
    shares = spread.shares()
    for spread.keeps_topics_even in (True, False):
        while _move_one(spread, shares) or _pass_on(spread, shares):
            pass
    return spread.balanced(shares)


def balance_bytes(balance: Balance, sizes: Mapping[str, Mapping[int, int]], *, most_bytes: int) -> Balanced:
    """Move the largest replicas that fit until each broker holds its share of bytes, give or take the tolerance.

    Args:
        sizes: Bytes of one replica of each partition, by topic. One that is not known counts as empty, and stays.
        most_bytes: The most that is copied.
    """
    spread = _Spread(balance, lambda topic, partition: sizes.get(topic, {}).get(partition, 0))
    shares = spread.shares()
    left = most_bytes
    for spread.keeps_topics_even in (True, False):
        while moved := _move_largest(spread, shares, left):
            left -= moved
    return spread.balanced({broker: _tolerated(share) for broker, share in shares.items()})


def _tolerated(share: Share) -> Share:
    slack = share.most * TOLERANCE_PERCENT // 100
    return Share(max(0, share.least - slack), share.most + slack)


def _move_one(spread: _Spread, shares: Mapping[int, Share]) -> bool:
    for giver, taker in _pairs(spread, shares):
        if (found := spread.find(giver, taker)) is not None:
            spread.move(found, giver, taker)
            return True
    return False


def _move_largest(spread: _Spread, shares: Mapping[int, Share], most: int) -> int:
    """Move the largest replica that takes neither broker past its share. Gives its bytes; 0: none fits."""
    held = spread.held
    for giver, taker in _pairs(spread, {broker: _tolerated(share) for broker, share in shares.items()}):
        fits = min(held[giver] - shares[giver].least, shares[taker].most - held[taker], most)
        if (found := spread.largest(giver, taker, fits)) is not None:
            return spread.move(found, giver, taker)
    return 0


def _pairs(spread: _Spread, shares: Mapping[int, Share]) -> Iterator[Hop]:
    """Yield givers and takers, the most uneven first; none: each broker holds its share."""
    over, under, spare, roomy = _sorted(spread, shares)
    yield from ((giver, taker) for giver in over for taker in (*under, *roomy))
    yield from ((giver, taker) for giver in spare for taker in under)


def _sorted(spread: _Spread, shares: Mapping[int, Share]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return brokers that hold too much, those that hold too little, and others that may give one or take one.

    One that takes nothing never holds too little: its share is at most what it holds.
    """
    held = spread.held
    by_excess = sorted(shares, key=lambda broker: (shares[broker].most - held[broker], broker))
    by_lack = sorted(shares, key=lambda broker: (held[broker] - shares[broker].least, broker))
    over = [broker for broker in by_excess if held[broker] > shares[broker].most]
    under = [broker for broker in by_lack if held[broker] < shares[broker].least]
    spare = [b for b in by_excess if shares[b].least < held[b] <= shares[b].most]
    roomy = [b for b in by_lack if shares[b].least <= held[b] < shares[b].most and b in spread.takers]
    return over, under, spare, roomy


def _pass_on(spread: _Spread, shares: Mapping[int, Share]) -> bool:
    """Move one replica on each hop of the shortest way from a broker that holds too much, or to one with too little."""
    over, under, spare, roomy = _sorted(spread, shares)
    barred: set[Hop] = set()
    for givers, takers in ((over, under), (over, roomy), (spare, under)):
        while hops := _way(spread, givers, set(takers), barred):
            failed = spread.move_along(hops)
            if failed is None:
                return True
            barred.add(failed)
    return False


def _way(spread: _Spread, givers: Collection[int], takers: Collection[int], barred: Collection[Hop]) -> list[Hop]:
    """Return the hops of the shortest way on which each broker gives the next one a replica; none: there is no way."""
    came_from: dict[int, int | None] = dict.fromkeys(givers)
    queue = deque(givers if takers else ())
    while queue:
        giver = queue.popleft()
        for taker in spread.takers:
            if taker in came_from or (giver, taker) in barred or spread.find(giver, taker) is None:
                continue
            came_from[taker] = giver
            if taker in takers:
                return _hops(came_from, taker)
            queue.append(taker)
    return []


def _hops(came_from: Mapping[int, int | None], last: int) -> list[Hop]:
    hops: list[Hop] = []
    while (giver := came_from[last]) is not None:
        hops.append((giver, last))
        last = giver
    return hops[::-1]


class _Spread:
    """Where the replicas are while they move, with an index by broker and topic."""

    def __init__(self, balance: Balance, size: Size) -> None:
        self.takers = tuple(sorted(set(balance.takers) & balance.racks.keys()))
        self.keeps_topics_even = True
        self._rack = _rack_of(balance.racks)
        self._names = [(name, p) for name, rows in sorted(balance.rows.items()) for p in sorted(rows)]
        self._rows = [tuple(balance.rows[name][p]) for name, p in self._names]
        self._before = list(self._rows)
        self._sizes = [size(name, p) for name, p in self._names]
        fixed, live = frozenset(balance.fixed), self._rack.keys()
        self._stays = [
            name in fixed or not live >= set(row) for (name, _), row in zip(self._names, self._rows, strict=True)
        ]
        self.held = dict.fromkeys(sorted(live), 0)
        self._fixed = dict.fromkeys(live, 0)
        self._topics: dict[int, dict[str, list[int]]] = {broker: {} for broker in live}
        self._index()
        self._start = dict(self.held)
        self._order = {broker: sorted(its, key=lambda name: -len(its[name])) for broker, its in self._topics.items()}
        self._cursor: dict[Hop, int] = {}
        self._changes = Counter[int]()
        self._fruitless: dict[Hop, tuple[bool, int, int]] = {}
        self._by_size: dict[int, list[tuple[int, int]]] = {}

    def _index(self) -> None:
        for index, row in enumerate(self._rows):
            name, _ = self._names[index]
            size, stays = self._sizes[index], self._stays[index]
            for broker in row:
                if broker in self.held:
                    self.held[broker] += size
                    self._fixed[broker] += size if stays else 0
                    self._topics[broker].setdefault(name, []).append(index)

    def shares(self) -> dict[int, Share]:
        """Return what each broker should hold."""
        weights, most = Counter[Shape](), 0
        for row, stays, size in zip(self._rows, self._stays, self._sizes, strict=True):
            if not stays:
                weights[Shape(len(row), len({self._rack[broker] for broker in row}))] += size
                most += size
        rooms = {
            broker: Room(
                rack=self._rack[broker],
                fixed=self._fixed[broker],
                most=self._fixed[broker] + most if broker in self.takers else self.held[broker],
            )
            for broker in self.held
        }
        return even_shares(rooms, weights)

    def find(self, giver: int, taker: int) -> int | None:
        """Return a replica that may move. It looks on where it has found the last one."""
        if giver == taker or self._is_fruitless(giver, taker):
            return None
        order, start = self._order[giver], self._cursor.get((giver, taker), 0)
        for at in (*range(start, len(order)), *range(min(start, len(order)))):
            for index in self._of_topic(order[at], giver, taker):
                if self._may_move(index, giver, taker):
                    self._cursor[giver, taker] = at
                    return index
        self._note_fruitless(giver, taker)
        return None

    def largest(self, giver: int, taker: int, fits: int) -> int | None:
        """Return the largest replica of at most so many bytes that may move."""
        if self._is_fruitless(giver, taker):
            return None
        if giver not in self._by_size:
            its = chain.from_iterable(self._topics[giver].values())
            self._by_size[giver] = sorted((self._sizes[index], index) for index in its if self._sizes[index])
        found = self._by_size[giver]
        for at in range(bisect_right(found, (fits, len(self._rows))) - 1, -1, -1):
            _, index = found[at]
            name, _ = self._names[index]
            if index in self._of_topic(name, giver, taker) and self._may_move(index, giver, taker):
                return index
        self._note_fruitless(giver, taker)
        return None

    def move(self, index: int, giver: int, taker: int) -> int:
        """Move one replica, in its place in the row. Gives its weight."""
        (name, _), size = self._names[index], self._sizes[index]
        self._rows[index] = tuple(taker if broker == giver else broker for broker in self._rows[index])
        self._topics[giver][name].remove(index)
        if name not in self._topics[taker]:
            self._topics[taker][name] = []
            self._order[taker].append(name)
        self._topics[taker][name].append(index)
        self.held[giver] -= size
        self.held[taker] += size
        self._changes.update((giver, *self._rows[index]))
        return size

    def move_along(self, hops: Iterable[Hop]) -> Hop | None:
        """Move a replica on each hop. Gives the hop on which none can move any more; then all is as before."""
        moved: list[tuple[int, int, int]] = []
        for giver, taker in hops:
            found = self.find(giver, taker)
            if found is None:
                for index, *hop in reversed(moved):
                    self.move(index, hop[1], hop[0])
                return giver, taker
            self.move(found, giver, taker)
            moved.append((found, giver, taker))
        return None

    def balanced(self, shares: Mapping[int, Share]) -> Balanced:
        changed: dict[str, dict[int, tuple[int, ...]]] = {}
        for (name, partition), before, after in zip(self._names, self._before, self._rows, strict=True):
            if before != after:
                changed.setdefault(name, {})[partition] = after
        return Balanced(rows=changed, before=self._start, after=dict(self.held), shares=shares)

    def _of_topic(self, name: str, giver: int, taker: int) -> Collection[int]:
        """Return the giver's replicas of a topic; none where the taker has as many of them."""
        its = self._topics[giver].get(name, ())
        is_kept = self.keeps_topics_even and len(self._topics[taker].get(name, ())) >= len(its)
        return () if is_kept else its

    def _may_move(self, index: int, giver: int, taker: int) -> bool:
        row, racks = self._rows[index], self._rack
        if self._stays[index] or taker in row:
            return False
        others = [racks[broker] for broker in row if broker != giver]
        if racks[taker] not in others or racks[giver] in others:
            return True
        return len(set(others)) >= self._racks_before(index)

    def _racks_before(self, index: int) -> int:
        return len({self._rack[broker] for broker in self._before[index]})

    def _is_fruitless(self, giver: int, taker: int) -> bool:
        """Return whether nothing was found for these two, and neither has changed since."""
        return self._fruitless.get((giver, taker)) == self._state(giver, taker)

    def _note_fruitless(self, giver: int, taker: int) -> None:
        self._fruitless[giver, taker] = self._state(giver, taker)

    def _state(self, giver: int, taker: int) -> tuple[bool, int, int]:
        return self.keeps_topics_even, self._changes[giver], self._changes[taker]


def _rack_of(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}
