"""Each gate can fail: what it runs ends badly, or has nothing to judge, and then the gate ends badly too."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FIRST_FILES = ROOT / "plugins/topicops/features/files/authoring/first_files"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TABLES = sorted((ROOT / "tests/data").glob("*.json"))
COMMANDS: Mapping[str, int] = {
    "bench": 1,
    "check": 7,
    "demo": 1,
    "format": 2,
    "lock": 4,
    "mutations": 1,
    "pages": 1,
    "releases-table": 2,
    "simulate": 1,
    "site": 1,
    "soak": 1,
    "soak-sample": 1,
    "test": 1,
    "test-airflow": 1,
    "test-airflow-release": 1,
    "test-installs": 1,
    "test-ci": 1,
    "test-cases": 1,
    "test-cluster": 1,
    "test-edges": 1,
    "test-fast": 1,
    "test-python": 1,
    "test-versions": 1,
}
"""By target of the Makefile, how many programs of ``.venv`` it runs."""
JUDGES_NOTHING = {"clean", "compose-secrets", "help", "java", "pin-images", "setup"}
"""``tests/repository/test_compose.py`` has the targets of docker."""
PROGRAMS = ("deptry", "lint-imports", "mkdocs", "mypy", "python", "ruff", "topicops", "uv")
FAILURE = 7
STAND_IN = f"""\
#!/bin/sh
echo "$0 $*" >> "$CALLS"
[ "$(wc -l < "$CALLS")" -ne "${{FAILS:-0}}" ] || exit {FAILURE}
"""
"""Notes its call, and fails if it is the one that shall fail."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a gate called, and how it ended."""

    status: int
    calls: Sequence[str]
    said: str


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A command with stand-ins for all that it runs."""

    folder: Path
    command: Sequence[str]

    def run(self, *, fails: int = 0) -> Ended:
        """Run it; the call of that number fails."""
        calls = self.folder / "calls"
        calls.write_text("", encoding="utf-8")
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        variables = {"PATH": path, "HOME": str(self.folder), "CALLS": str(calls), "FAILS": str(fails)}
        ended = subprocess.run(
            self.command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
        return Ended(
            status=ended.returncode,
            calls=calls.read_text(encoding="utf-8").splitlines(),
            said=ended.stdout + ended.stderr,
        )


def stand_ins(folder: Path, *names: str) -> None:
    (folder / "bin").mkdir()
    for name in names:
        program = folder / "bin" / name
        program.write_text(STAND_IN, encoding="utf-8")
        program.chmod(0o755)


@pytest.mark.parametrize(("target", "programs"), COMMANDS.items())
def test_a_target_of_make_fails_with_each_program_that_it_runs(target: str, programs: int, tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "requirements-uv.txt"):
        (tmp_path / name).write_text("# a line\n", encoding="utf-8")
    stand_ins(tmp_path, *PROGRAMS)
    gate = Gate(folder=tmp_path, command=["make", "--silent", "--old-file=setup", target, "BIN=bin", "INSTALLED="])

    ended = gate.run()
    assert (ended.status, len(ended.calls)) == (0, programs), ended.said
    for number in range(1, programs + 1):
        ended = gate.run(fails=number)
        assert (ended.status != 0, len(ended.calls)) == (True, number), ended.said


def test_each_target_of_make_is_one_that_is_tried_here_or_judges_nothing() -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert {*targets.split()} == COMMANDS.keys() | JUDGES_NOTHING


def test_ci_ends_with_the_status_of_the_step_that_fails_and_names_the_tests_that_failed(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    stand_ins(tmp_path, "make", "chromium", "chromedriver")
    gate = Gate(folder=tmp_path, command=["bash", ".ci/run"])
    steps = ["check", "test", "test-ci", "demo", "soak-sample"]

    ended = gate.run()
    assert (ended.status, [call.split()[-1] for call in ended.calls]) == (0, steps), ended.said
    for number in range(1, len(steps) + 1):
        ended = gate.run(fails=number)
        assert (ended.status, len(ended.calls)) == (FAILURE, number), ended.said


@pytest.mark.parametrize(
    ("noted", "said"),
    [
        pytest.param('{"tests/test_one.py::test_two": true}', "\nfailed:\ntests/test_one.py::test_two\n", id="a test"),
        pytest.param("no JSON", "JSONDecodeError", id="a file that cannot be read"),
    ],
)
def test_ci_fails_whatever_it_says_of_the_tests_that_failed(noted: str, said: str, tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    stand_ins(tmp_path, "chromium", "chromedriver")
    make = tmp_path / "bin/make"
    file = ".pytest_cache/v/cache/lastfailed"
    make.write_text(f"#!/bin/sh\nmkdir -p $(dirname {file})\necho '{noted}' > {file}\nexit 2\n", encoding="utf-8")
    make.chmod(0o755)

    ended = Gate(folder=tmp_path, command=["bash", ".ci/run"]).run()
    assert ended.status != 0
    assert said in ended.said


COMMANDS_OF_JOBS: Mapping[str, Sequence[str]] = {
    "validate": ["validate"],
    "plan": ["status", "plan", "comment", "status"],
    "unplanned": ["status"],
    "apply": ["trigger", "report"],
}
"""By job, the commands of ``topicops ci`` that it runs."""
JOBS = [f"action.yml {job}" for job in COMMANDS_OF_JOBS]
JOBS += [f"gitlab-ci.yml {job}" for job in COMMANDS_OF_JOBS if job != "unplanned"]
STOPS_AT_ONCE = {("gitlab-ci.yml plan", 1)}
"""Where nothing comes after the command that failed; GitLab shows the job as failed, and needs no status."""


@pytest.mark.parametrize("job", JOBS)
def test_a_job_of_the_forge_fails_with_each_command_and_runs_the_others(job: str, tmp_path: Path) -> None:
    file, name = job.split()
    venv = tmp_path / "topicops-venv"
    venv.mkdir()
    stand_ins(tmp_path, "topicops", "git")
    (venv / "bin").symlink_to(tmp_path / "bin")
    given = f"export COMMAND={name} RUNNER_TEMP={tmp_path} TOPICS=topics FOLDER=folder TOPICOPS_MERGE_REQUEST=1\n"
    gate = Gate(folder=tmp_path, command=["bash", "-eo", "pipefail", "-c", given + script_of(file, name)])

    ended = gate.run()
    ran = [number for number, call in enumerate(ended.calls, 1) if "/topicops ci " in call]
    assert [ended.calls[number - 1].split()[2] for number in ran] == COMMANDS_OF_JOBS[name], ended.said
    assert ended.status == 0
    for order, number in enumerate(ran, 1):
        failed = gate.run(fails=number)
        assert failed.status == FAILURE
        assert len(failed.calls) == (number if (job, order) in STOPS_AT_ONCE else len(ended.calls))


def script_of(file: str, name: str) -> str:
    if file == "action.yml":
        steps = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["runs"]["steps"]
        return str(next(step["run"] for step in steps if step.get("name") == "Run"))
    text = (FIRST_FILES / file).read_text(encoding="utf-8").replace("@", "")
    _, jobs = yaml.safe_load_all(text)
    return "\n".join(jobs[name]["script"])


def test_no_workflow_lets_a_step_fail_unseen() -> None:
    workflows = [*(ROOT / ".github/workflows").glob("*.yml"), *FIRST_FILES.glob("*.y*ml")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in (*workflows, ROOT / "action.yml")}
    assert len(texts) > 4
    allowed = re.compile(r"continue-on-error|allow_failure|\|\| *(true|:)|set \+e")
    assert {name: found for name, text in texts.items() if (found := allowed.findall(text))} == {}


def pytest_of(tests: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a folder of their own with the settings of this project."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    (folder / "tests/test_it.py").write_text(tests, encoding="utf-8")
    quick = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio"]
    command = [sys.executable, "-m", "pytest", *quick, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


WITHOUT_A_CASE = """
import pytest

@pytest.mark.parametrize("case", [])
def test_each(case): ...

def test_another(): ...
"""
DIES_IN_A_THREAD = """
import threading

def test_one():
    helper = threading.Thread(target=lambda: 1 // 0)
    helper.start()
    helper.join()
"""


@pytest.mark.parametrize(
    ("tests", "said", "status"),
    [
        (WITHOUT_A_CASE, "Empty parameter set in 'test_each'", pytest.ExitCode.INTERRUPTED),
        (DIES_IN_A_THREAD, "ZeroDivisionError", pytest.ExitCode.TESTS_FAILED),
    ],
    ids=["a test without a case", "a helper that dies in its thread"],
)
def test_what_would_pass_unseen_fails(tests: str, said: str, status: int, tmp_path: Path) -> None:
    ended = pytest_of(tests, tmp_path)
    assert said in ended.stdout
    assert ended.returncode == status


@pytest.mark.parametrize(
    ("options", "status"),
    [
        pytest.param(("-k", "no_such_name"), pytest.ExitCode.NO_TESTS_COLLECTED, id="a name"),
        pytest.param(("-m", "soak"), pytest.ExitCode.NO_TESTS_COLLECTED, id="a marker that no test has"),
        pytest.param(("-n", "1", "-k", "no_such_name"), pytest.ExitCode.NO_TESTS_COLLECTED, id="a name, in workers"),
        pytest.param(("-m", "no_such_marker"), pytest.ExitCode.USAGE_ERROR, id="a marker that does not exist"),
    ],
)
def test_a_run_that_selects_no_test_does_not_pass(options: Sequence[str], status: int, tmp_path: Path) -> None:
    assert pytest_of("def test_one(): ...\n", tmp_path, *options).returncode == status


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_no_table_of_the_tests_is_empty(table: Path) -> None:
    content = json.loads(table.read_text(encoding="utf-8"))
    assert content
    assert list(empty_parts(content)) == []


def empty_parts(content: Any) -> Iterator[str]:
    parts = content.items() if isinstance(content, Mapping) else enumerate(content)
    return (str(name) for name, part in parts if isinstance(part, dict | list) and not part)


def test_the_core_may_import_nothing_that_stays_out_of_the_top_of_modules() -> None:
    """Else an import inside a function would be seen by neither the linter nor the contracts."""
    banned = PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    contracts = {contract["name"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    assert {*banned} <= {*contracts["The core knows no outside system"]["forbidden_modules"]}
    assert contracts["Imports go one way"]["exhaustive"]
