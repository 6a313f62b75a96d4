"""Every accepted case of the table of files, formatted: the same topics are desired, and the same is warned of."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from topicops.cli import run
from topicops.edges.specs.reader import read_tree
from topicops.steps.specs.validate import validate

TABLE = Path(os.environ.get("TOPICOPS_BAD_INPUTS") or Path(__file__).parents[1] / "data" / "bad-inputs.json")
CORPUS = json.loads(TABLE.read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = CORPUS["cases"]
ACCEPTED = [case for case in CASES if not any(found["severity"] == "error" for found in case["expect"])]
REFUSED = [case for case in CASES if case not in ACCEPTED]
NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def write_texts(folder: Path, files: Mapping[str, Any]) -> None:
    """The files of a case that are text; None takes a file away."""
    for name, entry in {**{path: {"text": text} for path, text in CORPUS["base"].items()}, **files}.items():
        if entry is not None and "text" in entry:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(entry["text"].encode())


def texts_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in folder.rglob("*.yaml")}


def answer(folder: Path) -> tuple[str | None, object, list[tuple[str, str, str]]]:
    """Return the digest of what is desired, the environment without places, and what is warned of."""
    validated = validate(read_tree(folder / "topics"), environment="local", now=NOW)
    found = sorted((d.file, d.code, d.summary) for d in validated.diagnostics)
    environment = validated.environment.spec if validated.environment else None
    return validated.desired.digest if validated.desired else None, environment, found


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in ACCEPTED])
def test_formatting_keeps_what_is_desired(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_texts(tmp_path, case["files"])
    monkeypatch.chdir(tmp_path)
    before = answer(tmp_path)

    assert run(["fmt"]) == 0

    assert answer(tmp_path) == before
    assert before[0] is not None
    capsys.readouterr()
    assert (run(["fmt", "--check"]), capsys.readouterr().out) == (0, "")


def test_files_with_problems_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = []
    for case in REFUSED:
        folder = tmp_path / case["id"]
        write_texts(folder, case["files"])
        monkeypatch.chdir(folder)
        before = texts_of(folder)
        run(["fmt"])
        after = texts_of(folder)
        faulty = {found["file"] for found in case["expect"] if found["severity"] == "error"}
        touched += [(case["id"], file) for file in faulty & before.keys() if after[file] != before[file]]

    assert touched == []
    assert len(REFUSED) > len(ACCEPTED)
