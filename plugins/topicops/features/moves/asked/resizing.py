"""Rows of another length, or on other brokers, with the fewest moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from topicops.model.cluster.snapshot import Assignment
from topicops.steps.planning.placement.balanced import spread_leaders
from topicops.steps.planning.placement.load import Tally
from topicops.steps.planning.placement.request import Load

NO_RACKS: Mapping[int, str | None] = MappingProxyType({})


def resized(
    rows: Assignment,
    replication_factor: int | None,
    racks: Mapping[int, str | None],
    *,
    load: Load,
    staying: Mapping[int, str | None] = NO_RACKS,
    is_spread: bool = False,
) -> Assignment | None:
    """Return the rows with this replication factor and the fewest moves: replicas stay wherever they may.

    A row that has the right length, on these brokers, stays as it is. Of every other row as many replicas stay as
    ``kept_replicas`` says. Leaders stay too, unless the topic's leaders become less even.

    Args:
        replication_factor: None: each row keeps its length.
        racks: Rack by broker that may get replicas. Where only some have one, racks do not count.
        load: The cluster's, this topic included.
        staying: Rack by broker that keeps its replicas, and gets no others.
        is_spread: A row changes, too, that has replicas on one rack although another rack is free.

    Returns:
        None: a row has more replicas than there are brokers for it.
    """
    everyone = {**staying, **racks}
    sizes = {p: len(row) if replication_factor is None else replication_factor for p, row in rows.items()}
    if not all(0 <= sizes[p] <= len(racks.keys() | everyone.keys() & set(row)) for p, row in rows.items()):
        return None
    if replication_factor is not None and replication_factor < 1:
        return None
    rack_of = rack_of_each(everyone)
    tally = _Moving(rack_of, topic=Load.of([rows]), cluster=load, closed=staying.keys() - racks.keys())
    open_racks, found = {rack_of[broker] for broker in racks}, dict[int, tuple[int, ...]]()
    for partition, row in sorted(rows.items()):
        kept = kept_replicas(row, sizes[partition], rack_of, open_racks)
        if len(row) != sizes[partition] or not everyone.keys() >= set(row) or (is_spread and kept < len(row)):
            stay = [broker for broker in row if broker in rack_of]
            found[partition] = tally.grown(tally.shrunk(stay, kept), sizes[partition])
    return {**rows, **_with_leaders(tally.evened(found, rows), rows)}


def kept_replicas(row: Iterable[int], size: int, rack_of: Mapping[int, str], open_racks: Collection[str]) -> int:
    """Return how many replicas of a row stay if it gets ``size``: one for each rack, and more where racks run out.

    Args:
        rack_of: Rack by broker on which replicas may be.
        open_racks: Racks of those brokers that may get new ones.
    """
    stay = [rack_of[broker] for broker in row if broker in rack_of]
    spread, usable = len(set(stay)), len({*stay, *open_racks})
    return min(size, spread + min(len(stay) - spread, max(0, size - usable)))


def rack_of_each(racks: Mapping[int, str | None]) -> dict[int, str]:
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    return known if len(known) == len(racks) else {broker: str(broker) for broker in racks}


def _with_leaders(changed: Assignment, rows: Assignment) -> Assignment:
    """Return the changed rows, each with a leader. Other topics do not count: they would make more leaders move.

    Rows that lost their leader choose first. The others choose anew only if that makes the topic more even still.
    """
    others = Load.of([{p: row for p, row in rows.items() if p not in changed}])
    kept = {p: rows[p][:1] for p, row in changed.items() if rows[p] and rows[p][0] in row}
    leaders = {p: row[0] for p, row in spread_leaders({**changed, **kept}, topic=others, cluster=others).items()}
    ordered = {p: (leaders[p], *(broker for broker in row if broker != leaders[p])) for p, row in changed.items()}
    return spread_leaders(ordered, topic=others, cluster=others)


class _Moving(Tally):
    """The counts while replicas of a topic move."""

    def __init__(self, racks: Mapping[int, str], *, topic: Load, cluster: Load, closed: Collection[int]) -> None:
        """Count as ``Tally`` does; brokers that are ``closed`` keep replicas, and get none."""
        super().__init__(racks, topic=topic, cluster=cluster)
        self._closed = closed

    def _takers(self) -> Collection[int]:
        return self._racks.keys() - self._closed

    def shrunk(self, row: Sequence[int], size: int) -> tuple[int, ...]:
        """Return the row cut down to ``size``: first brokers that share a rack go, then those with the most replicas.

        The leader goes last among equals.
        """
        found = list(row)
        while len(found) > size:
            racks = Counter(self._racks[broker] for broker in found)
            position = max(range(len(found)), key=lambda i: self._excess(found, i, racks))
            self._count(found.pop(position), -1)
        return tuple(found)

    def evened(self, rows: Assignment, before: Assignment) -> Assignment:
        """Return the rows after every exchange of a broker for one with fewer replicas that costs nothing.

        An existing replica replaces an existing one, a new one a new one, and a row stays on as many racks. Rows are
        filled one after the other, so the first ones cannot know what the later ones take.
        """
        found = dict(rows)
        while exchange := next(self._exchanges(found, before), None):
            partition, taken, given = exchange
            self._count(taken, -1)
            self._count(given, +1)
            found[partition] = tuple(given if broker == taken else broker for broker in found[partition])
        return found

    def _exchanges(self, rows: Assignment, before: Assignment) -> Iterator[tuple[int, int, int]]:
        for partition in sorted(rows):
            row = rows[partition]
            for taken in row:
                for given in sorted(self._racks.keys() - set(row)):
                    is_new = given not in before[partition]
                    is_alike = (taken not in before[partition]) == is_new and not (is_new and given in self._closed)
                    if is_alike and self._is_lighter(given, taken) and self._keeps_racks(row, taken, given):
                        yield partition, taken, given

    def _is_lighter(self, given: int, taken: int) -> bool:
        """Return whether moving one replica from ``taken`` to ``given`` is more even."""
        lighter = (self._topic[given], self._cluster[given])
        return lighter < (self._topic[taken] - 1, self._cluster[taken] - 1)

    def _keeps_racks(self, row: Sequence[int], taken: int, given: int) -> bool:
        others = {self._racks[broker] for broker in row if broker != taken}
        return self._racks[given] not in others or self._racks[taken] in others

    def _excess(self, row: Sequence[int], position: int, racks: Mapping[str, int]) -> tuple[int, ...]:
        broker = row[position]
        shares_rack = racks[self._racks[broker]] > 1
        return shares_rack, self._topic[broker], position > 0, self._cluster[broker], position
