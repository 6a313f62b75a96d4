"""topicops goes into the packages of each Airflow that it claims, and of those that a cloud pins: nothing is lifted.

They ask a package index: `make test-installs`. The floors of `pyproject.toml` decide.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fixtures.airflow_sets import MANAGED, RELEASES, ROOT, AirflowSet, releases, resolved

SETS = {**RELEASES, **MANAGED}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("found", SETS.values(), ids=list(SETS))
def test_topicops_goes_into_the_packages_of_an_airflow(found: AirflowSet, tmp_path: Path) -> None:
    lines = resolved(found, tmp_path)
    chosen = releases(lines)
    allowed = {"apache-airflow": found.airflow, **found.pins}
    if found.as_of:
        allowed |= releases(tmp_path / "airflow.txt")
    assert {name: release for name, release in chosen.items() if allowed.get(name, release) != release} == {}
    assert {"confluent-kafka", "kafka-python", "kazoo", "great-expectations", "pyspark"} <= chosen.keys()


def test_the_workflow_tries_each_release_and_nothing_else() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/airflow.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["airflow"] == [*RELEASES]
