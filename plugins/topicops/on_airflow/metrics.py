"""Airflow's own metrics: gauges of an environment."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats


def metrics_are_on() -> bool:
    """Whether Airflow sends metrics anywhere."""
    ways = ("statsd_on", "statsd_datadog_enabled", "otel_on")
    return any(conf.getboolean("metrics", way, fallback=False) for way in ways)


def begin_metrics() -> None:
    """Outside a task Airflow has not begun these metrics: in the DAG processor, the scheduler and the API server."""
    from airflow.sdk.observability.metrics import stats_utils

    stats.initialize(
        factory=stats_utils.get_stats_factory(),
        export_legacy_names=conf.getboolean("metrics", "legacy_names_on", fallback=True),
    )


def count(environment: str, counts: Mapping[str, float]) -> None:
    """Gauges ``topicops.<environment>.<name>``, by Airflow's own metrics: StatsD or OpenTelemetry."""
    for name, value in counts.items():
        stats.gauge(f"topicops.{environment}.{name}", value)
