"""Quality reports for tests that need one to show or to store."""

from __future__ import annotations

from collections.abc import Iterable

from topicops.model.runs.results import QualityReport, QualityResult, QualitySuite
from topicops.testing.builders import CLUSTER_ID, NOW


def quality_report(suite: QualitySuite, results: Iterable[QualityResult] = ()) -> QualityReport:
    return QualityReport(
        suite=suite,
        environment="local",
        cluster_id=CLUSTER_ID,
        run="topic_pipeline_local/manual__1",
        checked_at=NOW,
        seconds=1.5,
        results=tuple(results),
    )
