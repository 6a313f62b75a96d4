"""Airflow's inner parts stand in one module, each is where it says, and no other module reaches past Airflow's docs."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from fixtures.airflow_sets import RELEASES
from topicops.on_airflow import airflow_inside

PACKAGE = Path(airflow_inside.__file__).parents[1]
DOCUMENTED = (
    "airflow.api_fastapi.auth.managers.models", "airflow.listeners", "airflow.plugins_manager",
    "airflow.providers.standard.operators", "airflow.providers.standard.triggers", "airflow.sdk.configuration",
    "airflow.sdk.definitions.callback", "airflow.sdk.definitions.deadline", "airflow.sdk.definitions.param",
    "airflow.sdk.exceptions", "airflow.sdk.log", "airflow.sdk.types",
)  # fmt: skip
"""Modules that Airflow's pages on its public interface name, beside ``airflow.sdk`` itself."""


def imported(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_the_inner_parts_of_airflow_were_checked_in_its_installed_release() -> None:
    """After an upgrade: read what ``airflow_inside`` names anew, run the tests of this folder, name the release."""
    assert version("apache-airflow") in RELEASES


def test_each_inner_part_is_where_its_place_says() -> None:
    for name, place in airflow_inside.PLACES.items():
        module, _, attribute = place.partition(":")
        there = import_module(module)
        assert hasattr(there, attribute) or attribute in there.__annotations__, name


def test_no_other_module_imports_what_airflow_does_not_document() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file.name != "airflow_inside.py"]
    found = {(file.name, name) for file in files for name in imported(file) if name.startswith("airflow.")}
    inner = {(file, name) for file, name in found if name != "airflow.sdk" and not name.startswith(DOCUMENTED)}
    assert inner == set()
