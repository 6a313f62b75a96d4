"""Memory: mappings by topic whose values may be in a file, and a pause of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast, runtime_checkable

Value = TypeVar("Value")
Held = TypeVar("Held", covariant=True)
TOPICS_AT_ONCE = 2_000


@runtime_checkable
class InFile(Protocol[Held]):
    """A mapping whose values are in a file."""

    def read(self, names: Collection[str]) -> Mapping[str, Held]:
        """Return those of these topics that are there, read at once, and none of them held."""
        ...

    def hold(self, names: Collection[str]) -> None:
        """Read these at once, and hold them: asking for one of them costs nothing from now on."""
        ...


def hold(topics: Mapping[str, object], names: Collection[str]) -> None:
    """Have these topics at hand."""
    if isinstance(topics, InFile):
        topics.hold(names)


def in_parts(topics: Mapping[str, Value], names: Sequence[str], *, size: int) -> Iterator[Mapping[str, Value]]:
    """Yield these topics, so many at once: those that are in a file are never held all together."""
    for start in range(0, len(names), size):
        part = names[start : start + size]
        if isinstance(topics, InFile):
            yield cast("InFile[Value]", topics).read(part)
        else:
            yield {name: topics[name] for name in part}


class WithNewer(Mapping[str, Value]):
    """A mapping with some values that have changed since."""

    def __init__(self, topics: Mapping[str, Value], newer: Mapping[str, Value]) -> None:
        """Take two mappings that both have all of the newer names."""
        self._topics, self._newer = topics, newer

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def __getitem__(self, name: str) -> Value:
        return self._newer[name] if name in self._newer else self._topics[name]

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        older = [name for name in names if name not in self._newer]
        newer = {name: self._newer[name] for name in names if name in self._newer}
        if isinstance(self._topics, InFile):
            return {**cast("InFile[Value]", self._topics).read(older), **newer}
        return {**{name: self._topics[name] for name in older if name in self._topics}, **newer}

    def hold(self, names: Collection[str]) -> None:
        hold(self._topics, [name for name in names if name not in self._newer])


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside the block; blocks may be nested, and the outermost one enables it again.

    On leaving, live objects move to the oldest generation: else the next collection would walk all of them at once.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
