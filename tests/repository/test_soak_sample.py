"""The sample of long tests that every change is tried with, and how files are shared out among the workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from fixtures.soak_sample import BUDGET_S, UNKNOWN_S, Durations, choose, file_of, known_durations
from fixtures.workers import SECONDS, LongestFirst

ROOT = Path(__file__).parents[2]
SEEDS = [f"{number:07x}" for number in range(1500)]
KNOWN = known_durations()
TESTS = sorted(KNOWN.tests)


@pytest.fixture(scope="module")
def samples() -> list[list[str]]:
    return [choose(TESTS, KNOWN, seed=seed) for seed in SEEDS]


def seconds_of(chosen: Sequence[str]) -> float:
    return sum(KNOWN.tests[test] for test in chosen) + sum(KNOWN.starts[file] for file in {*map(file_of, chosen)})


def test_the_seed_alone_decides() -> None:
    assert choose(TESTS, KNOWN, seed="a930888") == choose(TESTS[::-1], KNOWN, seed="a930888")


def test_other_seeds_choose_other_tests(samples: Sequence[Sequence[str]]) -> None:
    assert len({*map(tuple, samples)}) > 0.99 * len(SEEDS)  # two long tests fill a sample, so two seeds may agree


def test_every_sample_keeps_to_the_budget_and_makes_use_of_it(samples: Sequence[Sequence[str]]) -> None:
    taken = [*map(seconds_of, samples)]

    assert max(taken) <= BUDGET_S
    assert min(taken) > 0.9 * BUDGET_S


def test_every_test_that_fits_into_the_budget_is_chosen_by_some_seed(samples: Sequence[Sequence[str]]) -> None:
    fitting = {test for test in TESTS if KNOWN.of(test, with_start=True) <= BUDGET_S}

    assert {*chain.from_iterable(samples)} == fitting


def test_a_test_that_is_not_in_the_table_counts_with_a_guess() -> None:
    new = [f"tests/test_new.py::test_{number}" for number in range(100)]

    assert len(choose(new, Durations({}, {}), seed="a", budget_s=300)) == 300 / UNKNOWN_S


def test_the_table_names_tests_that_there_are() -> None:
    gone = [test for test in TESTS if f"def {name_of(test)}(" not in (ROOT / file_of(test)).read_text(encoding="utf-8")]

    assert gone == []


def name_of(test: str) -> str:
    return test.partition("::")[2].partition("[")[0]


def test_pytest_takes_soak_tests_alone_and_names_them_with_the_seed(tmp_path: Path) -> None:
    count = int(BUDGET_S / UNKNOWN_S)
    long = "import pytest\n" + "".join(f"@pytest.mark.soak\ndef test_{n}(): ...\n" for n in range(2 * count))
    (tmp_path / "test_long.py").write_text(f"{long}def test_short(): ...\n", encoding="utf-8")

    ended = collected_in(tmp_path, "--soak-sample=a930888")

    lines = ended.stdout.splitlines()
    collected = [line for line in lines if line.startswith("test_long.py::")]
    chosen = choose([f"test_long.py::test_{n}" for n in range(2 * count)], Durations({}, {}), seed="a930888")
    assert sorted(collected) == sorted(chosen)
    assert len(chosen) == count
    assert [line.removeprefix("chosen: ") for line in lines if line.startswith("chosen: ")] == collected
    assert any("the same again: make soak-sample SEED=a930888" in line for line in lines)


def test_an_empty_seed_is_refused_and_does_not_take_all_long_tests(tmp_path: Path) -> None:
    ended = collected_in(tmp_path, "--soak-sample=")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--soak-sample needs a seed" in ended.stderr


def collected_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Let pytest list the tests of a folder, with the settings and the samples of this project."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "fixtures.soak_sample", "--collect-only"]
    path = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    return subprocess.run(
        [*command, "-q", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


# ---- How the files of tests are shared out among the workers of ``make test`` ----


class Planned(LongestFirst):
    """Shares nothing out: it has no workers."""

    def __init__(self) -> None:
        pass

    def unit_of(self, test: str) -> str:
        return self._split_scope(test)


def test_every_long_file_and_test_of_the_list_exists() -> None:
    parts = [test.partition("::") for test in SECONDS]

    files = [ROOT / "tests" / file for file, _, _ in parts]

    assert [file for file in files if not file.is_file()] == []
    assert [name for file, (_, _, name) in zip(files, parts, strict=True) if name not in file.read_text("utf-8")] == []


def test_a_long_file_without_a_server_is_a_unit_of_its_own() -> None:
    assert (
        Planned().unit_of("tests/steps/applying/test_simulated.py::test_it[a::b]")
        == "tests/steps/applying/test_simulated.py"
    )


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
