"""The table of hostile and harmless files, run through the command's own entry."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from topicops.cli import run

pytestmark = pytest.mark.cases

TABLE = Path(os.environ.get("TOPICOPS_BAD_INPUTS") or Path(__file__).parents[1] / "data" / "bad-inputs.json")
CORPUS = json.loads(TABLE.read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = CORPUS["cases"]
IN_A_PROCESS_OF_THEIR_OWN = CASES[:: max(1, len(CASES) // 6)][:6]
ARGUMENTS = ["validate", "--environment", "local", "--format", "json"]
Ended = subprocess.CompletedProcess[str]
COMPARED = ("code", "severity", "file", "line", "column")


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Lay a case's files over the base; None takes a file away."""
    base = {path: {"text": text} for path, text in CORPUS["base"].items()}
    (folder / "topics").mkdir()
    for name, entry in {**base, **files}.items():
        if entry is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_entry(path, entry)


def write_entry(path: Path, entry: Mapping[str, Any]) -> None:
    match entry:
        case {"symlink": target}:
            path.symlink_to(target)
        case {"fifo": _}:
            os.mkfifo(path)
        case {"base64": encoded}:
            path.write_bytes(base64.b64decode(encoded))
        case {"repeat": [prefix, unit, count, suffix]}:
            path.write_bytes((prefix + unit * count + suffix).encode())
        case {"text": text}:
            path.write_bytes(text.encode())


def expected_exit(case: Mapping[str, Any]) -> int:
    return int(any(expected["severity"] == "error" for expected in case["expect"]))


def shown(output: str) -> list[dict[str, Any]]:
    return [{name: found[name] for name in COMPARED} for found in json.loads(output)["diagnostics"]]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_a_case_of_the_table_is_answered_as_expected(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    write_files(tmp_path, case["files"])
    monkeypatch.chdir(tmp_path)

    status = run(ARGUMENTS)

    out, err = capsys.readouterr()
    record_property("section", case.get("group", ""))
    record_property("answer", "refused" if expected_exit(case) else "accepted")
    assert (shown(out), status, err) == (case["expect"], expected_exit(case), ""), case["why"]


@pytest.fixture(scope="module")
def answers_of_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Future[Ended]]]:
    """As many at a time as there are processors: a start takes much longer than an answer."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        yield {
            case["id"]: threads.submit(answer_of_a_process, case, tmp_path_factory.mktemp(case["id"]))
            for case in IN_A_PROCESS_OF_THEIR_OWN
        }


def answer_of_a_process(case: Mapping[str, Any], folder: Path) -> Ended:
    write_files(folder, case["files"])
    command = [sys.executable, "-c", "from topicops.__main__ import main; main()", *ARGUMENTS]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in IN_A_PROCESS_OF_THEIR_OWN])
def test_a_process_answers_as_the_entry_does(
    case: dict[str, Any], answers_of_processes: Mapping[str, Future[Ended]]
) -> None:
    ended = answers_of_processes[case["id"]].result()

    assert (shown(ended.stdout), ended.returncode, ended.stderr) == (case["expect"], expected_exit(case), "")
