"""The quality check, imported when a test asks for it: that takes seconds, and each worker reads each test file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from topicops.model.runs.results import QualityResult


@pytest.fixture(scope="session")
def check_quality() -> Callable[..., tuple[QualityResult, ...]]:
    from fixtures.spark_rows import check_rows

    return check_rows
