"""How the files of tests are shared out among the workers of ``make test``."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.workers import SECONDS, UNITS, LongestFirst

TESTS = Path(__file__).parents[1]


class Planned(LongestFirst):
    """Shares nothing out: it has no workers."""

    def __init__(self) -> None:
        pass

    def unit_of(self, test: str) -> str:
        return self._split_scope(test)


@pytest.mark.parametrize("file", sorted(SECONDS.keys() - UNITS.keys()))
def test_a_long_file_exists_and_is_a_unit_of_its_own(file: str) -> None:
    assert (TESTS / file).is_file()
    assert Planned().unit_of(f"tests/{file}::test_it[a::b]") == f"tests/{file}"


@pytest.mark.parametrize(
    ("file", "unit"),
    [
        ("cluster/test_scenarios.py", "three brokers"),
        pytest.param("cluster/faults/test_killed_tool.py", "three brokers", id="three brokers, by another fixture"),
        ("cluster/test_rights.py", "guarded broker"),
        pytest.param("airflow/test_real_runs.py", "three brokers", id="three brokers, Spark and Airflow's database"),
        ("edges/spark/test_diff.py", "Spark"),
        ("airflow/test_dag_runs.py", "Airflow"),
        ("cluster/test_kraft.py", "KRaft"),
    ],
)
def test_files_that_share_a_server_are_one_unit(file: str, unit: str) -> None:
    assert Planned().unit_of(f"tests/{file}::test_it") == unit
