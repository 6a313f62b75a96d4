"""Values of a table, by topic, of which a step needs few: each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Generic, TypeVar, cast

import pyarrow as pa

Value = TypeVar("Value")
ReadTopics = Callable[[Collection[str]], Iterable[tuple[str, Value]]]
"""Reads these topics from the tables, each with its name."""


class RowsByTopic(Mapping[str, Value], Generic[Value]):
    """A mapping by name, in order. It holds all names, and the values that were asked for.

    The tables must stay as they are. ``hold`` reads many at once, and whoever asks for all values gets all of them
    read; for one name alone the file is opened again.
    """

    def __init__(self, names: Iterable[str], read: ReadTopics[Value]) -> None:
        self._found: dict[str, Value | None] = dict.fromkeys(sorted(names))
        self._read = read

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Value:
        if self._found[name] is None:
            self.hold([name])
        return cast("Value", self._found[name])

    def values(self) -> ValuesView[Value]:
        self.hold(self._found)
        return super().values()

    def items(self) -> ItemsView[str, Value]:
        self.hold(self._found)
        return super().items()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """As ``model.topics_in_files.InFile``."""
        wanted = [name for name in names if name in self._found]
        return dict(self._read(wanted)) if wanted else {}

    def hold(self, names: Collection[str]) -> None:
        """As ``model.topics_in_files.InFile``."""
        missing = [name for name in names if name in self._found and self._found[name] is None]
        if missing:
            self._found.update(self._read(missing))


def record_batch(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of all columns of the schema."""
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def problems_of(configs: Mapping[str, str | None], problem_of: Callable[[str, str], str]) -> list[tuple[str, str]]:
    """Why brokers would refuse a value, by config; only those that they would refuse."""
    return [
        (name, problem) for name, text in configs.items() if text is not None and (problem := problem_of(name, text))
    ]
