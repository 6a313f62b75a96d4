"""The quality check, imported when a test asks for it: that takes seconds, and each worker reads each test file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from topicops.model.runs.results import QualityResult


@pytest.fixture(scope="session", params=["spark", "python"])
def check_quality(request: pytest.FixtureRequest) -> Callable[..., tuple[QualityResult, ...]]:
    from fixtures.spark_rows import check_rows

    return partial(check_rows, request.param, spark=lambda: request.getfixturevalue("spark"))
