"""Where Airflow shows our pages."""

from __future__ import annotations

PREFIX = "/topicops"
PLAN_ROUTE, QUALITY_ROUTE, TOPICS_ROUTE = "topicops-plan", "topicops-quality", "topicops-topics"
