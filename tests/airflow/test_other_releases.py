"""The same story in the other releases of Airflow that we claim, each with packages of its own day.

``TOPICOPS_AIRFLOW_VENVS`` names a folder that keeps the virtual environments; else they are made anew.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from fixtures.airflow_sets import RELEASES, run_tests

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]
OTHERS = [name for name in RELEASES if name != version("apache-airflow")]


@pytest.mark.parametrize("name", OTHERS)
def test_the_story_ends_well_in_another_release(name: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get("TOPICOPS_AIRFLOW_VENVS", tmp_path)) / name
    assert run_tests(name, folder, ["-q", "-m", "soak", "tests/airflow/test_release_story.py"]) == 0
