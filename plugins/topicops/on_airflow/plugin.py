"""The plugin by which Airflow lists this package; pages are added to it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class TopicopsPlugin(AirflowPlugin):
    name = "topicops"
