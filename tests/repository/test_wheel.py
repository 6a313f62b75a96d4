"""The built wheel in a fresh environment: the base install, its size, and what it can do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from topicops import __version__

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
MOST_MB = 80
"""Of the base install, with compiled modules, as pip leaves them."""

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a virtual environment that has the base alone."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    run(UV, "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin/python"
    run(UV, "pip", "install", "--quiet", "--python", python, "--compile-bytecode", f"topicops @ {wheel.as_uri()}")
    yield folder
    shutil.rmtree(folder)


def run(*words: object, cwd: Path | None = None, status: int = 0) -> str:
    """What the program prints on both streams."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("PYTHONPATH", "TOPICOPS", "AIRFLOW"))
    }
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=kept,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def test_the_base_install_takes_at_most_eighty_megabytes(installed: Path) -> None:
    [packages] = installed.glob("lib/python*/site-packages")
    used = int(run("du", "--summarize", "--block-size=1M", packages).split()[0])
    assert used <= MOST_MB
    assert not [name for name in ("pyspark", "pyarrow", "pandas", "airflow") if (packages / name).exists()]


def test_the_base_install_validates_writes_files_and_gets_as_far_as_the_cluster(
    installed: Path, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "topics", tmp_path / "topics")
    topicops = installed / "bin/topicops"
    assert run(topicops, "--version", cwd=tmp_path) == f"{__version__}\n"
    assert "0 errors" in run(topicops, "validate", cwd=tmp_path)
    assert "written" in run(topicops, "dags", "--write", "dags", cwd=tmp_path)
    assert "AIRFLOW_CONN_KAFKA_ZOOKEEPER_LOCAL" in run(
        topicops, "plan", "--environment", "local", "--engine", "python", cwd=tmp_path, status=1
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plan --environment local --engine spark", "Spark is not installed: run pip install 'topicops[spark]'"),
        ("local spark up", "Spark is not installed: run pip install 'topicops[spark]'"),
        ("demo", "Airflow is not installed: run pip install 'topicops[airflow]'"),
    ],
)
def test_what_needs_an_extra_names_it(installed: Path, words: str, sentence: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "topics", tmp_path / "topics")
    shown = run(installed / "bin/topicops", *words.split(), cwd=tmp_path, status=1)
    assert shown.splitlines()[-1] == f"topicops: {sentence}"


def test_it_runs_without_being_installed(wheel: Path, tmp_path: Path) -> None:
    words = ("tool", "run", "--quiet", "--python", sys.executable, "--from", wheel, "topicops", "--version")
    assert run(UV, *words, cwd=tmp_path).splitlines()[-1] == __version__


def test_the_wheel_has_the_first_files_and_the_schemas(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    assert {
        "topicops/first_files/topicops_dags.py",
        "topicops/schema/topic.v1.json",
        "topicops/schema/outputs/report.v1.json",
        "topicops/edges/local/jars.sha256",
    } <= names
