"""The command that writes files in one way: what it changes, what it only lists, and what it leaves alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fixtures.spec_folder import topic, write
from topicops.cli import run

UNTIDY = topic("web.clicks", "spec: {partitions: '12'}\n").replace("kind: Topic\n", "kind:   Topic   \n")
TIDY = topic("web.clicks", "spec: {partitions: 12}\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {"web/web.clicks.yaml": UNTIDY, "web/web.tidy.yaml": topic("web.tidy")}
    write(tmp_path / "topics", {**files, "web/web.bad.yaml": topic("web.bad", "spec: {partition: 1}  \n")})
    return tmp_path / "topics"


def test_files_are_rewritten_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "web/web.clicks.yaml").chmod(0o640)

    assert run(["fmt"]) == 0

    said = capsys.readouterr()
    assert said.out == "topics/web/web.clicks.yaml\n"
    assert "left alone: topics/web/web.bad.yaml:4: TOP201" in said.err
    assert said.err.endswith("1 of 4 files changed, 1 left alone\n")
    assert (folder / "web/web.clicks.yaml").read_text() == TIDY
    assert stat.S_IMODE((folder / "web/web.clicks.yaml").stat().st_mode) == 0o640


def test_check_lists_what_would_change_and_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fmt", "--check"]) == 1
    assert capsys.readouterr().out == "topics/web/web.clicks.yaml\n"
    assert (folder / "web/web.clicks.yaml").read_text() == UNTIDY

    run(["fmt"])

    assert run(["fmt", "--check"]) == 0


def test_one_file_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untidy = topic("web.tidy").replace("spec: {}", "spec:   {}")
    write(folder, {"web/web.tidy.yaml": untidy})

    assert run(["fmt", "topics/web/web.tidy.yaml"]) == 0

    assert capsys.readouterr().out == "topics/web/web.tidy.yaml\n"
    assert (folder / "web/web.clicks.yaml").read_text() == UNTIDY


def test_a_folder_that_is_not_there_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fmt", "elsewhere"]) == 1
    assert "elsewhere: no such folder or file" in capsys.readouterr().err


def test_our_own_topics_are_written_in_that_way() -> None:
    assert run(["fmt", "--check", str(Path(__file__).parents[4] / "topics")]) == 0


def test_several_files_and_a_domain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"pay/pay.a.yaml": UNTIDY.replace("web.clicks", "pay.a"), "pay/pay.b.yaml": topic("pay.b")})
    assert run(["fmt", "--check", "topics/pay", "topics/web/web.clicks.yaml"]) == 1
    assert capsys.readouterr().out == "topics/pay/pay.a.yaml\ntopics/web/web.clicks.yaml\n"
    assert run(["fmt", "--check", "topics/pay/pay.b.yaml", "topics/web/web.tidy.yaml"]) == 0
