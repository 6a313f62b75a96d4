"""A throw-away Airflow. Its settings are read when it is first imported, so they are set here, above every import."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="topicops-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
PROJECT = HOME / "project"
"""A repository with two environments and no topic; its DAG file is ours."""

ENVIRONMENT_FILES = ("local.yaml", "prod-eu.yaml", "prod-eu.exceptions.yaml", "notes.txt")


def make_project() -> None:
    (PROJECT / "dags").mkdir(parents=True)
    (PROJECT / "topics/environments").mkdir(parents=True)
    shutil.copy(REPOSITORY / "dags/topicops_dags.py", PROJECT / "dags")
    for name in ENVIRONMENT_FILES:
        text = "kind: Environment\n" if name == "local.yaml" else ": [not YAML\n"
        (PROJECT / "topics/environments" / name).write_text(text, encoding="utf-8")


def airflow_settings() -> dict[str, str]:
    bundle = {
        "name": "topicops",
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(PROJECT / "dags")},
    }
    return {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    }


make_project()
os.environ.update(airflow_settings())
for word in ("MODE", "SCHEDULE", "DRIFT_SCHEDULE", "ANSWER_WITHIN", "NOTIFY", "REMIND_AFTER", "CHECK_QUESTION_EVERY"):
    os.environ.pop(f"TOPICOPS_{word}", None)


@pytest.fixture(scope="session")
def project() -> Path:
    return PROJECT


@pytest.fixture(scope="session")
def airflow_database() -> None:
    """Airflow's tables, once a session."""
    from airflow.utils import db

    db.initdb()


@pytest.fixture
def topicops_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the runs of one test lie; an environment variable, as tasks get it."""
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path))
    return tmp_path
