"""Columns that more than one table has, and how columns become a batch of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa


def record_batch(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of all columns of the schema."""
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def problems_of(configs: Mapping[str, str | None], problem_of: Callable[[str, str], str]) -> list[tuple[str, str]]:
    """Why brokers would refuse a value, by config; only those that they would refuse."""
    return [
        (name, problem) for name, text in configs.items() if text is not None and (problem := problem_of(name, text))
    ]
