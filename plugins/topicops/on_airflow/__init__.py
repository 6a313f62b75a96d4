"""The Airflow part: DAGs, tasks, pages, the provider's metadata and the plugin.

The names of ``__all__`` are for DAG files of your own. They are loaded when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from topicops.model.memory import gc_paused

if TYPE_CHECKING:
    from topicops.on_airflow.dags.dag_file import dags_of
    from topicops.on_airflow.dags.environment_dags import EnvironmentDags, environment_dags
    from topicops.on_airflow.for_dag_files import KafkaTopicsHook, TopicHealthySensor, topic_asset, topics_alias

_MODULES = {
    "EnvironmentDags": "dags.environment_dags",
    "KafkaTopicsHook": "for_dag_files",
    "TopicHealthySensor": "for_dag_files",
    "dags_of": "dags.dag_file",
    "environment_dags": "dags.environment_dags",
    "topic_asset": "for_dag_files",
    "topics_alias": "for_dag_files",
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
    with gc_paused():  # else importing ours has the collector look through all of Airflow
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
