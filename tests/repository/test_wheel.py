"""The built wheel in a fresh environment: the base install, its size, and what it can do."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from fixtures.spark_servers import connect_server
from fixtures.wheel import ROOT, UV, install, run, size_mb
from topicops import __version__

MOST_MB = 80
"""Of the base install, with compiled modules, as pip leaves them."""
FIGURE = re.compile(r"^\| `topicops(?:\[(\w+)\])?` \|.*\| ([\d,]+) MB \|$", re.MULTILINE)
"""An extra and its size in the table of the page."""

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a virtual environment that has the base alone."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    install(folder, f"topicops @ {wheel.as_uri()}")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "venv"
    shutil.rmtree(tmp_path / "venv")


def figures() -> dict[str, int]:
    """By extra, the MB that the page says; the base is an empty name."""
    page = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    return {extra: int(size.replace(",", "")) for extra, size in FIGURE.findall(page)}


def test_the_base_install_takes_at_most_eighty_megabytes(installed: Path) -> None:
    [packages] = installed.glob("lib/python*/site-packages")
    assert size_mb(installed) <= MOST_MB
    assert not [name for name in ("pyspark", "pyarrow", "pandas", "airflow") if (packages / name).exists()]


def test_the_page_has_a_size_for_each_extra() -> None:
    assert set(figures()) == {"", "local", "connect", "spark", "quality", "airflow", "all"}


@pytest.mark.parametrize(
    "extra", [pytest.param("", id="base"), pytest.param("spark", id="spark"), pytest.param("all", id="all")]
)
def test_an_install_takes_what_the_page_says(wheel: Path, environment: Path, extra: str) -> None:
    install(environment, f"topicops[{extra}] @ {wheel.as_uri()}")
    assert size_mb(environment) == pytest.approx(figures()[extra], rel=0.1)


def test_with_local_there_is_a_cluster_of_this_machine_and_it_takes_what_the_page_says(
    wheel: Path, local_wheel: Path, environment: Path, tmp_path: Path
) -> None:
    install(environment, f"topicops[local] @ {wheel.as_uri()}", f"topicops-local @ {local_wheel.as_uri()}")
    assert size_mb(environment) == pytest.approx(figures()["local"], rel=0.1)
    shown = run(environment / "bin/topicops", "local", "status", cwd=tmp_path, status=1)
    assert shown == "No local cluster was started here; start one: topicops local up\n"
    assert {"topicops_local/releases/kafka-3.9.2.sha256"} <= set(ZipFile(local_wheel).namelist())


def test_with_the_client_of_connect_topics_are_compared_on_a_server_without_a_java_and_it_takes_what_the_page_says(
    wheel: Path, environment: Path, tmp_path: Path
) -> None:
    install(environment, f"topicops[connect] @ {wheel.as_uri()}")
    assert size_mb(environment) == pytest.approx(figures()["connect"], rel=0.1)
    compare, no_java = ("-m", "fixtures.diff_worlds", "20"), str(environment / "bin")
    with connect_server(tmp_path) as server:
        shown = run(environment / "bin/python", *compare, cwd=ROOT / "tests", PATH=no_java, **server.variables)
    assert json.loads(shown)["differing"] == []
    said = run(environment / "bin/python", *compare, cwd=ROOT / "tests", status=1, PATH=no_java)
    assert "only the client of Spark Connect is installed (pyspark-client)" in said.splitlines()[-1]


def test_the_base_install_validates_writes_files_and_gets_as_far_as_the_cluster(
    installed: Path, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "topics", tmp_path / "topics")
    topicops = installed / "bin/topicops"
    assert run(topicops, "--version", cwd=tmp_path) == f"{__version__}\n"
    assert "0 errors" in run(topicops, "validate", cwd=tmp_path)
    assert "written" in run(topicops, "dags", "--write", "dags", cwd=tmp_path)
    assert "AIRFLOW_CONN_KAFKA_LOCAL" in run(
        topicops, "plan", "--environment", "local", "--engine", "python", cwd=tmp_path, status=1
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("plan --environment local --engine spark", "Spark is not installed: run pip install 'topicops[spark]'"),
        ("spark archive", "Spark is not installed: run pip install 'topicops[spark]'"),
        ("local up", "The local cluster is not installed: run pip install 'topicops[local]'"),
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
        "topicops/features/files/authoring/first_files/topicops_dags.py",
        "topicops/made_schemas/topic.v1.json",
        "topicops/made_schemas/outputs/report.v1.json",
    } <= names
