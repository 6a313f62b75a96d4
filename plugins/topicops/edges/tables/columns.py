"""Columns that more than one table has, and how columns become a batch of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from topicops.edges.without_pandas import leave_pandas_out_of_arrow
from topicops.model.specs.topic_config import config_problem


def record_batch(columns: Mapping[str, Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    """A batch of all columns of the schema."""
    leave_pandas_out_of_arrow()
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def problems_of(configs: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Why a broker would refuse a value, by config; only those that it would refuse."""
    return [
        (name, problem)
        for name, text in configs.items()
        if text is not None and (problem := config_problem(name, text))
    ]
