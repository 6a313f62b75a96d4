"""Each feature is one folder: without it and its lines in the lists, the rest imports, and the other commands work."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from topicops.cli import COMMANDS, HIDDEN, PANELS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "plugins/topicops"
GROUPS = {"ask", "files"}
"""Folders of features that are about one thing."""
FEATURES = sorted(
    {folder.name for folder in PACKAGE.glob("features/*/") if (folder / "__init__.py").is_file()} - GROUPS - {"shared"}
    | {f"{group}/{file.parent.name}" for group in GROUPS for file in PACKAGE.glob(f"features/{group}/*/__init__.py")}
)
LISTS = ("cli/__init__.py", "cli/fleets.py", "on_airflow/plugged.py", "on_airflow/plugged_at_start.py", "plugged.py")
"""Files that name a feature, one line for each of its entries."""
LOOP_TESTS = [ROOT / "tests" / name for name in ("model", "steps", "flow")]
ARROWS = ("quality -> spark",)
"""Features that import another, which is not deleted without them."""
IMPORT_ALL = """
import importlib, pkgutil, sys, topicops
for module in pkgutil.walk_packages(topicops.__path__, "topicops."):
    importlib.import_module(module.name)
print(topicops.__file__)
sys.argv[1:] = ["--help"]
importlib.import_module("topicops.__main__").main()
"""


def python(folder: Path, *arguments: str) -> str:
    """Run Python with the package of this folder, and give what it prints."""
    home = {"AIRFLOW_HOME": str(folder / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "COLUMNS": "120"}
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **os.environ,
            **home,
            "PYTHONPATH": os.pathsep.join(map(str, (folder, ROOT, ROOT / "local"))),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]
    return ended.stdout


def dotted(feature: str) -> str:
    return feature.replace("/", ".")


def without_lines(text: str, features: Iterable[str]) -> str:
    """Take out what a list says of these features."""
    named = tuple(f"features.{dotted(feature)}." for feature in features)
    return "".join(line for line in text.splitlines(keepends=True) if not any(name in line for name in named))


def without(features: Collection[str], folder: Path) -> Path:
    """Copy the package without the folders of these features, and without their lines in the lists."""
    copied = folder / "topicops"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for feature in features:
        shutil.rmtree(copied / "features" / feature)
    for file in LISTS:
        (copied / file).write_text(
            without_lines((copied / file).read_text(encoding="utf-8"), features), encoding="utf-8"
        )
    return folder


def slashed(feature: str) -> str:
    return feature.replace(".", "/")


def commands_in(shown: str) -> set[str]:
    return {name for name in COMMANDS if re.search(rf"^\W*{name}\s", shown, re.MULTILINE)}


def commands_of(features: Iterable[str]) -> set[str]:
    return {
        name for name, place in COMMANDS.items() if any(f"features.{dotted(feature)}." in place for feature in features)
    }


def rest_works(folder: Path, features: Collection[str]) -> None:
    _, package, shown = python(folder, "-c", IMPORT_ALL).partition(f"{folder}/topicops/__init__.py\n")
    assert package
    assert commands_in(shown) == COMMANDS.keys() - PANELS[HIDDEN].keys() - commands_of(features)


def test_lines_of_the_lists_alone_name_a_feature() -> None:
    names = re.compile(rf"\bfeatures(?:\.|/| import )({'|'.join(FEATURES)})\b".replace("/", "[./]"))
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        place, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        own = next((feature for feature in FEATURES if place.startswith(f"features/{feature}/")), "")
        rest = without_lines(text, FEATURES) if place in LISTS else text
        if named := {
            name for name in map(slashed, names.findall(rest)) if name != own and f"{own} -> {name}" not in ARROWS
        }:
            found[place] = named
    assert found == {}


def test_without_any_feature_the_loop_imports_and_has_its_own_commands(tmp_path: Path) -> None:
    rest_works(without(FEATURES, tmp_path), FEATURES)


READ_ONLY = {
    "on_airflow/dags/dag_file.py",
    "on_airflow/dags/environment_dags.py",
    "on_airflow/listening.py",
    "on_airflow/pages/reading.py",
}
"""Files that open runs only to read what they left, or to say that they cannot begin."""


def test_each_run_that_reads_a_cluster_is_told_of_accepted_moves() -> None:
    """Without them a plan would move the same replicas to another place."""
    untold = []
    for file in sorted(PACKAGE.rglob("*.py")):
        calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        opened = (call for call in calls if ast.unparse(call.func).rpartition(".")[2] in ("open_run", "open_fleet"))
        if not all("moves" in {keyword.arg for keyword in call.keywords} for call in opened):
            untold.append(file.relative_to(PACKAGE).as_posix())
    assert set(untold) == READ_ONLY


def test_no_test_of_the_loop_imports_a_feature() -> None:
    loop = {file: file.read_text(encoding="utf-8") for folder in LOOP_TESTS for file in folder.rglob("*.py")}
    used = re.findall(r"^from ((?:fixtures|fakes)\.\w+) import", "\n".join(loop.values()), re.MULTILINE)
    files = [*loop, *(ROOT / "tests" / f"{name.replace('.', '/')}.py" for name in {*used})]
    of_features = re.compile(r"^from topicops\.features\.(?!shared)", re.MULTILINE)
    assert [file.name for file in files if of_features.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("feature", FEATURES)
def test_without_its_folder_and_its_lines_the_loop_passes_its_tests(feature: str, tmp_path: Path) -> None:
    gone = [feature, *(arrow.split()[0] for arrow in ARROWS if arrow.split()[-1] == feature)]
    folder = without(gone, tmp_path)
    rest_works(folder, gone)

    shown = python(
        folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "-m", "not soak",
        *map(str, LOOP_TESTS),
    )  # fmt: skip
    assert re.search(r"^[0-9]{3,} passed", shown, re.MULTILINE)
