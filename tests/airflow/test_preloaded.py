"""A task that is forked from a process with ``topicops.on_airflow.tasks.preloaded`` imports nothing large any more."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest

from topicops.on_airflow.tasks import preloaded

FORKED = """
import gc, json, os, sys, threading
from importlib import import_module
import topicops.on_airflow.tasks.preloaded
threads, frozen, before = threading.active_count(), gc.get_freeze_count(), set(sys.modules)
for name in json.loads(sys.argv[1]):
    import_module(name)
named = sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
print("found", json.dumps({"threads": threads, "frozen": frozen, "named": named}))
"""
OF_TASKS = (
    "airflow.sdk.execution_time.task_runner",
    "airflow.providers.standard.operators.hitl",
    "airflow.providers.standard.operators.trigger_dagrun",
    "topicops.edges.kafka.admin",
    "topicops.edges.kafka.questions",
    "topicops.edges.tables.topics",
    "topicops.edges.zookeeper.lease",
    "topicops.edges.zookeeper.reader",
    "topicops.on_airflow.dags.dag_file",
    "topicops.on_airflow.tasks.steps",
)
"""Modules that tasks of a run in mode apply import, where Spark judges nothing."""


def test_a_task_imports_no_package_but_small_modules_of_our_own() -> None:
    command = [sys.executable, "-c", FORKED, json.dumps(OF_TASKS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    (line,) = (line.removeprefix("found ") for line in said.splitlines() if line.startswith("found "))
    found = json.loads(line)
    assert set(found["named"]) <= {"topicops"}
    assert (found["threads"], found["frozen"] > 100_000) == (1, True)  # a fork with threads may hang


@pytest.mark.parametrize("name", preloaded.MODULES)
def test_each_preloaded_module_is_there(name: str) -> None:
    """A name that cannot be imported is left out without a word."""
    import_module(name)
