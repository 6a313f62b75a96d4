"""Each feature is one folder: without it and its lines in the lists, the rest imports, and the other commands work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from topicops.cli import COMMANDS

PACKAGE = Path(__file__).parents[2] / "plugins/topicops"
FEATURES = sorted(folder.name for folder in (PACKAGE / "features").iterdir() if (folder / "__init__.py").exists())
LISTS = (
    "cli/__init__.py",
    "cli/cluster/drift.py",
    "cli/fleets.py",
    "cli/json_outputs.py",
    "on_airflow/dag_file.py",
    "on_airflow/pages/tabs.py",
    "on_airflow/tellers.py",
    "plugged.py",
)
"""Files that name a feature, one line for each of its entries."""
ARROWS = ("quality -> spark",)
"""The features that import another, which is not deleted without them."""
IMPORT_ALL = """
import importlib, pkgutil, topicops
for module in pkgutil.walk_packages(topicops.__path__, "topicops."):
    importlib.import_module(module.name)
print(topicops.__file__)
"""


def python(folder: Path, *arguments: str) -> str:
    """Run Python with the package of this folder, and give what it prints."""
    home = {"AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "COLUMNS": "120"}
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **home, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def without_features(names: Collection[str], folder: Path) -> Path:
    """Copy the package without the features' folders, and without their lines in the lists."""
    copied = folder / "topicops"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for name in names:
        shutil.rmtree(copied / "features" / name)
    for file in LISTS:
        lines = (copied / file).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not any(f"features.{name}." in line for name in names)]
        (copied / file).write_text("".join(kept), encoding="utf-8")
    return folder


def naming(name: str, package: Path) -> Iterator[str]:
    """Yield the files that name the feature's package, late imports included."""
    for file in sorted(package.rglob("*.py")):
        if re.search(rf"\bfeatures(\.|/| import ){name}\b", file.read_text(encoding="utf-8")):
            yield file.relative_to(package).as_posix()


def commands_in(shown: str) -> set[str]:
    return {name for name in COMMANDS if re.search(rf"^\W*{name}\s", shown, re.MULTILINE)}


@pytest.mark.parametrize("feature", FEATURES)
def test_without_its_folder_and_its_lines_all_the_rest_works(feature: str, tmp_path: Path) -> None:
    gone = {feature, *(arrow.split()[0] for arrow in ARROWS if arrow.split()[-1] == feature)}
    folder = without_features(gone, tmp_path)
    assert [file for name in gone for file in naming(name, folder / "topicops")] == []

    assert python(folder, "-c", IMPORT_ALL).splitlines()[-1] == str(folder / "topicops/__init__.py")

    its_commands = {name for name, place in COMMANDS.items() if any(f"features.{other}." in place for other in gone)}
    assert commands_in(python(folder, "-m", "topicops", "--help")) == COMMANDS.keys() - its_commands
