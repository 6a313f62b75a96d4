"""Tiers by folder: what talks to a real system, or runs a case table, carries its folder's marker; unmarked: fast."""

from pathlib import Path

import pytest

pytest_plugins = ["fixtures.zookeeper", "fixtures.cluster", "fixtures.spark", "fixtures.workspace"]

MARKED_FOLDERS = ("edges", "airflow", "cluster", "cases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)
