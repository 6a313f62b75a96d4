"""The base install: other processes than this one, for which the packages of the extras cannot be imported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
OF_EXTRAS = (
    "airflow",
    "fastapi",
    "great_expectations",
    "grpc",
    "numpy",
    "pandas",
    "puresasl",
    "py4j",
    "pyarrow",
    "pyspark",
    "topicops_local",
)
SPARK = "topicops: Spark is not installed: run pip install 'topicops[spark]'"
LOCAL = "topicops: The local cluster is not installed: run pip install 'topicops[local]'"

RUN = """
import contextlib, io, json, os, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from topicops.cli import run
for words in json.loads(sys.argv[2]):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            status = run(words)
        except SystemExit as end:
            status = end.code
    print(json.dumps([status, shown.getvalue()]))
"""
IMPORT_ALL = """
import importlib, json, pkgutil, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
import topicops
from topicops.model.errors import MissingExtraError
lacking = []
def note(name):
    if not isinstance(sys.exc_info()[1], MissingExtraError):
        lacking.append(name)
for module in pkgutil.walk_packages(topicops.__path__, "topicops.", onerror=note):
    if "on_airflow" not in module.name and not module.name.startswith("topicops.features.files.authoring.first_files"):
        try:
            importlib.import_module(module.name)
        except MissingExtraError:
            pass
        except ImportError:
            lacking.append(module.name)
print(json.dumps(lacking))
"""


def without_extras(program: str, *arguments: str, folder: Path) -> list[str]:
    """Return lines that the program prints in an install that lacks all extras."""
    done = subprocess.run(
        [sys.executable, "-c", program, ",".join(OF_EXTRAS), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=folder,
        env={"PATH": "", "HOME": str(folder), "PYTHONPATH": str(REPOSITORY / "plugins")},
    )
    return done.stdout.splitlines()


NEEDS_AN_EXTRA = {
    ("plan", "--environment", "local", "--engine", "spark"): SPARK,
    ("spark", "archive"): SPARK,
    ("demo", "--kafka", "2.5"): LOCAL,
    ("local",): LOCAL,
    ("local", "up", "--fresh"): LOCAL,
    ("init", "--local"): LOCAL,
}
NEEDS_NONE = (
    ("--version",),
    ("validate",),
    ("explain", "payments.orders", "--environment", "local"),
    ("dags",),
    ("plan", "--environment", "local", "--engine", "python"),
    ("drift", "--environment", "local", "--since", "1d"),
)
Answers = Mapping[tuple[str, ...], tuple[int, str]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Exit status and output of all commands, which one process runs."""
    folder = tmp_path_factory.mktemp("without-extras")
    shutil.copytree(REPOSITORY / "topics", folder / "topics")
    commands = [*NEEDS_AN_EXTRA, ("--help",), *NEEDS_NONE]
    lines = without_extras(RUN, json.dumps(commands), folder=folder)
    return {words: (status, text) for words, (status, text) in zip(commands, map(json.loads, lines), strict=True)}


def test_what_needs_an_extra_says_in_one_sentence_which_one(answers: Answers) -> None:
    found = {words: (answers[words][0], answers[words][1].splitlines()[-1]) for words in NEEDS_AN_EXTRA}
    assert found == {words: (1, sentence) for words, sentence in NEEDS_AN_EXTRA.items()}


def test_commands_of_an_extra_that_is_missing_are_listed_with_what_installs_them(answers: Answers) -> None:
    status, shown = answers["--help",]
    assert status == 0
    missing = r" +The local cluster is not installed: run pip install\W+'topicops\[local\]'"
    assert set(re.findall(rf"^\W*(\w+){missing}", shown, re.MULTILINE)) == {"local"}


def test_without_extras_files_are_checked_and_a_plan_gets_as_far_as_the_connection(answers: Answers) -> None:
    *done, planned, asked = (answers[words] for words in NEEDS_NONE)
    assert [status for status, _ in done] == [0, 0, 0, 0]
    assert planned[0] == 1
    assert "AIRFLOW_CONN_KAFKA_LOCAL" in planned[1], "it lacks an address, and nothing else"
    assert asked[0] == 1
    assert "no history of local" in asked[1]


def test_no_module_fails_for_a_missing_package_unless_a_check_stands_before_it(tmp_path: Path) -> None:
    [lacking] = without_extras(IMPORT_ALL, folder=tmp_path)
    assert json.loads(lacking) == []


def test_quality_rules_without_great_expectations_name_its_extra(tmp_path: Path) -> None:
    program = "import sys; sys.modules['great_expectations'] = None; import topicops.features.quality.edges.validation"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr.splitlines()[-1] == (
        "topicops.model.errors.MissingExtraError: Great Expectations is not installed: "
        "run pip install 'topicops[quality]'"
    )
