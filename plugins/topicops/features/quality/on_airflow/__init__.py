"""The Quality tab of a run in Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.flow.runs.run import Place
    from topicops.on_airflow.names import RunOf


def page_of(home: Place, run: RunOf) -> str:
    """Give the page. What it needs is imported at its first request: each Airflow process imports this module."""
    from topicops.features.quality.on_airflow.page import quality_page
    from topicops.features.quality.on_airflow.reading import read_quality

    return quality_page(read_quality(home, run))
