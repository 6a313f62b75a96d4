"""Which rows get another order, so that preferred leaders are spread evenly. No replica moves, nothing is copied."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.request import Load


def lead_evenly(
    rows: Mapping[str, Assignment], *, live: Collection[int], takers: Collection[int], fixed: Collection[str] = ()
) -> dict[str, Assignment]:
    """Return the rows that get another order: even for each topic first, then for the cluster.

    A leader stays if no exchange makes it more even. A row with a replica on a broker that is not live stays.

    Args:
        takers: Brokers that may lead more than now.
        fixed: Topics whose rows stay.
    """
    stay = frozenset(fixed)
    ballot = _Ballot(rows, live=frozenset(live), takers=frozenset(takers), fixed=stay)
    for name in sorted(rows.keys() - stay):
        ballot.spread_topic(name)
    while ballot.improve():
        pass
    return ballot.changed(rows)


class _Ballot:
    """Who leads what, with an index of partitions by their leader and another replica."""

    def __init__(
        self, rows: Mapping[str, Assignment], *, live: frozenset[int], takers: frozenset[int], fixed: frozenset[str]
    ) -> None:
        self._live, self._takers = sorted(live), sorted(takers & live)
        self._leads = Counter[int](dict.fromkeys(live, 0))
        self._of_topic: dict[str, Counter[int]] = {}
        self._rows: dict[str, dict[int, tuple[int, ...]]] = {}
        self._heirs: dict[tuple[int, int], list[tuple[str, int]]] = {}
        for name, assignment in sorted(rows.items()):
            self._of_topic[name] = Counter(row[0] for row in assignment.values() if row)
            self._leads.update(self._of_topic[name])
            free = {p: tuple(row) for p, row in sorted(assignment.items()) if row and live >= set(row)}
            self._rows[name] = free if name not in fixed else {}
            for partition, row in self._rows[name].items():
                self._list(name, partition, row)

    def changed(self, before: Mapping[str, Assignment]) -> dict[str, Assignment]:
        """Return the rows that are not as they were, by topic."""
        found = {
            name: {p: row for p, row in rows.items() if row != tuple(before[name][p])}
            for name, rows in self._rows.items()
        }
        return {name: rows for name, rows in found.items() if rows}

    def spread_topic(self, name: str) -> None:
        """Spread the leaders of one topic whose leaders are uneven."""
        rows, leads = self._rows[name], self._of_topic[name]
        if not rows:
            return
        held = {broker for row in rows.values() for broker in row}
        if max(leads[broker] for broker in held) - min(leads[broker] for broker in held) <= 1:
            return
        may_lead = {p: tuple(b for b in row if b == row[0] or b in self._takers) for p, row in rows.items()}
        own = Counter(row[0] for row in rows.values())
        others, cluster = Load(leaders=leads - own), Load(leaders=self._leads - own)
        for partition, row in spread_leaders(may_lead, topic=others, cluster=cluster).items():
            if row[0] != rows[partition][0]:
                self._lead(name, partition, row[0])

    def improve(self) -> bool:
        """Take one partition from a broker that leads too many, straight or by others. False: no exchange helps."""
        for giver in sorted(self._live, key=lambda broker: (-self._leads[broker], broker)):
            lighter = [broker for broker in self._takers if self._leads[broker] < self._leads[giver] - 1]
            if not lighter:
                return False
            lighter.sort(key=lambda broker: (self._leads[broker], broker))
            if self._hand_over(giver, lighter) or self._pass_on(giver, lighter):
                return True
        return False

    def _hand_over(self, giver: int, lighter: Collection[int]) -> bool:
        for taker in lighter:
            if found := self._find(giver, taker):
                self._lead(*found, taker)
                return True
        return False

    def _pass_on(self, giver: int, lighter: Collection[int]) -> bool:
        """Hand partitions over along the shortest way from the giver to a lighter broker."""
        came_from: dict[int, int] = {giver: giver}
        queue = deque([giver])
        while queue:
            broker = queue.popleft()
            for taker in self._live:
                if taker in came_from or not self._find(broker, taker):
                    continue
                came_from[taker] = broker
                if taker in lighter:
                    return self._hand_over_along(came_from, taker)
                queue.append(taker)
        return False

    def _hand_over_along(self, came_from: Mapping[int, int], last: int) -> bool:
        # From the end: each broker gives before it takes, so no hop makes another one impossible.
        while (giver := came_from[last]) != last:
            if found := self._find(giver, last):
                self._lead(*found, last)
            last = giver
        return True

    def _find(self, giver: int, taker: int) -> tuple[str, int] | None:
        """Return a partition that the giver leads, the taker has, and of whose topic the taker leads fewer."""
        heirs = self._heirs.get((giver, taker), [])
        heirs[:] = [found for found in heirs if self._rows[found[0]][found[1]][0] == giver]
        for name, partition in heirs:
            leads = self._of_topic[name]
            if leads[taker] < leads[giver]:
                return name, partition
        return None

    def _lead(self, name: str, partition: int, leader: int) -> None:
        before = self._rows[name][partition]
        row = (leader, *(broker for broker in before if broker != leader))
        self._rows[name][partition] = row
        for broker, step in ((before[0], -1), (leader, +1)):
            self._leads[broker] += step
            self._of_topic[name][broker] += step
        self._list(name, partition, row)

    def _list(self, name: str, partition: int, row: tuple[int, ...]) -> None:
        for broker in row[1:]:
            self._heirs.setdefault((row[0], broker), []).append((name, partition))
