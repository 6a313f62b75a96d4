"""What `topicops validate` prints, and what it must not do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import builders
from fixtures.spec_folder import topic, write
from topicops.cli import run
from topicops.edges.specs.open_files import source_lines
from topicops.model.codes import Code
from topicops.model.specs.diagnostics import Diagnostic
from topicops.steps.reporting.diagnostics_text import annotation, diagnostics_json, diagnostics_text

TOPICS = Path(__file__).parents[2] / "topics"
BAD = "apiVersion: topicops/v1\nkind: Topic\nmetadata:\n  name: clicks\n  owner: me\nspec:\n  partitions: '\x1b[31m'\n"


def diagnostic(
    *, summary: str = "no", remedy: str = "", file: str = "topics/web/a.yaml", end_line: int = 3
) -> Diagnostic:
    found = builders.diagnostic(summary, code=Code.OUT_OF_RANGE, file=file)
    return replace(found, end_line=end_line, end_column=9, help=remedy)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with one topic."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics" / "web").mkdir(parents=True)
    (tmp_path / "topics" / "web" / "clicks.yaml").write_text(BAD.replace("'\x1b[31m'", "010"))
    return tmp_path


def test_text_shows_the_line_and_a_caret_below_the_characters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["validate"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[0].startswith("topics/web/clicks.yaml:7:15: error TOP204: ")
    assert lines[1] == "  7 |   partitions: 010"
    assert lines[2].index("^") == lines[1].index("010")
    assert lines[2].count("^") == 3
    assert lines[3].startswith("  help: ")


@pytest.mark.parametrize("is_there", [True, False])
def test_an_empty_folder_is_no_good_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_there: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ("topics/web" if is_there else "topics")).mkdir(parents=True)
    run(["validate"])
    assert capsys.readouterr().out == "0 files: nothing was checked\n"


def test_the_examples_have_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(TOPICS), "--environment", "local", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["diagnostics"] == []


def test_json_names_every_field(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["validate", "--format", "json"])

    answer = json.loads(capsys.readouterr().out)
    (found,) = answer["diagnostics"]
    assert (answer["format_version"], answer["files"]) == ("1.0", 1)
    assert {name: found[name] for name in found if name not in ("summary", "help")} == {
        "code": "TOP204",
        "severity": "error",
        "file": "topics/web/clicks.yaml",
        "line": 7,
        "column": 15,
        "end_line": 7,
        "end_column": 18,
        "note": None,
    }


def test_two_places_that_do_not_go_together_have_a_caret_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BAD.replace("'\x1b[31m'", "6\n  replicationFactor: 2\n  configs:\n    min.insync.replicas: 4")
    (folder / "topics" / "web" / "clicks.yaml").write_text(text)

    run(["validate"])

    assert capsys.readouterr().out.splitlines()[:-1] == [
        "topics/web/clicks.yaml:10:26: error TOP308: min.insync.replicas 4 is above the replication factor 2",
        "  10 |     min.insync.replicas: 4",
        "                                ^",
        "  topics/web/clicks.yaml:8:22: note: the replication factor",
        "  8 |   replicationFactor: 2",
        "                           ^",
        "  help: write 1: brokers take 4 as 2; one replica away, and acks=all fails",
        "",
    ]


def test_problems_come_by_file_line_column_and_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "topics" / "web" / "a.yaml").write_text("spec: {b: 1, a: 2}\n")

    run(["validate", "--format", "json"])

    found = json.loads(capsys.readouterr().out)["diagnostics"]
    places = [(d["file"], d["line"], d["column"], d["code"]) for d in found]
    assert len(places) == 6
    assert places == sorted(places)


@pytest.mark.parametrize("form", ["text", "github"])
def test_count_and_time_stand_at_the_end(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["validate", "--format", form])

    assert re.fullmatch(r"1 file: 1 error, 0 warnings in \d+\.\d s", capsys.readouterr().out.splitlines()[-1])


def test_an_annotation_cannot_be_broken_by_what_a_file_says() -> None:
    text = annotation(diagnostic(summary="100%\r\n::error::x", remedy="a\nb", file="topics/a,b:c%.yaml"))

    assert text == (
        "::error file=topics/a%2Cb%3Ac%25.yaml,line=3,endLine=3,col=5,endColumn=9,title=TOP205"
        "::100%25\\r\\n::error::x%0Aa\\nb"
    )


def test_an_annotation_over_several_lines_has_no_columns() -> None:
    assert annotation(diagnostic(end_line=5)).startswith(
        "::error file=topics/web/a.yaml,line=3,endLine=5,title=TOP205::"
    )


@pytest.mark.parametrize("form", ["text", "github", "json"])
def test_no_control_character_reaches_an_output(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    escaped = BAD.replace("'\x1b[31m'", '"\\e[31m\\u202e\\r"')
    (folder / "topics" / "web" / "clicks.yaml").write_text(escaped)

    assert run(["validate", "--format", form]) == 1

    out = capsys.readouterr().out
    assert [character for character in out if not (character.isprintable() or character == "\n")] == []


def test_a_forbidden_character_is_shown_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "topics" / "web" / "clicks.yaml").write_text(BAD)

    run(["validate"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  7 |   partitions: '\\x1b[31m'"
    assert lines[2] == " " * lines[1].index("\\x1b") + "^^^^"


def test_renderers_escape_what_they_are_given() -> None:
    assert "\x1b" not in diagnostics_text([diagnostic(summary="\x1b[2J", remedy="\x9b")], source_lines)
    assert (
        "\x1b"
        not in json.loads(diagnostics_json([diagnostic(summary="\x1b[2J")], files=1))["diagnostics"][0]["summary"]
    )


@pytest.mark.parametrize("arguments", [["nowhere"], ["--environment", "nowhere"]])
def test_what_is_not_there_is_one_line(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", *arguments]) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("topicops: ")
    assert err.count("\n") == 1


def test_the_folder_above_the_topics_is_answered_with_the_right_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "topics" / "environments").mkdir()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    assert run(["validate", "."]) == 1

    assert capsys.readouterr().err == "topicops: .: this folder is above the topics; did you mean topics?\n"


@pytest.fixture
def teams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two domains, each with a file that is valid and one that is not; and what belongs to other programs."""
    monkeypatch.chdir(tmp_path)
    files = {f"{team}/{team}.good.yaml": topic(f"{team}.good") for team in ("web", "pay")}
    files |= {f"{team}/{team}.bad.yaml": topic(f"{team}.bad", "spec: {partition: 1}\n") for team in ("web", "pay")}
    write(tmp_path / "topics", {**files, ".git/HEAD": "ref", ".idea/x.xml": "", "web/.cache/x.yaml": "{"})
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "bad", "files"),
    [
        pytest.param([], ["pay.bad", "web.bad"], 5, id="all, without folders that begin with a dot"),
        pytest.param(["topics"], ["pay.bad", "web.bad"], 5, id="the folder of specs"),
        pytest.param(["topics/web"], ["web.bad"], 2, id="a domain"),
        pytest.param(["topics/web/web.good.yaml"], [], 1, id="a file"),
        pytest.param(["topics/web/web.bad.yaml", "topics/pay/"], ["pay.bad", "web.bad"], 3, id="a file and a domain"),
        pytest.param(["topics/environments/local.yaml"], [], 1, id="an environment"),
    ],
)
def test_files_and_domains_are_judged_in_their_folder_of_specs(
    teams: Path, paths: list[str], bad: list[str], files: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert teams == Path.cwd()
    status = run(["validate", *paths, "--format", "json"])
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [Path(problem["file"]).stem for problem in found["diagnostics"]] == bad
    assert (found["files"], status) == (files, 1 if bad else 0)
    left = 2 - len(bad)
    line = f"{left} error{'s' * (left > 1)} in other files; `topicops validate` lists all\n"
    assert said.err == (line if left else "")


def test_a_clash_of_names_concerns_both_files(teams: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(teams / "topics", {"zzz/web_good.yaml": topic("web_good")})
    for path in ("topics/web/web.good.yaml", "topics/zzz"):
        assert run(["validate", path]) == 1
        assert "TOP302" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        pytest.param(["."], ".: this folder is above the topics; did you mean topics?", id="the repository's root"),
        pytest.param(["topics", "more/topics"], "these are files of more/topics and topics", id="two folders of specs"),
        pytest.param(["topics/web/none.yaml"], "none.yaml: no such folder or file", id="no such file"),
    ],
)
def test_a_path_that_is_of_no_folder_of_specs_is_bad_usage(
    teams: Path, paths: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(teams / "more/topics", {})
    assert run(["validate", *paths]) == 1
    assert sentence in capsys.readouterr().err


def test_a_file_is_found_from_its_own_folder(
    teams: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(teams / "topics/web")
    assert run(["validate", "web.bad.yaml"]) == 1
    assert capsys.readouterr().out.startswith("../web/web.bad.yaml:4:")
    assert run(["validate", "."]) == 1
    assert "2 file" in capsys.readouterr().out
