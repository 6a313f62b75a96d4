"""`topicops plan PLAN`: a saved plan in each of its forms, without any other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.rich_plan import resealed, rich_plan
from topicops.cli import run
from topicops.model.plans.plan_file import plan_to_json
from topicops.steps.reporting.plan_document import plan_markdown, plan_text


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a plan in an otherwise empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPICOPS_HOME", str(tmp_path / "home"))
    path = Path("plan.json")
    path.write_text(plan_to_json(rich_plan()), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], plan_text(rich_plan()), id="text unless said otherwise"),
        pytest.param(["--format", "text"], plan_text(rich_plan()), id="text"),
        pytest.param(["--format", "markdown"], plan_markdown(rich_plan()), id="markdown"),
        pytest.param(["--format", "json"], plan_to_json(rich_plan()), id="json"),
    ],
)
def test_a_saved_plan_is_shown_as_it_was_when_it_was_made(
    saved: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    assert run(["plan", str(saved), *options]) == 0
    assert capsys.readouterr().out.rstrip("\n") == expected.rstrip("\n")
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_what_a_newer_minor_version_adds_is_passed_over(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved.write_text(resealed(saved.read_text(), format_version="1.42", novelty=["x"]))
    assert run(["plan", str(saved)]) == 0
    assert capsys.readouterr().out.rstrip("\n") == plan_text(rich_plan()).rstrip("\n")


def test_another_major_version_is_refused_with_what_to_do(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved.write_text(resealed(saved.read_text(), format_version="2.0"))
    assert run(["plan", str(saved)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "plan.json: the plan has format version 2.0" in said.err
    assert "plan again with this program, or read the file with the program that wrote it" in said.err


def test_a_damaged_plan_is_refused_by_its_name(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved.write_text(saved.read_text(encoding="utf-8").replace('"held"', '"run"', 1), encoding="utf-8")
    assert run(["plan", str(saved)]) == 1
    assert "plan.json: the plan's checksum is wrong" in capsys.readouterr().err


def test_a_saved_plan_takes_no_option_that_would_change_it(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(saved), "--only", "a"]) == 1
    assert "plan.json is printed as it is: leave the other options out" in capsys.readouterr().err


def test_a_missing_plan_is_one_line_with_how_to_make_it(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "other.json"]) == 1
    assert "other.json: no such plan; make one with `topicops plan --out other.json`" in capsys.readouterr().err
