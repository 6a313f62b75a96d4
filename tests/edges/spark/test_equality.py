"""Every kind of Spark gives what plain Python gives: deltas of many worlds in one frame, and plans to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.diff_worlds import RANDOM_WORLDS, TOPICS_PER_WORLD
from fixtures.plan_bytes import CLUSTERS, write_topics
from fixtures.spark_servers import SparkServer, connect_server, master_with_workers, printed_by, run_on

KINDS = ("local[2]", "local-cluster[2,1,1024]", "spark://", "sc://")
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module", params=KINDS)
def spark_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkServer | str]:
    match request.param:
        case "spark://":
            with master_with_workers(tmp_path_factory.mktemp("master")) as server:
                yield server
        case "sc://":
            with connect_server(tmp_path_factory.mktemp("connect")) as server:
                yield server
        case setting:
            yield setting


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("specs")
    write_topics(folder)
    return folder


def made_plans(spark_place: SparkServer | str, specs: Path, name: str, engine: str) -> dict[str, list[object]]:
    found: dict[str, list[object]] = json.loads(
        printed_by(["-m", "fixtures.plan_bytes", str(specs), name, engine], spark_place)
    )
    return found


@pytest.fixture(scope="module")
def plain(specs: Path) -> list[object]:
    return made_plans("local", specs, "plain", "python")["plans"]


@pytest.fixture(scope="module")
def local_quality(specs: Path) -> list[object]:
    return made_plans("local[1]", specs, "local", "spark")["quality"]


def test_deltas_of_many_worlds_in_one_frame_are_those_of_plain_python(spark_place: SparkServer | str) -> None:
    found = json.loads(printed_by(["-m", "fixtures.diff_worlds", str(TOPICS_PER_WORLD)], spark_place))
    assert found["differing"] == []
    assert found["worlds"] > RANDOM_WORLDS


def test_plans_and_quality_reports_are_the_same_to_the_byte(
    spark_place: SparkServer | str, specs: Path, plain: list[object], local_quality: list[object]
) -> None:
    word = spark_place if isinstance(spark_place, str) else spark_place.address.partition("://")[0]
    found = made_plans(spark_place, specs, word, "spark")
    assert found["plans"] == plain
    assert len(plain) == CLUSTERS
    assert found["quality"] == local_quality


NO_PYTHON = "/no/such/python"
USES_PYTHON = """
from topicops.features.spark.edges.session import spark_session
with spark_session() as spark:
    spark.range(3).mapInArrow(lambda batches: batches, "id long").count()
"""


def test_executors_without_python_and_without_our_package_run_the_diff_and_the_rules(
    tmp_path: Path, specs: Path, plain: list[object], local_quality: list[object]
) -> None:
    with master_with_workers(tmp_path) as server:
        refused = run_on(["-c", USES_PYTHON], server, PYSPARK_PYTHON=NO_PYTHON)
        program = ["-m", "fixtures.plan_bytes", str(specs), "bare", "spark"]
        found = json.loads(printed_by(program, server, PYSPARK_PYTHON=NO_PYTHON))
    assert f'Cannot run program "{NO_PYTHON}"' in refused.stderr
    assert (found["plans"], found["quality"]) == (plain, local_quality)
