"""The Airflow part: tasks, DAGs, the provider's metadata and the plugin.

The names of ``__all__`` are for DAG files of your own. Only light imports at module level: Airflow loads these modules
when it parses DAGs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicops.on_airflow.assets import topic_asset, topics_alias
    from topicops.on_airflow.dag_file import dags_of
    from topicops.on_airflow.dags import EnvironmentDags, environment_dags
    from topicops.on_airflow.kafka_topics_hook import KafkaTopicsHook
    from topicops.on_airflow.topic_sensor import TopicHealthySensor

_MODULES = {
    "EnvironmentDags": "dags",
    "KafkaTopicsHook": "kafka_topics_hook",
    "TopicHealthySensor": "topic_sensor",
    "dags_of": "dag_file",
    "environment_dags": "dags",
    "topic_asset": "assets",
    "topics_alias": "assets",
}

__all__ = [
    "EnvironmentDags",
    "KafkaTopicsHook",
    "TopicHealthySensor",
    "dags_of",
    "environment_dags",
    "topic_asset",
    "topics_alias",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
