"""Where Airflow shows our pages."""

from __future__ import annotations

PREFIX = "/topicops"
BELOW = f"{PREFIX.removeprefix('/')}/"
"""Begin of each address of ours: without a slash in front, browsers read it from the path below which Airflow is."""
PLAN_ROUTE, QUALITY_ROUTE = "topicops-plan", "topicops-quality"
STATIC = "static/"
"""The folder of stylesheet and script, next to the pages and so behind the same check."""
