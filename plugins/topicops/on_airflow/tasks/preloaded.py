"""What tasks import: named in ``core.mp_forkserver_preload``, it is loaded once, and each task starts with all of it.

It begins no thread and opens nothing, so processes may be forked afterwards. What cannot be imported is left out.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

MODULES = (
    "airflow.executors.local_executor",
    "airflow.dag_processing.dagbag",
    "topicops.on_airflow.dags.dag_file",
    "topicops.on_airflow.tasks.steps",
    "topicops.steps.specs.validate",
    "confluent_kafka.admin",
    "kafka",
    "kazoo.client",
    "topicops.edges.tables.topics",
)
"""Modules of Airflow, of topicops and of clients; those that only Spark needs are not among them."""

for name in MODULES:
    with suppress(ImportError):
        import_module(name)
# They stay as long as the process. A collection in a task would only look at them, and copy the memory that it touches.
gc.collect()
gc.freeze()
